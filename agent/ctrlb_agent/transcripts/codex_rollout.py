"""Codex's rollouts, line by line, as contract rows. Each fact has one source, since rollouts tell most of them twice:

- What was said and thought: `item_completed` (UserMessage, AgentMessage, Reasoning, Plan). In the model's stream,
  `message` and `reasoning` are the same again, or context that Codex puts in (environment, instructions, hook notes).
- A tool call that the model made: `function_call` and its like, when it is made; so one that never ends is there, too.
- Its result: `item_completed` (CommandExecution, FileChange, McpToolCall), which knows exit code and error; if there is
  none, the `…_output`. No item completes for a call that was denied, or could not be run at all: that is an error.
  A command that was left running has two results: what it said at first, and its end, whenever that comes.
- A call from JavaScript (code mode): `item_completed` alone, which gives two rows of one line. The script stays a call
  of its own, of the tool `exec`. Its text holds those of its calls, and its output what it printed of theirs; yet it is
  another fact, what the model wrote and saw. A call that was denied, failed to apply, or still runs is told there
  alone, and so is what the script made of the others.
- A response's usage: `token_usage_record`. It follows the response, so it is on the first row after it.
- The end of a turn: `task_complete` or `turn_aborted`. A compaction's summary: `compacted`, without the history that
  it repeats.

Older rollouts (`history_mode` legacy or absent) have `user_message`, `agent_message`, `agent_reasoning` and
`token_count` in the place of items and records; they are never in one file with them. A fork's file holds no line of
its parent (measured), only where that one was left.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ctrlb_agent.json_values import list_of, object_in, object_of, text_of
from ctrlb_agent.transcripts.codex_items import (
    ANSWERED,
    AWAITED,
    HARNESS,
    RUNNING,
    Fields,
    call_of,
    item_rows,
    kept,
    output_of,
)
from ctrlb_agent.transcripts.rows import (
    About,
    SessionFile,
    as_json,
    clean_id,
    moment_us,
    number_of,
    remember,
    row,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CALLS = 64
"""The newest tool calls, whose results may still come."""
MAX_FIRST_LINE_BYTES = 4 << 20

_FILE_NAME = re.compile(r"rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl", re.ASCII)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output")
_CONTEXT_KINDS = ("environment_context", "user_instructions")


def about_file(path: str) -> SessionFile:
    """Whose rollout the file is, by its first line, or by its name when that line cannot be read."""
    with suppress(OSError), open(path, "rb") as stream:
        line = object_in(stream.readline(MAX_FIRST_LINE_BYTES)) or {}
        whose = _whose(object_of(line.get("payload")))
        if line.get("type") == "session_meta" and whose.session_id:
            return whose
    name = os.path.basename(path)
    found = _FILE_NAME.fullmatch(name)
    return SessionFile(found[1] if found else os.path.splitext(name)[0], "", "")


def first_memory(path: str) -> dict[str, Any]:
    """The memory with which the first line of the file is to be read."""
    return {}


def rows_of(line: Mapping[str, Any], number: int, about: About, memory: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of line `number`, from 1, of a rollout. Never raises, whatever the line holds.

    `memory` is JSON, mostly of a few kilobytes, and is to be passed on from line to line of a file.
    """
    if not isinstance(line, dict):
        return []
    moment = moment_us(line, memory)
    kind = line.get("type")
    payload = object_of(line.get("payload"))
    found: list[Fields] = []
    if kind == "session_meta":
        _remember_session(payload, memory)
    elif kind == "turn_context":
        _remember_place(payload, memory)
    elif kind == "token_usage_record":
        _remember_usage(object_of(payload.get("usage")), payload.get("response_id"), memory)
    elif kind == "compacted":
        summary = text_of(payload.get("message"))
        found = [{"role": "user", "body": summary, "is_summary": True}] if summary else []
    elif kind == "response_item":
        found = _of_response(payload, about, memory)
    elif kind == "event_msg":
        found = _of_event(payload, about, memory)
    return _rows(found, number, about, moment, memory)


def _rows(
    found: list[Fields], number: int, about: About, moment: int | None, memory: dict[str, Any]
) -> list[dict[str, Any]]:
    whose = about._replace(
        session_id=about.session_id or text_of(memory.get("session")),
        parent_session=about.parent_session or text_of(memory.get("parent")),
        agent_id=about.agent_id or text_of(memory.get("agent_id")),
    )
    if not whose.session_id:
        return []
    place = {"cwd": memory.get("cwd"), "git_branch": memory.get("branch"), "timestamp_us": moment}
    rows = []
    for block_idx, fields in enumerate(found):
        model = memory.get("model") if fields.get("role") == "assistant" else ""
        rows.append(row(whose, HARNESS, number, block_idx, **{**place, "model": model, **fields}))
    if rows and "usage" in memory:
        rows[0].update(memory.pop("usage"))
    return rows


def _whose(meta: dict[str, Any]) -> SessionFile:
    """The thread of a `session_meta`. Its parent is the one that spawned it, a subagent, or that it was forked from."""
    thread = text_of(meta.get("id"))
    spawned = object_of(object_of(object_of(meta.get("source")).get("subagent")).get("thread_spawn"))
    parents = (meta.get("parent_thread_id"), spawned.get("parent_thread_id"), meta.get("session_id"))
    parent = next((text_of(parent) for parent in parents if text_of(parent)), thread)
    if parent != thread:
        return SessionFile(thread, parent, thread)
    return SessionFile(thread, text_of(meta.get("forked_from_id")), "")


