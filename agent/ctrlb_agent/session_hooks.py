"""The hooks of a session's life: tell it who it is, let it join a run, and send what it said and did.

Whatever fails here is written to the log, and the client goes on as if the hook were not there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ctrlb_agent import state
from ctrlb_agent.sessions import identity
from ctrlb_agent.settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctrlb_agent.sessions.identity import Identity

UPLOAD_WAIT_S = {"Stop": 2.0, "SubagentStop": 2.0, "SessionEnd": 1.0}
"""How long a hook waits for the upload, which goes on without it. Claude Code cuts SessionEnd hooks after 1.5 s."""

PROBE_S = 1.0
"""How long a start waits to learn whether the server answers."""

RELAY_COMMAND = "ctrlb-agent:relay"

NOT_SET_UP = (
    "CtrlB Relay is not set up: there is no server address or no key. Tell the person to set CTRLB_URL and CTRLB_KEY "
    "(or the plugin's options url and key) and to start a new session; `python3 -m ctrlb_agent doctor` says what is "
    "missing."
)


def run(client: str, event: str, hook: Mapping[str, Any], environ: Mapping[str, str]) -> bytes:
    """Do what the event asks for and return what the hook prints. Never raises.

    Returns within the time in `UPLOAD_WAIT_S`; at a start within `PROBE_S`, and what it waits for others that start.
    """
    return _tried(event, lambda: _printed(client, event, hook, environ)) or b""


def _printed(client: str, event: str, hook: Mapping[str, Any], environ: Mapping[str, str]) -> bytes:
    if event == "SessionStart":
        return session_start(client, hook, environ)
    if event == "SubagentStart":
        return subagent_start(client, hook, environ)
    if event == "UserPromptExpansion":
        return relay_command(client, hook, environ)
    if event in UPLOAD_WAIT_S:
        finish(client, event, hook, environ)
    return b""


def session_start(client: str, hook: Mapping[str, Any], environ: Mapping[str, str]) -> bytes:
    """The note with the session's ids, and what is amiss with the server. Also starts to send what was left."""
    who = identity.identity_of(hook, environ, client)
    if not _is_set_up(environ):
        state.log("session start: not set up: no CTRLB_URL or no CTRLB_KEY")
        return b""
    _tried("the upload", lambda: _start_upload(client, hook))
    return _context("SessionStart", note(who) + (_tried("the question to the server", lambda: _amiss(environ)) or ""))


def subagent_start(client: str, hook: Mapping[str, Any], environ: Mapping[str, str]) -> bytes:
    """The same note for a subagent, which does not see its session's and acts under the same ids."""
    if not _is_set_up(environ):
        return b""
    return _context("SubagentStart", note(identity.identity_of(hook, environ, client)))


def note(who: Identity) -> str:
    """What an agent is told when its session starts."""
    return (
        f"CtrlB Relay: your run id is {who.run} and your agent id is {who.agent}. Pass them as run_id and agent when a "
        f"tool takes them. Name files relative to {who.root}, as the edit check does. Other agents may be at work in "
        "this run: peers tells what they took; claim a file or task before you work on it; release it with "
        "finished=true when it is done for the whole run, with finished=false for others to take; post leaves a note. "
        "search_sessions, find_command, next_actions and fetch_records recall past sessions."
    )


def _amiss(environ: Mapping[str, str]) -> str:
    """What keeps tools, edit check or upload from working now, for the agent to tell its person; mostly nothing."""
    from ctrlb_agent import calls
    from ctrlb_agent.connection import Connection, Unreachable, error_of

    settings = settings_of(environ)
    try:
        answer = calls.settings().send(Connection(settings.url, settings.key), PROBE_S)
    except Unreachable as error:
        reason = str(error)
    else:
        if answer.status == 200:
            return _unkept()
        reason = error_of(answer)
    state.log(f"session start: {reason}")
    return f" But this does not work now, and edits are not checked: {reason}. Tell the person."


def _unkept() -> str:
    try:
        state.home()
    except OSError as error:
        return f" But nothing of this session is uploaded, for nothing can be kept: {error}. Tell the person."
    return ""


def relay_command(client: str, hook: Mapping[str, Any], environ: Mapping[str, str]) -> bytes:
    """Put the session into the run that `/ctrlb-agent:relay <run id>` names, and tell it. Other commands: nothing."""
    if hook.get("command_name") != RELAY_COMMAND:
        return b""
    named = first_word(str(hook.get("command_args") or ""))
    if not _is_set_up(environ):
        said = NOT_SET_UP
    elif not named:
        said = f"{note(identity.identity_of(hook, environ, client))} No run id was given, so the run is still this one."
    else:
        said = _joined(client, hook, environ, named)
    return _context("UserPromptExpansion", said)


def _joined(client: str, hook: Mapping[str, Any], environ: Mapping[str, str], run: str) -> str:
    try:
        who = identity.join_run(hook, environ, client, run)
    except (ValueError, OSError) as error:
        who = identity.identity_of(hook, environ, client)
        return f"{note(who)} The run was not changed: {error}. Tell the person."
    return f"{note(who)} {_replaced(who, environ)}"


def first_word(text: str) -> str:
    """The first word of what follows the command, or what stands in quotes there, since a run id may hold spaces."""
    text = text.strip()
    quoted = text[1:].partition(text[0])[0] if text[:1] in ("'", '"') else ""
    return quoted.strip() or text.partition(" ")[0]


def _replaced(who: Identity, environ: Mapping[str, str]) -> str:
    """What to make of the ids of before. A header of the connection still has those of the environment."""
    said = "These ids replace any that you were told before."
    run, agent = identity.variable_of(environ, "CTRLB_RUN"), identity.variable_of(environ, "CTRLB_AGENT")
    if run and run != who.run:
        said += f" The tools' connection still says run {run}, so always pass run_id yourself."
    if agent and agent != who.agent:
        said += f" It says agent {agent}, so always pass agent too."
    return said


def finish(client: str, event: str, hook: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Send what is new. A container that ends with the client would end the upload too, so give it a moment."""
    give_up_s = time.monotonic() + UPLOAD_WAIT_S[event]
    identity.identity_of(hook, environ, client)
    upload = _tried("the upload", lambda: _start_upload(client, hook)) if _is_set_up(environ) else None
    if event == "SessionEnd":
        _tried("the session's end", lambda: identity.end(hook, environ, client))
    if upload is not None:
        _tried("the upload", lambda: _wait(upload, give_up_s))


def _start_upload(client: str, hook: Mapping[str, Any]) -> Any:
    from ctrlb_agent.uploading.start import start_detached

    return start_detached(client, hook)


def _wait(upload: Any, give_up_s: float) -> None:
    from subprocess import TimeoutExpired

    try:
        upload.wait(timeout=max(0.0, give_up_s - time.monotonic()))
    except TimeoutExpired:
        return  # it goes on by itself


def _is_set_up(environ: Mapping[str, str]) -> bool:
    return settings_of(environ).are_complete


def _context(event: str, text: str) -> bytes:
    """What adds the text to the session's context, in the form that both clients take."""
    import json

    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}).encode()


def _tried(what: str, action: Callable[[], Any]) -> Any:
    """The action's outcome; None when it failed, which is logged: a hook must not cost its user anything."""
    try:
        return action()
    except Exception as error:
        state.log(f"{what} failed: {type(error).__name__}: {error}")
        return None
