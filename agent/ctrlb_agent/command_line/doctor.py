"""`doctor`: what keeps the hooks from working, and what to do about it.

Each check is a function that returns what it found. It looks at the same files and variables as the hooks, and asks the
server what they would ask.
"""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING

from ctrlb_agent import calls, state
from ctrlb_agent.command_line import doctor_clients
from ctrlb_agent.command_line.finding import Finding
from ctrlb_agent.connection import Connection, Unreachable, error_of, key_fault, shown_url
from ctrlb_agent.json_values import object_of, parsed
from ctrlb_agent.settings import Settings, settings_of
from ctrlb_agent.uploading import spool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEADLINE_S = 10.0
ASKS_VERSION = "import sys; sys.stdout.write(str(sys.version_info >= (3, 9)))"
RECENT_S = 24 * 3_600
NEW_KEY = "make a new one in the console, or on a laptop with `python -m ctrlb keys create`, and set CTRLB_KEY"


def findings(environ: Mapping[str, str], codex_home: str | None = None) -> list[Finding]:
    """Everything that was found, in the order in which to mend it."""
    settings = settings_of(environ)
    try:
        state.home()
    except OSError as error:
        remedy = "give it back to this user, or set CTRLB_AGENT_HOME to another folder"
        return [Finding("fail", f"nothing can be kept: {error}", remedy), *_variables(environ, settings)]
    return [
        *_variables(environ, settings),
        *_server(settings),
        *_interpreter(),
        *_folder(),
        *doctor_clients.claude(environ, settings),
        *doctor_clients.codex(environ, settings, codex_home),
        *_spool(),
        *_log(),
    ]


def _variables(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    for name in ("CTRLB_URL", "CTRLB_KEY", "CTRLB_RUN", "CTRLB_AGENT"):
        if environ.get(name, "").lstrip().startswith("${"):
            shown = "${…" if name == "CTRLB_KEY" else shown_url(environ[name])
            yield Finding("fail", f"{name} is {shown}", "a variable was not expanded where it is set: mend it there")
    if environ.get("CTRLB_URL", "").endswith("/"):
        yield Finding("fail", "CTRLB_URL ends in /, so Claude Code's tools ask for //mcp", "export it without that /")
    plugins = shown_url(doctor_clients.plugin_url(environ))
    if plugins and not settings.are_complete:
        yield Finding(
            "note",
            f"Claude Code's plugin has an address of its own, {plugins}; commands and Codex have none, or no key",
            "set CTRLB_URL and CTRLB_KEY, or run `configure`",
        )
        return
    if not settings.url:
        yield Finding("fail", "the server is not known", "set CTRLB_URL, or run `configure --url`")
    if not settings.key:
        yield Finding("fail", "there is no key", "set CTRLB_KEY, or run `configure --key-from-stdin`")
    elif fault := key_fault(settings.key):
        yield Finding("fail", f"the key {fault}", "copy it again: it is one word")
    elif not environ.get("CTRLB_KEY"):
        yield Finding(
            "note",
            "the key is in config.json, not in CTRLB_KEY",
            "Codex, and Claude Code without the plugin's option `key`, connect their tools with CTRLB_KEY only",
        )
    if not environ.get("CTRLB_RUN"):
        yield Finding("note", "CTRLB_RUN is not set: the agents of one checkout share a run of their own")


def _server(settings: Settings) -> Iterator[Finding]:
    if not settings.are_complete or key_fault(settings.key):
        return
    url = shown_url(settings.url)
    try:
        answer = calls.settings().send(Connection(settings.url, settings.key), DEADLINE_S)
    except Unreachable as error:
        yield Finding("fail", f"the server cannot be reached: {error}", "start it, or mend CTRLB_URL")
        return
    if answer.status in (401, 403):
        yield Finding("fail", f"the key is refused: {error_of(answer)}", NEW_KEY)
        return
    said = object_of(parsed(answer.body))
    if answer.status != 200 or "sessionsDataset" not in said:
        yield Finding("fail", f"{url} answers {answer.status}, and not as CtrlB does", "mend CTRLB_URL")
        return
    yield Finding("ok", f"{url} answers, and takes the key; enforce mode is {said.get('enforce')}")
    if said["sessionsDataset"] != settings.dataset:
        yield Finding(
            "fail",
            f"the workspace's sessions dataset is {said['sessionsDataset']}, and rows are sent to {settings.dataset}",
            f"set CTRLB_DATASET={said['sessionsDataset']}",
        )


def _interpreter() -> Iterator[Finding]:
    file = state.path("python")
    kept = _text(file).rstrip("\n")
    remedy = f"remove {file}: the next session finds another"
    if not kept:
        yield Finding("note", "no hook has run yet")
    elif not state.is_own(file):
        yield Finding("fail", f"another user wrote {file}, so hooks look for Python each time", remedy)
    elif not os.access(kept, os.X_OK):
        yield Finding("fail", f"the Python that hooks use is gone: {kept}", remedy)
    elif doctor_clients.output([kept, "-I", "-S", "-c", ASKS_VERSION]) != b"True":
        yield Finding("fail", f"what hooks use is no Python of 3.9 or newer: {kept}", remedy)
    else:
        yield Finding("ok", f"hooks run on {kept}")


def _folder() -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(state.home()).st_mode)
    if mode & 0o077:
        yield Finding("fail", f"others can read {state.home()} (mode {mode:o})", f"chmod 700 {state.home()}")


def _spool() -> Iterator[Finding]:
    size = spool.size_bytes()
    if size:
        remedy = "they are sent when a session starts or stops; agent.log says why they could not be"
        yield Finding("note", f"{size:,} bytes of rows wait to be sent", remedy)


def _log() -> Iterator[Finding]:
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - RECENT_S))
    recent = [line for line in _text(state.path("agent.log")).splitlines() if line >= since]
    if recent:
        yield Finding(
            "note", f"{len(recent)} lines in {state.path('agent.log')} since yesterday; the last: {recent[-1]}"
        )


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
