"""Claude Code's transcripts, line by line, as contract rows.

`user` and `assistant` lines hold content blocks; each becomes one row, `block_idx` being its place in the message. A
`cost-state` line becomes a `result` row with what was spent since the one before it. All other kinds are copies of
these (requests, blobs), hook output or the client's own notes, and become nothing.

A fork's file begins with lines of its parent, copied with their uuids but under the fork's session id (measured: one
block at the beginning, in another order when the parent was compacted; between them only lines of other kinds). The
first memory of a file, `first_memory`, says how far they go and who the parent is; they become no rows.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any

from ctrlb_agent.json_values import list_of, object_of, text_of
from ctrlb_agent.transcripts.rows import (
    About,
    SessionFile,
    as_json,
    body_of,
    clean_id,
    clean_name,
    clean_text,
    moment_us,
    number_of,
    remember,
    row,
    tool_command,
    tool_paths,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

HARNESS = "claude"
MAX_OPEN_CALLS = 64
"""Tool calls whose result is awaited; the result of an older one has no tool_name."""
MAX_RECENT = 8
"""Messages whose usage is known to be counted, and lines that are known when they are repeated."""
HIDDEN_THINKING = "[redacted thinking]"

_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_creation_tokens": "cache_creation_input_tokens",
}


def about_file(path: str) -> SessionFile:
    """Whose transcript the file is, by its name and folder: a session's, or `…/<session>/subagents/…/agent-<id>.jsonl`.

    A subagent's file beside the sessions', where older versions put it, names its session in its first lines.
    """
    name = os.path.basename(path)
    session_id = os.path.splitext(name)[0]
    if not session_id.startswith("agent-"):
        return SessionFile(session_id, "", "")
    folders = os.path.abspath(path).split(os.sep)[:-1]
    if "subagents" in folders[1:]:
        last = len(folders) - 1 - folders[::-1].index("subagents")
        parent = folders[last - 1]
    else:
        from ctrlb_agent.transcripts.claude_forks import session_named_in

        parent = session_named_in(path)
    return SessionFile(session_id, parent, session_id[len("agent-") :])


def first_memory(path: str) -> dict[str, Any]:
    """The memory with which the first line of the file is to be read: of a fork, what it has from its parent.

    Looks for the parent among the transcripts in the same folder, with bounded work. Raises OSError.
    """
    from ctrlb_agent.transcripts.claude_forks import parent_of

    fork = None if about_file(path).agent_id else parent_of(path)
    return {} if fork is None else {"parent": fork.parent, "copied_lines": fork.copied_lines, "cost_usd": fork.cost_usd}


def rows_of(line: Mapping[str, Any], number: int, about: About, memory: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of line `number`, from 1, of a transcript. Never raises, whatever the line holds.

    `memory` is JSON, mostly of a few kilobytes, and is to be passed on from line to line of a file.
    """
    if not isinstance(line, dict):
        return []
    whose = _about_line(about, line, memory)
    moment = moment_us(line, memory)
    kind = line.get("type")
    if kind == "cost-state":
        rows = [_result(line, number, whose, moment, memory)]
    elif kind in ("user", "assistant") and not _is_repeated(line, memory):
        rows = _blocks(line, number, whose, moment, memory)
    else:
        return []
    return [] if number <= memory.get("copied_lines", 0) or not whose.session_id else rows


def _about_line(about: About, line: Mapping[str, Any], memory: dict[str, Any]) -> About:
    """Whose line it is. The file's name says it, for a fork's lines name it as their session, too."""
    if not about.session_id:
        about = about._replace(session_id=text_of(line.get("sessionId")))
    if not about.agent_id and line.get("isSidechain") is True:
        about = about._replace(agent_id=text_of(line.get("agentId")))
    return about._replace(parent_session=about.parent_session or text_of(memory.get("parent")))


def _is_repeated(line: Mapping[str, Any], memory: dict[str, Any]) -> bool:
    """Whether one of the lines just before was this one, word by word."""
    uuid = clean_id(line.get("uuid"))
    if not uuid:
        return False
    said = zlib.crc32(clean_text(as_json(line.get("message"))).encode())
    known: bool = memory.get("lines", {}).get(uuid) == said
    remember(memory, "lines", uuid, said, MAX_RECENT)
    return known


