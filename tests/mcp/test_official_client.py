"""The official client calls all eight tools with the contract's examples.

The client checks every answer against the tool's output schema, and fails when it does not fit.
"""

import asyncio
import json
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from tests.laptop import Laptop
from tests.mcp.door import DATA, NO_RUN, Json, compact

RUN = "nightly-refactor-1"
SESSION = "5f1c9a2e-7d41-4b0e-9a8c-1e2f3a4b5c01"
BASE_US = 1_793_000_000_000_000
LEASE_US = 600_000_000
SECOND_US = 1_000_000
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])

ROWS: list[Json] = [
    {"seq": 10, "role": "user", "block_type": "text", "body": "Run the tests of the migration"},
    {"seq": 11, "role": "assistant", "block_type": "thinking", "body": "Which package is it?"},
    {
        "seq": 12,
        "role": "assistant",
        "block_type": "tool_use",
        "tool_name": "Bash",
        "tool_use_id": "call-1",
        "command": "go test ./internal",
        "body": '{"command": "go test ./internal"}',
    },
    {
        "seq": 13,
        "role": "user",
        "block_type": "tool_result",
        "tool_name": "Bash",
        "tool_use_id": "call-1",
        "body": "FAIL ./internal",
        "is_error": True,
    },
    {"seq": 14, "role": "assistant", "block_type": "text", "body": "One test fails."},
    {
        "seq": 15,
        "role": "assistant",
        "block_type": "tool_use",
        "tool_name": "Edit",
        "tool_use_id": "call-2",
        "paths": '["src/app.py"]',
        "body": '{"file_path": "src/app.py"}',
    },
    {
        "seq": 16,
        "role": "user",
        "block_type": "tool_result",
        "tool_name": "Edit",
        "tool_use_id": "call-2",
        "body": "ok",
    },
]


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A server that knows the examples' session and nothing else."""
    laptop = Laptop(tmp_path_factory.mktemp("laptop"))
    rows = [{"session_id": SESSION, "_timestamp": BASE_US + row["seq"] * SECOND_US, **row} for row in ROWS]
    response = httpx2.post(
        f"{laptop.url}/ai/sessions/agent_sessions/records",
        json=rows,
        headers={"Authorization": f"Bearer {laptop.key}"},
    )
    assert response.status_code == 202, response.text
    yield laptop
    laptop.stop()


def call_all(
    laptop: Laptop, mode: str, calls: Sequence[tuple[str, Json]], headers: dict[str, str] | None = None
) -> list[CallToolResult]:
    """The results of the calls, made one after the other over one connection that looked at the tools first."""
    sent = {"Authorization": f"Bearer {laptop.key}"} | (headers or {})
    return call_at(f"{laptop.url}/mcp", mode, calls, sent)


def call_at(url: str, mode: str, calls: Sequence[tuple[str, Json]], headers: dict[str, str]) -> list[CallToolResult]:
    """The same at an address, with nothing but these headers."""

    async def connect_and_call() -> list[CallToolResult]:
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                assert len((await client.list_tools()).tools) == 8
                return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(connect_and_call())


def answer_of(result: CallToolResult) -> Json:
    """What the tool answered, seen to be the same as text."""
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    assert [content.model_dump() for content in result.content] == [
        {"type": "text", "text": compact(result.structured_content), "annotations": None, "meta": None}
    ]
    return result.structured_content


@pytest.mark.promise(
    "mcp-search-sessions", "mcp-find-command", "mcp-next-actions", "mcp-fetch-records", "mcp-compact-json"
)
@pytest.mark.promise(
    "mcp-search-sessions", "mcp-find-command", "mcp-next-actions", "mcp-fetch-records", "mcp-compact-json"
)
def test_the_session_tools_answer_the_contracts_examples(laptop: Laptop) -> None:
    examples = _examples("search_sessions", "find_command", "next_actions", "fetch_records")
    expected: list[Json] = [
        {
            "total": 1,
            "offset": 0,
            "capped_at": None,
            "hits": [
                {
                    "session_id": SESSION,
                    "parent_session": "",
                    "seq": 10,
                    "role": "user",
                    "block_type": "text",
                    "tool_name": "",
                    "is_error": False,
                    "snippet": "Run the tests of the migration",
                }
            ],
        },
        {
            "total": 1,
            "offset": 0,
            "occurrences": [
                {"session_id": SESSION, "seq": 12, "tool_name": "Bash", "command": "go test ./internal"},
            ],
        },
        {
            "session_id": SESSION,
            "seq": 12,
            "events": [
                {"seq": 13, "kind": "result", "tool_name": "Bash", "is_error": True, "text": "FAIL ./internal"},
                {
                    "seq": 15,
                    "kind": "call",
                    "tool_name": "Edit",
                    "is_error": False,
                    "text": '{"file_path": "src/app.py"}',
                },
                {"seq": 16, "kind": "result", "tool_name": "Edit", "is_error": False, "text": "ok"},
            ],
            "skipped_text_records": 1,
        },
        {"session_id": SESSION, "rows": [_record(row) for row in ROWS]},
    ]
    for mode in ("auto", "legacy"):
        assert [answer_of(result) for result in call_all(laptop, mode, examples)] == expected