def _remember_session(meta: dict[str, Any], memory: dict[str, Any]) -> None:
    """Keep what the file's first `session_meta` says. A later one of another session is copied from there."""
    whose = _whose(meta)
    thread = clean_id(whose.session_id)
    if memory.setdefault("session", thread) != thread:
        return
    memory["parent"], memory["agent_id"] = clean_id(whose.parent_session), clean_id(whose.agent_id)
    memory["has_items"] = meta.get("history_mode") == "paginated"
    memory["branch"] = kept(object_of(meta.get("git")).get("branch"))
    _remember_place(meta, memory)


def _remember_place(turn: dict[str, Any], memory: dict[str, Any]) -> None:
    for name in ("cwd", "model"):
        if told := kept(turn.get(name)):
            memory[name] = told


def _remember_usage(usage: dict[str, Any], response_id: Any, memory: dict[str, Any]) -> None:
    """Keep the usage for the next row, with that of responses before it that no row followed."""
    counts = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "cached_input_tokens",
        "cache_creation_tokens": "cache_write_input_tokens",
    }
    before = memory.get("usage", {})
    after = {column: before.get(column, 0.0) + number_of(usage.get(field)) for column, field in counts.items()}
    memory["usage"] = {**after, "message_id": clean_id(response_id)}


def _of_response(payload: dict[str, Any], about: About, memory: dict[str, Any]) -> list[Fields]:
    """The rows of an item of the model's stream."""
    kind = payload.get("type")
    call_id = clean_id(payload.get("call_id") or payload.get("id"))
    if kind in _CALLS:
        fields = call_of(payload, call_id, text_of(memory.get("cwd")) or about.root, about.root)
        if call_id:
            remember(memory, "calls", call_id, [fields["tool_name"], AWAITED], MAX_CALLS)
        return [fields]
    if kind in _OUTPUTS:
        return _answer(payload, call_id, memory)
    if kind == "agent_message":  # from another agent
        said = [text_of(object_of(part).get("text")) for part in list_of(payload.get("content"))]
        return [{"role": "user", "body": text} for text in said if text]
    if kind == "image_generation_call" and not memory.get("has_items"):
        return item_rows({**payload, "type": "ImageGeneration"}, about.root, memory)
    if kind == "web_search_call" and not memory.get("has_items"):
        fields = {"block_type": "tool_use", "role": "assistant", "tool_name": "web_search", "tool_use_id": call_id}
        return [{**fields, "body": as_json(payload.get("action"))}]
    return []


def _answer(payload: dict[str, Any], call_id: str, memory: dict[str, Any]) -> list[Fields]:
    """The result of a call as its output tells it, unless an item has."""
    name, state = memory.get("calls", {}).pop(call_id, ("", AWAITED))
    if state == ANSWERED:
        return []
    output = output_of(payload)
    if output.is_running and name:
        remember(memory, "calls", call_id, [name, RUNNING], MAX_CALLS)
    told = {
        "body": output.text,
        "is_error": output.failed or (bool(memory.get("has_items")) and output.never_ran(name)),
    }
    return [{"block_type": "tool_result", "role": "user", "tool_name": name, "tool_use_id": call_id, **told}]


def _of_event(payload: dict[str, Any], about: About, memory: dict[str, Any]) -> list[Fields]:
    kind = payload.get("type")
    if kind == "item_completed":
        return item_rows(object_of(payload.get("item")), about.root, memory)
    if kind in ("task_complete", "turn_aborted"):
        told = {name: value for name, value in payload.items() if name not in ("type", "last_agent_message")}
        return [{"block_type": "result", "body": as_json(told), "is_error": kind == "turn_aborted"}]
    if kind == "token_count" and not memory.get("has_items"):
        _remember_count(object_of(payload.get("info")), memory)
    if kind == "user_message" and text_of(payload.get("kind")) not in _CONTEXT_KINDS:
        pictures = [part for name in ("images", "local_images") for part in list_of(payload.get(name)) if part]
        said = [{"role": "user", "body": text_of(payload.get("message"))}]
        said += [{"role": "user", "body": as_json({"type": "image", "image_url": part})} for part in pictures]
        return [fields for fields in said if fields["body"]]
    if kind == "agent_message" and text_of(payload.get("message")):
        return [{"role": "assistant", "body": payload["message"]}]
    if kind in ("agent_reasoning", "agent_reasoning_raw_content") and text_of(payload.get("text")):
        return [{"role": "assistant", "block_type": "thinking", "body": payload["text"]}]
    return []


def _remember_count(info: dict[str, Any], memory: dict[str, Any]) -> None:
    """Keep the usage of the last response, unless the total says that this is the same again."""
    total = number_of(object_of(info.get("total_token_usage")).get("total_tokens"))
    if total != memory.get("total_tokens", 0.0):
        memory["total_tokens"] = total
        _remember_usage(object_of(info.get("last_token_usage")), "", memory)