def _blocks(
    line: Mapping[str, Any], number: int, about: About, moment: int | None, memory: dict[str, Any]
) -> list[dict[str, Any]]:
    message = object_of(line.get("message"))
    cwd = clean_name(line.get("cwd"))
    common = {
        "timestamp_us": moment,
        "role": text_of(message.get("role")) or line["type"],
        "cwd": cwd,
        "git_branch": line.get("gitBranch"),
        "uuid": line.get("uuid"),
        "message_id": message.get("id"),
        "model": message.get("model"),
        "is_summary": line.get("isCompactSummary") is True,
    }
    rows = []
    for block_idx, block in enumerate(_contents(line.get("message"))):
        fields = _fields(block, cwd or about.root, about.root, memory)
        if fields is not None:
            fields.setdefault("is_error", line.get("isApiErrorMessage") is True)
            rows.append(row(about, HARNESS, number, block_idx, **common, **fields))
    if rows and line["type"] == "assistant":
        rows[0].update(_usage(message, memory))
    return rows


def _contents(message: Any) -> list[Any]:
    """The message's blocks. A text in their place is one block."""
    content = message.get("content") if isinstance(message, dict) else message
    return content if isinstance(content, list) else [content]


def _fields(block: Any, cwd: str, root: str, memory: dict[str, Any]) -> dict[str, Any] | None:
    """The columns that depend on the block; None of one that says nothing."""
    if isinstance(block, str):
        return {"body": block} if block else None
    if not isinstance(block, dict):
        return None
    kind = text_of(block.get("type"))
    if kind.endswith("tool_use"):
        return _call(block, cwd, root, memory)
    if kind.endswith("tool_result"):
        return _answer(block, memory)
    if kind == "redacted_thinking":
        return {"block_type": "thinking", "body": HIDDEN_THINKING}
    said = block.get("thinking" if kind == "thinking" else "text")
    if kind in ("thinking", "text") and isinstance(said, str):
        return {"block_type": kind, "body": said} if said else None
    return {"body": as_json(block)}


def _call(block: dict[str, Any], cwd: str, root: str, memory: dict[str, Any]) -> dict[str, Any]:
    name = clean_id(block.get("name"))
    call_id = clean_id(block.get("id"))
    given = block.get("input")
    if call_id and name:
        remember(memory, "calls", call_id, name, MAX_OPEN_CALLS)
    return {
        "block_type": "tool_use",
        "tool_name": name,
        "tool_use_id": call_id,
        "command": tool_command(name, given),
        "paths": tool_paths(name, given, cwd, root),
        "body": as_json(given),
    }


def _answer(block: dict[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
    call_id = clean_id(block.get("tool_use_id"))
    content = block.get("content")
    failed = block.get("is_error") is True or text_of(object_of(content).get("type")).endswith("_error")
    return {
        "block_type": "tool_result",
        "tool_name": memory.get("calls", {}).pop(call_id, ""),
        "tool_use_id": call_id,
        "body": body_of(content),
        "is_error": failed,
    }


def _usage(message: dict[str, Any], memory: dict[str, Any]) -> dict[str, float]:
    """The columns of the message's usage, which each line of the message repeats: only the first row has it."""
    message_id = clean_id(message.get("id"))
    counted = list_of(memory.get("counted"))
    if message_id in counted:
        return {}
    if message_id:
        memory["counted"] = [*counted, message_id][-MAX_RECENT:]
    usage = object_of(message.get("usage"))
    return {column: number_of(usage.get(field)) for column, field in _USAGE.items()}


def _result(
    line: Mapping[str, Any], number: int, about: About, moment: int | None, memory: dict[str, Any]
) -> dict[str, Any]:
    """The row of a `cost-state`, whose totals count from the beginning of the session, resumed and forked ones too."""
    total_usd = number_of(line.get("totalCostUSD"))
    before_usd = number_of(memory.get("cost_usd"))
    memory["cost_usd"] = total_usd
    spent_usd = total_usd - before_usd if total_usd >= before_usd else total_usd
    totals = {name: value for name, value in line.items() if name not in ("type", "sessionId")}
    fields = {"block_type": "result", "body": as_json(totals), "cost_usd": round(spent_usd, 9)}
    return row(about, HARNESS, number, 0, timestamp_us=moment, **fields)
