"""`doctor`: what keeps the hooks from working, and what to do about it.

Each check is a function that returns what it found. It looks at the same files and variables as the hooks, and asks the
server what they would ask.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import calls, state
from ctrlb_agent.connection import Connection, Unreachable, error_of
from ctrlb_agent.json_values import list_of, object_of, parsed
from ctrlb_agent.settings import Settings, settings_of
from ctrlb_agent.uploading import spool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEADLINE_S = 10.0
CLIENT_DEADLINE_S = 20.0
RECENT_S = 24 * 3_600
NEW_KEY = "make a new one on the Connect screen, or with `python -m ctrlb keys create` on a laptop, and set CTRLB_KEY"


class Finding(NamedTuple):
    """One thing that was looked at: `ok`, `note` (worth knowing) or `fail` (to be mended, as `remedy` says)."""

    level: str
    text: str
    remedy: str = ""


def findings(environ: Mapping[str, str], codex_home: str | None = None) -> list[Finding]:
    """Everything that was found, in the order in which to mend it."""
    settings = settings_of(environ)
    return [
        *_variables(environ, settings),
        *_server(settings),
        *_interpreter(),
        *_folder(),
        *_claude(environ, settings),
        *_codex(environ, codex_home),
        *_spool(),
        *_log(),
    ]


def _variables(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    for name in ("CTRLB_URL", "CTRLB_KEY", "CTRLB_RUN", "CTRLB_AGENT"):
        if environ.get(name, "").lstrip().startswith("${"):
            yield Finding(
                "fail", f"{name} is {environ[name]}", "a variable was not expanded where it is set: mend it there"
            )
    if environ.get("CTRLB_URL", "").endswith("/"):
        yield Finding("fail", "CTRLB_URL ends in /, so Claude Code's tools ask for //mcp", "export it without that /")
    if not settings.url:
        yield Finding("fail", "the server is not known", "set CTRLB_URL, or run `configure --url`")
    if not settings.key:
        yield Finding("fail", "there is no key", "set CTRLB_KEY, or run `configure --key-from-stdin`")
    elif not environ.get("CTRLB_KEY"):
        yield Finding(
            "note",
            "the key is in config.json, not in CTRLB_KEY",
            "Codex, and Claude Code without the plugin's option `key`, connect their tools with CTRLB_KEY only",
        )
    if not environ.get("CTRLB_RUN"):
        yield Finding("note", "CTRLB_RUN is not set: the agents of one checkout share a run of their own")


def _server(settings: Settings) -> Iterator[Finding]:
    if not settings.are_complete:
        return
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
        yield Finding("fail", f"{settings.url} answers {answer.status}, and not as CtrlB does", "mend CTRLB_URL")
        return
    yield Finding("ok", f"{settings.url} answers, and takes the key; enforce mode is {said.get('enforce')}")
    if said["sessionsDataset"] != settings.dataset:
        yield Finding(
            "fail",
            f"the workspace's sessions dataset is {said['sessionsDataset']}, and rows are sent to {settings.dataset}",
            f"set CTRLB_DATASET={said['sessionsDataset']}",
        )


def _interpreter() -> Iterator[Finding]:
    kept = _text(state.path("python")).strip()
    if not kept:
        yield Finding("note", "hooks have not run yet: each start looks for python3 until one has")
    elif not os.access(kept, os.X_OK):
        remedy = f"remove {state.path('python')}: the next session finds another"
        yield Finding("fail", f"the Python that hooks use is gone: {kept}", remedy)
    else:
        yield Finding("ok", f"hooks run on {kept}")


def _folder() -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(state.home()).st_mode)
    if mode & 0o077:
        yield Finding("fail", f"others can read {state.home()} (mode {mode:o})", f"chmod 700 {state.home()}")


def _claude(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    listed = _output(["claude", "plugin", "list", "--json"])
    if listed is None:
        return
    plugins = [name for name in _names(listed) if name.partition("@")[0] == "ctrlb-agent"]
    if plugins:
        yield Finding("ok", f"Claude Code has the plugin {plugins[0]}")
    else:
        remedy = "claude plugin marketplace add <this folder> && claude plugin install ctrlb-agent@ctrlb"
        yield Finding("note", "Claude Code has no plugin ctrlb-agent", remedy)
    folder = environ.get("CLAUDE_CONFIG_DIR")
    file = os.path.join(folder, ".claude.json") if folder else os.path.expanduser("~/.claude.json")
    rivals = sorted(_servers_at(state.read_json(file) or {}, f"{settings.url}/mcp"))
    if plugins and rivals:
        yield Finding(
            "fail",
            f"an MCP server added by hand has the same address, so the plugin's is suppressed: {', '.join(rivals)}",
            f"claude mcp remove {rivals[0]}",
        )


def _codex(environ: Mapping[str, str], codex_home: str | None) -> Iterator[Finding]:
    folder = codex_home or environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    if not os.path.isdir(folder):
        return
    from ctrlb_agent.codex_setup import codex_config, codex_trust

    if codex_config.installed(folder) is None:
        yield Finding("note", "Codex has no hooks of ours", "python3 -I install.py --codex")
        return
    yield Finding("ok", f"Codex has the hooks and the server in {folder}")
    if not environ.get("CTRLB_KEY"):
        yield Finding("fail", "CTRLB_KEY is not set, so Codex leaves the server out without a word", "export CTRLB_KEY")
    untrusted = codex_trust.untrusted(folder)
    if untrusted is None:
        yield Finding("note", "Codex could not be asked which hooks it trusts", "look at /hooks in Codex")
    elif untrusted:
        remedy = "python3 -I install.py --codex --trust, or /hooks in Codex"
        yield Finding("fail", f"Codex does not run hooks that it does not trust: {', '.join(untrusted)}", remedy)


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


def _output(command: list[str]) -> bytes | None:
    """What the client prints, or None when it is not here or does not answer."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLIENT_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _names(listed: bytes) -> Iterator[str]:
    """The ids in `claude plugin list --json`."""
    for plugin in map(object_of, list_of(parsed(listed))):
        yield str(plugin.get("id") or plugin.get("name") or "")


def _servers_at(configured: dict[str, Any], url: str) -> set[str]:
    """The names of the servers with this address that a person added, for all projects or for one."""
    return {
        name
        for place in (configured, *object_of(configured.get("projects")).values())
        for name, server in object_of(object_of(place).get("mcpServers")).items()
        if object_of(server).get("url") == url
    }


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
