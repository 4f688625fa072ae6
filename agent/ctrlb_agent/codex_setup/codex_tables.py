"""The tables that the installer writes into Codex's config.toml: hooks, OpenTelemetry export, the MCP server."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent.codex_setup.toml_lines import quoted, statements_of
from ctrlb_agent.codex_setup.toml_meaning import meaning_of

if TYPE_CHECKING:
    from collections.abc import Iterable

SERVER = ("mcp_servers", "ctrlb")
OTEL = ("otel",)
EXPORTER = ("otel", "exporter", "otlp-http")
EDITS = "^(apply_patch|Bash)$"
"""The tools that edit files. A patch in a command of the shell arrives as Bash."""

HOOKS = (
    ("SessionStart", None, 10),
    ("PreToolUse", EDITS, 3),
    ("SubagentStart", None, 10),
    ("Stop", None, 10),
    ("SubagentStop", None, 10),
    ("SessionEnd", None, 3),  # Codex lets it have no more
)
"""Event, matcher and timeout in seconds of each hook. The hook itself ends sooner; this is for when it cannot."""

_OUR_COMMAND = re.compile(r"\bctrlb-hook['\"]? codex [A-Za-z]+")


class Otel(NamedTuple):
    """Where Codex sends its own events, and with which headers."""

    endpoint: str
    headers: tuple[tuple[str, str], ...]


class Table(NamedTuple):
    """A table as it is to be. Values are TOML. `fixed` keys are always ours; `defaults` give way to the user's."""

    path: tuple[str, ...]
    is_array: bool
    fixed: tuple[tuple[str, str], ...]
    defaults: tuple[tuple[str, str], ...] = ()

    @property
    def header(self) -> str:
        name = ".".join(self.path)
        return f"[[{name}]]" if self.is_array else f"[{name}]"


def hook_command(folder: str, event: str) -> str:
    """The shell command of a hook, of the ctrlb-agent in this folder."""
    return f"{shlex.quote(os.path.join(folder, 'hooks', 'ctrlb-hook'))} codex {event}"


def is_our_command(command: object) -> bool:
    """Whether a hook's command is of an installer of ctrlb-agent, in whatever folder."""
    return isinstance(command, str) and _OUR_COMMAND.search(command) is not None


def wanted_tables(url: str, folder: str, otel: Otel | None) -> list[Table]:
    """All tables in order.

    The server's is last: `codex mcp remove` takes the comments above a table with it, and our first line is one.
    """
    tables = [table for event in HOOKS for table in _hook(folder, *event)]
    if otel is not None:
        headers = ", ".join(f"{quoted(name)} = {quoted(value)}" for name, value in otel.headers)
        exporter = (("endpoint", quoted(otel.endpoint)), ("protocol", '"json"'), ("headers", f"{{ {headers} }}"))
        texts = (("log_user_prompt", "true"), ("log_agent_responses", "true"))
        tables += [Table(OTEL, False, (), texts), Table(EXPORTER, False, exporter)]
    server = (
        ("url", quoted(f"{url}/mcp")),
        ("bearer_token_env_var", '"CTRLB_KEY"'),
        ("env_http_headers", '{ "X-CtrlB-Run" = "CTRLB_RUN", "X-CtrlB-Agent" = "CTRLB_AGENT" }'),
    )
    return [*tables, Table(SERVER, False, server, (("startup_timeout_sec", "10"), ("tool_timeout_sec", "30")))]


def rendered(table: Table, more: Iterable[str] = (), keys_in_more: Iterable[str] = ()) -> list[str]:
    """The table's lines. `more` are lines of the user's that go below ours, and set `keys_in_more`."""
    set_already = set(keys_in_more)
    defaults = [pair for pair in table.defaults if pair[0] not in set_already]
    return [table.header, *(f"{key} = {value}" for key, value in (*table.fixed, *defaults)), *more]


def meaning_of_table(table: Table) -> dict[str, Any]:
    """Its keys with their values."""
    within: Any = meaning_of(statements_of("\n".join(rendered(table)))).tree
    for part in table.path:
        within = within[part]
    found: dict[str, Any] = within[0] if table.is_array and isinstance(within, list) else within
    return found


def _hook(folder: str, event: str, matcher: str | None, timeout_s: int) -> tuple[Table, Table]:
    command = quoted(hook_command(folder, event))
    keys = (("type", '"command"'), ("command", command), ("timeout", str(timeout_s)))
    matched = (("matcher", quoted(matcher)),) if matcher else ()
    return Table(("hooks", event), True, matched), Table(("hooks", event, "hooks"), True, keys)