@pytest.mark.promise("mcp-peers", "mcp-post", "mcp-claim", "mcp-release", "mcp-compact-json")
@pytest.mark.promise("mcp-peers", "mcp-post", "mcp-claim", "mcp-release", "mcp-compact-json")
@MODES
def test_the_relay_tools_answer_the_contracts_examples(mode: str, tmp_path: Path) -> None:
    fresh = Laptop(tmp_path)
    try:
        agent_a = {"X-CtrlB-Run": RUN, "X-CtrlB-Agent": "agent-a"}
        agent_b = {"X-CtrlB-Run": RUN, "X-CtrlB-Agent": "agent-b"}
        claims = _examples("claim")
        began_us = time.time_ns() // 1_000
        posted, held, renewed = map(answer_of, call_all(fresh, mode, [*_examples("post", "claim"), *claims], agent_a))
        (refused,) = map(answer_of, call_all(fresh, mode, claims, agent_b))
        released, done, again = map(
            answer_of, call_all(fresh, mode, [*_examples("release"), *claims, *_examples("release")], agent_a)
        )
        (seen,) = map(answer_of, call_all(fresh, mode, _examples("peers")))
        ended_us = time.time_ns() // 1_000
    finally:
        fresh.stop()

    key = {"resource": "src/app.py", "key": "path:src/app.py"}
    assert posted == {"ok": True, "run_id": RUN, "agent": "agent-a"}
    assert held == {"held": True, **key, "lease_until": held["lease_until"]}
    assert renewed == {"held": True, **key, "lease_until": renewed["lease_until"], "renewed": True}
    assert began_us + LEASE_US <= held["lease_until"] < renewed["lease_until"] <= ended_us + LEASE_US
    message = "src/app.py is already held by agent-a; pick something else"
    assert refused == {"held": False, **key, "held_by": "agent-a", "message": message}
    assert released == {"released": 1, "finished": True, **key}
    message = "src/app.py was already finished by agent-a; pick something else"
    assert done == {"held": False, **key, "finished_by": "agent-a", "message": message}
    assert again == {"released": 0, "finished": True, **key}

    assert seen["you"] is None
    times = [event.pop("ts") for event in seen["events"]]
    assert times == sorted(times, reverse=True)
    assert began_us <= times[-1] <= times[0] <= ended_us
    assert all(0 <= event.pop("age_s") <= 60 for event in seen["events"])
    note = {"resource": "", "key": "", "text": "Taking src/parser/lexer.py"}
    assert seen["events"] == [
        {"agent": "agent-a", "kind": "REFUSED", **key, "text": "already finished by agent-a"},
        {"agent": "agent-a", "kind": "DONE", **key, "text": ""},
        {"agent": "agent-b", "kind": "REFUSED", **key, "text": "already held by agent-a"},
        {"agent": "agent-a", "kind": "HOLD", **key, "text": ""},
        {"agent": "agent-a", "kind": "HOLD", **key, "text": ""},
        {"agent": "agent-a", "kind": "NOTE", **note},
    ]


@pytest.mark.promise("mcp-run-id-required")
@MODES
def test_a_mistake_comes_back_as_a_tool_error(mode: str, laptop: Laptop) -> None:
    (result,) = call_all(laptop, mode, _examples("claim"))
    assert result.is_error
    assert result.structured_content is None
    (content,) = result.content
    assert json.loads(content.model_dump()["text"]) == {"error": NO_RUN}


@pytest.mark.promise("mcp-add-by-hand")
def test_the_line_for_claude_code_that_is_printed_at_the_start_connects(laptop: Laptop) -> None:
    (line,) = (line.strip() for line in laptop.greeting.splitlines() if "claude mcp add" in line)
    *command, url, flag, header = shlex.split(line)
    assert (command, flag) == (["claude", "mcp", "add", "--transport", "http", "ctrlb"], "--header")
    name, _, value = header.partition(": ")
    (result,) = call_at(url, "auto", _examples("peers"), {name: value})
    assert answer_of(result) == {"you": None, "events": []}


def _examples(*names: str) -> list[tuple[str, Json]]:
    """The contract's calls of these tools, as written there."""
    written = {call["name"]: call["arguments"] for call in json.loads((DATA / "tool_calls.json").read_text())}
    return [(name, written[name]) for name in names]


def _record(row: Json) -> dict[str, Any]:
    """What fetch_records answers for an uploaded row."""
    columns = dict.fromkeys(("tool_name", "tool_use_id", "command", "paths"), "")
    return {
        "ts": BASE_US + row["seq"] * SECOND_US,
        "block_idx": 0,
        "is_error": False,
        "body_len": len(row["body"]),
        **columns,
        **row,
    }
