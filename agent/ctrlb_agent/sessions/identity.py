"""Who a session is: its run, its agent id and its checkout's root.

Each session has one small file, `sessions/<session id>.json`. Most hooks read only that. What decides for several
sessions (a new one, one that comes back) is done under one lock, by the rules in `membership`. A lock that cannot be
had, or a folder that cannot be written, still gives an answer, which is written to the log.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import state
from ctrlb_agent.paths import root_of
from ctrlb_agent.sessions import membership, names, processes
from ctrlb_agent.sessions.membership import Asked, Session
from ctrlb_agent.sessions.processes import is_running
from ctrlb_agent.settings import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Decide = Callable[[dict[str, Session], float], list[Session]]

LOCK_WAIT_S = 0.5  # an edit waits for the answer
START_LOCK_WAIT_S = 5.0  # a session's start can wait: many that start at once are to agree on their run
TOUCH_S = 60.0  # a session's file is touched no more often than this
KEPT_S = 30 * 24 * 3600.0
MAX_SESSIONS = 500
LEFT_OVER_S = 3600.0  # a half-written file of a process that died is removed after this


class Identity(NamedTuple):
    """What the server knows an agent by, and the folder that its paths are relative to."""

    run: str
    agent: str
    root: str


def identity_of(hook: Mapping[str, Any], environ: Mapping[str, str], client: str) -> Identity:
    """The identity of the session that the hook belongs to; made when there is none. Never raises.

    A subagent's hooks carry its parent's session id, so it acts as its parent. A session keeps its identity over
    resume, compact and clear; a fork is a session of its own. A session that is resumed after its end gets its agent
    id back unless a live one has it, and its run unless the checkout's live agents have another.
    """
    asked = _asked(hook, environ, client)
    known = _kept(asked.session_id)
    if known and membership.is_settled(known, asked):
        _touch(known)
        return _identity(known)
    asked = _with_place(asked, hook, environ)
    if not asked.session_id:
        return _unkept(asked)
    try:
        wait_s = START_LOCK_WAIT_S if asked.event == "SessionStart" else LOCK_WAIT_S
        return _identity(
            _decided(lambda sessions, now_s: membership.placed(sessions, asked, now_s, is_running), wait_s)
        )
    except OSError as error:
        state.log(f"identity: the session's could not be kept ({error})")
        return _identity(known) if known else _unkept(asked)


def identity_of_session(session_id: str) -> Identity | None:
    """The identity on file, of a session that may be long over, or None when there is none (any more)."""
    known = _kept(_writable(session_id))
    return _identity(known) if known else None


def acting_as(session_id: str, environ: Mapping[str, str]) -> Identity | None:
    """Who a command in the session's shell is: the session, in the run of a `CTRLB_RUN` that was set since it began."""
    known = _kept(_writable(session_id))
    if not known:
        return None
    run = variable_of(environ, "CTRLB_RUN")
    if run in ("", known.variable):
        return _identity(known)
    return Identity(run, variable_of(environ, "CTRLB_AGENT") or known.agent, known.root)


def run_of_checkout(root: str) -> str:
    """The run that the live agents of the checkout share, or an empty text. Asking makes, joins and renews nothing."""
    with suppress(OSError):
        live = [one for one in _all().values() if membership.is_live(one, time.time(), is_running)]
        return membership.checkout_run(live, host_name(), root)
    return ""


def join_run(hook: Mapping[str, Any], environ: Mapping[str, str], client: str, run: str) -> Identity:
    """Put the session into the run that its person named, for good: over resume too, and whatever `CTRLB_RUN` says now.

    Raises ValueError when it cannot be a run id, OSError when it could not be kept.
    """
    if fault := names.id_fault(run):
        raise ValueError(f"a run id {fault}")
    asked = _with_place(_asked(hook, environ, client), hook, environ)
    if not asked.session_id:
        raise ValueError("the hook names no session")

    def decide(sessions: dict[str, Session], now_s: float) -> list[Session]:
        session, *over = membership.placed(sessions, asked, now_s, is_running)
        return [membership.joined(sessions, session, run, asked), *over]

    return _identity(_decided(decide, LOCK_WAIT_S))


def end(hook: Mapping[str, Any], environ: Mapping[str, str], client: str) -> None:
    """Note that the session is over, so that its checkout's run may end. `/clear` only hands its identity on."""
    asked = _asked(hook, environ, client)
    known = _kept(asked.session_id)
    if known is None:
        return
    reason = str(hook.get("reason"))
    try:
        _decided(
            lambda sessions, now_s: [
                membership.ended(sessions.get(known.session_id, known), asked, reason, now_s, is_running)
            ],
            LOCK_WAIT_S,
        )
    except OSError as error:
        state.log(f"identity: the end of a session could not be kept ({error})")


def host_name() -> str:
    """What this machine is called, without the part that changes with the network."""
    return os.uname().nodename.split(".")[0]


def variable_of(environ: Mapping[str, str], name: str) -> str:
    """The run id or agent id in the variable; an empty text when it has none, or what cannot be one."""
    value = value_of(environ, name)
    fault = names.id_fault(value) if value else None
    if fault:
        state.log(f"identity: {name} is not used: it {fault}")
    return "" if fault else value


