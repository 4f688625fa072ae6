"""What a session's file says, read by the tests themselves: every content block in order."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.real_clients.script import Json

MADE = ("function_call", "custom_tool_call")
CARRIED_OUT = ("CommandExecution", "FileChange", "McpToolCall")


class Block(NamedTuple):
    """One content block."""

    seq: int
    """The number of its line, from 1."""
    role: str
    kind: str
    tool_use_id: str
    content: Json | str
    """The input of a tool call, or the text of anything else."""


def lines_of(path: Path) -> list[Json]:
    """The lines of the file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def claude_blocks(path: Path) -> list[Block]:
    """Every block that the user, the model or a tool has put into Claude Code's transcript."""
    return [
        _claude_block(seq, line["message"]["role"], block)
        for seq, line in enumerate(lines_of(path), 1)
        if line["type"] in ("user", "assistant")
        for block in _content(line["message"]["content"])
    ]


def _content(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _claude_block(seq: int, role: str, block: Json) -> Block:
    match block["type"]:
        case "tool_use":
            return Block(seq, role, "tool_use", block["id"], block["input"])
        case "tool_result":
            texts = "\n".join(part["text"] for part in _content(block.get("content", "")))
            return Block(seq, role, "tool_result", block["tool_use_id"], texts)
        case kind:
            return Block(seq, role, kind, "", block[kind])


def codex_messages(path: Path) -> Iterator[tuple[str, str]]:
    """The kind and text of what the user, the model and a compaction have said, in the order of Codex's rollout."""
    for line in lines_of(path):
        item = line["payload"].get("item", {}) if line["type"] == "event_msg" else {}
        match item.get("type", line["type"]):
            case "UserMessage" | "AgentMessage":
                yield "text", "".join(part["text"] for part in item["content"])
            case "Reasoning":
                yield "thinking", "".join(item["summary_text"])
            case "compacted":
                yield "text", line["payload"]["message"]


def codex_calls(path: Path) -> set[str]:
    """The ids of the tool calls in Codex's rollout: those that the model made, and those that its scripts made."""
    payloads = [line["payload"] for line in lines_of(path)]
    made = {payload["call_id"] for payload in payloads if payload.get("type") in MADE}
    items = [payload["item"] for payload in payloads if payload.get("type") == "item_completed"]
    return made | {item["id"] for item in items if item["type"] in CARRIED_OUT}