def _asked(hook: Mapping[str, Any], environ: Mapping[str, str], client: str) -> Asked:
    """What the hook says, without what costs time to find out: `_with_place` adds that.

    Claude Code's variable is no word of Codex's, which may have been started from a shell of Claude Code's.
    """
    said = environ.get("CLAUDE_PID", "") if client == "claude" else ""
    return Asked(
        session_id=_writable(str(hook.get("session_id") or "")),
        client=client,
        host=host_name(),
        root="",
        event=str(hook.get("hook_event_name") or ""),
        source=str(hook.get("source") or ""),
        run=variable_of(environ, "CTRLB_RUN"),
        agent=variable_of(environ, "CTRLB_AGENT"),
        pid=int(said) if said.isdecimal() and len(said) < 10 else 0,
        pid_started="",
    )


def _with_place(asked: Asked, hook: Mapping[str, Any], environ: Mapping[str, str]) -> Asked:
    """With the root and the client's process. Claude Code names the project, whatever folder its shell is in by now."""
    project = environ.get("CLAUDE_PROJECT_DIR", "") if asked.client == "claude" else ""
    pid = asked.pid or processes.client_pid(asked.client)
    return asked._replace(
        root=root_of(_named_folder(project) or _named_folder(str(hook.get("cwd") or ""))),
        pid=pid,
        pid_started=processes.started(pid) if pid else "",
    )


def _unkept(asked: Asked) -> Identity:
    """The identity when nothing can be kept, the same each time. Who names no session is in the checkout's live run."""
    run = asked.run or ("" if asked.session_id else run_of_checkout(asked.root))
    key = asked.session_id or asked.root
    made = f"{names.agent_name(asked.client, key)}-{names.digest(key)[:4]}"  # nobody tells whether it is taken
    return Identity(run or names.lasting_run(asked.host, asked.root), asked.agent or made, asked.root)


def _decided(decide: Decide, wait_s: float) -> Session:
    """Decide over all sessions and keep the outcome, alone if that can be had in time. Raises OSError."""
    try:
        with state.locked(state.path("sessions.lock"), wait_s):
            return _decide_and_keep(decide)
    except state.Busy:
        state.log("identity: decided without the lock, which another process kept for too long")
        return _decide_and_keep(decide)


def _decide_and_keep(decide: Decide) -> Session:
    sessions = _all()
    now_s = time.time()
    changed = decide(sessions, now_s)
    for session in changed:
        if session != sessions.get(session.session_id):
            state.write_json(_file(session.session_id), session._asdict())
    if changed[0].session_id not in sessions:
        _forget_old(sessions, now_s)
    return changed[0]


def _forget_old(sessions: Mapping[str, Session], now_s: float) -> None:
    """Remove the files of sessions that are long over, and of the oldest beyond the limit."""
    newest_first = sorted(sessions.values(), key=lambda session: -session.seen_s)
    for place, session in enumerate(newest_first, 1):
        old = place >= MAX_SESSIONS or abs(now_s - session.seen_s) > KEPT_S
        if old and not membership.is_live(session, now_s, is_running):
            with suppress(OSError):
                os.unlink(_file(session.session_id))


def _all() -> dict[str, Session]:
    """Every session on file. Raises OSError when the folder cannot be read."""
    sessions = {}
    with os.scandir(os.path.dirname(_file("any"))) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                session = _read(entry.path)
                if session:
                    sessions[session.session_id] = session
            elif time.time() - entry.stat().st_mtime > LEFT_OVER_S:
                with suppress(OSError):
                    os.unlink(entry.path)
    return sessions


def _kept(session_id: str) -> Session | None:
    try:
        session = _read(_file(session_id)) if session_id else None
    except OSError:
        return None
    return session if session and session.session_id == session_id else None


def _read(file: str) -> Session | None:
    """The session in the file, or None when there is none whole. It was last seen when its file was last touched."""
    kept = state.read_json(file)
    try:
        session = Session(**kept)._replace(seen_s=os.stat(file).st_mtime) if kept else None
    except (OSError, TypeError):
        return None
    return session if session and membership.is_whole(session) else None


def _touch(session: Session) -> None:
    """Keep a session live that was heard of. When that cannot be noted, its process still tells."""
    now_s = time.time()
    if not session.ended_s and abs(now_s - session.seen_s) > TOUCH_S:
        with suppress(OSError):
            os.utime(_file(session.session_id))


def _file(session_id: str) -> str:
    """Where the session is kept. Clients' session ids are UUIDs; what could not be a file's name gets one."""
    plain = session_id.replace("-", "").isalnum() and session_id.isascii() and len(session_id) <= 64
    return state.path("sessions", (session_id if plain else names.digest(session_id)) + ".json")


def _writable(text: str) -> str:
    """The text without what no file can hold: half a pair of surrogates, which JSON can."""
    return text.encode("utf-8", "replace").decode()


def _named_folder(text: str) -> str:
    """The text if a folder can have that name at all, else an empty one."""
    try:
        return "" if b"\0" in os.fsencode(text) else text
    except UnicodeEncodeError:
        return ""


def _identity(session: Session) -> Identity:
    return Identity(session.run, session.agent, session.root)
