"""HTTP and MCP answer the same: every operation that is a tool is called through both doors.

Reads are asked of the same rows. Writes are made on twin runs, so that neither sees the other's.
"""

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from ctrlb.operations import OPERATIONS, Operation
from tests.acceptance.calls import eventually, fresh_word, row, upload
from tests.mcp.door import LEGACY, MODERN, Json, McpDoor, compact

TOOLS = {operation.name: operation for operation in OPERATIONS if operation.tool}
DATASET = "agent_sessions"
VARYING = ("lease_until", "ts", "age_s")
"""What differs between two calls a moment apart."""


@dataclass(frozen=True)
class Outcome:
    """How a call ended, through whichever door."""

    refused: bool
    answer: Json


def over_http(http: httpx2.Client, operation: Operation, arguments: Json) -> tuple[int, Json]:
    """The operation's route, its fields where HTTP takes them."""
    fields = {"dataset": DATASET, **arguments}

    def placed(match: re.Match[str]) -> str:
        return str(fields.pop(match[1]))

    path = re.sub(r"\{(\w+)\}", placed, operation.path)
    if operation.method == "GET":
        response = http.get(path, params=fields)
    else:
        response = http.request(operation.method, path, json=fields)
    answer: Json = response.json()
    return response.status_code, answer


def over_mcp(mcp: McpDoor, operation: Operation, arguments: Json, era: str) -> Outcome:
    """The tool."""
    result = mcp.call(operation.name, arguments, era=era)
    answer: Json = json.loads(result["content"][0]["text"])
    if not result["isError"]:
        assert result["structuredContent"] == answer
    assert result["content"] == [{"type": "text", "text": compact(answer)}]
    return Outcome(result["isError"], answer)


def assert_same(operation: Operation, status: int, by_http: Json, by_mcp: Outcome) -> None:
    """Equal answers, but for the fields that HTTP is declared not to show, or equal errors."""
    assert by_mcp.refused == (status >= 400), (status, by_http, by_mcp)
    if not by_mcp.refused:
        assert status == operation.status
        if operation.http_fields is not None:
            by_mcp = Outcome(False, {name: by_mcp.answer[name] for name in operation.http_fields})
    assert by_http == by_mcp.answer


READS: dict[str, list[Json]] = {
    "search_sessions": [
        {"term": "{word}"},
        {"term": "{word}", "order": "oldest", "limit": 2},
        {"term": "{word}", "offset": 1, "tool": "Bash"},
        {"term": "{word}", "session_id": "{session}", "one_per_session": True},
        {"term": "{word} not there"},
        {"term": "{word}", "dataset": DATASET},
    ],
    "find_command": [
        {"command": "{word}"},
        {"command": "run   {word}", "limit": 1, "offset": 1},
        {"command": "{word} not there"},
    ],
    "next_actions": [
        {"session_id": "{session}", "seq": 1},
        {"session_id": "{session}", "seq": 1, "k": 1, "tool": "Bash"},
    ],
    "fetch_records": [
        {"session_id": "{session}", "seq_from": 0, "seq_to": 100},
        {"session_id": "{session}", "seq_from": 90, "seq_to": 91},
    ],
    "peers": [{"run_id": "{run}"}, {"run_id": "{run}", "agent": "agent-b", "limit": 1}, {"run_id": "{run}-empty"}],
}

WRITES: list[tuple[str, Json]] = [
    ("post", {"agent": "agent-a", "text": "Taking src/app.py"}),
    ("claim", {"agent": "agent-a", "resource": "src/app.py"}),
    ("claim", {"agent": "agent-a", "resource": "./src//app.py"}),
    ("claim", {"agent": "agent-b", "resource": "/work/app/src/app.py", "cwd": "/work/app"}),
    ("release", {"agent": "agent-b", "resource": "src/app.py"}),
    ("release", {"agent": "agent-a", "resource": "path:src/app.py", "finished": False}),
    ("claim", {"agent": "agent-b", "resource": "src/app.py", "dataset": DATASET}),
    ("release", {"agent": "agent-b", "resource": "src/app.py", "finished": True}),
    ("claim", {"agent": "agent-a", "resource": "src/app.py"}),
    ("claim", {"agent": "agent-a", "resource": "Task 04  Charts"}),
    ("post", {"agent": "agent-a", "text": "x" * 2_001}),
    ("peers", {"agent": "agent-a"}),
]

MISTAKES: list[tuple[str, Json]] = [
    ("search_sessions", {}),
    ("search_sessions", {"term": ""}),
    ("search_sessions", {"term": "ab"}),
    ("search_sessions", {"term": "a" * 1_001}),
    ("search_sessions", {"term": "word", "order": "sideways"}),
    ("search_sessions", {"term": "word", "limit": 26}),
    ("search_sessions", {"term": "word", "limit": 0}),
    ("search_sessions", {"term": "word", "offset": -1}),
    ("search_sessions", {"term": "word", "offset": 10_000}),
    ("search_sessions", {"term": "word", "session_id": "a/b"}),
    ("search_sessions", {"term": "word", "dataset": "no dataset"}),
    ("find_command", {}),
    ("find_command", {"command": ""}),
    ("find_command", {"command": "  "}),
    ("find_command", {"command": "go", "limit": 26}),
    ("find_command", {"command": "go", "dataset": "_ctrlb_relay_agent_sessions"}),
    ("next_actions", {"session_id": "{unknown}", "seq": 1}),
    ("next_actions", {"session_id": "{session}", "seq": 3}),
    ("next_actions", {"session_id": "{session}", "seq": 2**53}),
    ("next_actions", {"session_id": "{session}", "seq": 1, "k": 9}),
    ("next_actions", {"session_id": "{session}"}),
    ("fetch_records", {"session_id": "{unknown}", "seq_from": 1, "seq_to": 2}),
    ("fetch_records", {"session_id": "{session}", "seq_from": 2, "seq_to": 1}),
    ("fetch_records", {"session_id": "{session}", "seq_from": 1}),
    ("fetch_records", {"session_id": "x" * 201, "seq_from": 1, "seq_to": 2}),
    ("peers", {"run_id": "{run}", "limit": 501}),
    ("peers", {"run_id": "{run}", "limit": 0}),
    ("peers", {"run_id": "x" * 201}),
    ("peers", {"run_id": "{run}", "agent": "a/b"}),
    ("post", {"run_id": "{run}", "agent": "agent-a"}),
    ("post", {"run_id": "{run}", "text": "hello"}),
    ("post", {"run_id": "{run}", "agent": "", "text": "hello"}),
    ("post", {"run_id": "{run}", "agent": "agent-a", "text": ""}),
    ("post", {"run_id": "{run}", "agent": "agent-a", "text": 5}),
    ("post", {"run_id": "{run}", "agent": 0, "text": "hello"}),
    ("post", {"run_id": "{run}", "agent": ["agent-a"], "text": "hello"}),
    ("post", {"run_id": "{run}", "agent": "a" * 201, "text": "hello"}),
    ("claim", {"run_id": "{run}", "agent": "agent-a"}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": ""}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": " "}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": "a/\u0000"}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": "x" * 4_097}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": ["a.py"]}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": "a.py", "cwd": 5}),
    ("claim", {"run_id": "{run}", "agent": "agent\u0007", "resource": "a.py"}),
    ("claim", {"run_id": "{run}", "agent": "agent-a", "resource": "a.py", "dataset": "elsewhere"}),
    ("release", {"run_id": "{run}", "agent": "agent-a"}),
    ("release", {"run_id": "{run}", "agent": "agent-a", "resource": "a.py", "finished": "yes"}),
    ("release", {"run_id": "{run}", "agent": "agent-a", "resource": "a.py", "finished": 1}),
    ("release", {"run_id": "{run}", "resource": "a.py"}),
]


@pytest.fixture(scope="module")
def known(http: httpx2.Client) -> dict[str, str]:
    """A session of four rows and a run of two notes, by the names that the cases give them."""
    word, session, run = fresh_word(), f"session-{uuid.uuid4().hex}", f"run-{uuid.uuid4().hex}"
    upload(
        http,
        row(session, 1, block_type="tool_use", tool_name="Bash", tool_use_id="c1", command=f"run {word}"),
        row(
            session, 2, block_type="tool_result", tool_name="Bash", tool_use_id="c1", body=f"é {word} ✓", is_error=True
        ),
        row(session, 3, body=f"about {word}", role="assistant"),
        row(session, 4, block_type="tool_use", tool_name="Edit", tool_use_id="c2", command=f"run  {word} again"),
    )
    for agent in ("agent-a", "agent-b"):
        assert (
            http.post(f"/ai/relay/{DATASET}/runs/{run}/posts", json={"agent": agent, "text": "hi"}).status_code == 201
        )

    def is_found() -> None:
        assert http.get(f"/ai/sessions/{DATASET}/search", params={"term": word}).json()["total"] == 4

    eventually(is_found)
    return {"{word}": word, "{session}": session, "{run}": run, "{unknown}": f"session-{uuid.uuid4().hex}"}


def test_every_tool_is_called_through_both_doors() -> None:
    assert {*READS, *(name for name, _ in WRITES)} == set(TOOLS)
    assert {name for name, _ in MISTAKES} == set(TOOLS)


@pytest.mark.promise("mcp-same-as-http")
@pytest.mark.promise("mcp-same-as-http", "http-session-routes")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize(("name", "arguments"), [(name, case) for name, cases in READS.items() for case in cases])
def test_a_read_answers_the_same(
    http: httpx2.Client, mcp: McpDoor, known: dict[str, str], name: str, arguments: Json, era: str
) -> None:
    asked = _filled(arguments, known)
    status, by_http = over_http(http, TOOLS[name], asked)
    by_mcp = over_mcp(mcp, TOOLS[name], asked, era)
    assert status == 200, by_http
    assert_same(
        TOOLS[name], status, _without(by_http, "age_s"), Outcome(by_mcp.refused, _without(by_mcp.answer, "age_s"))
    )


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_writes_on_twin_runs_answer_the_same(http: httpx2.Client, mcp: McpDoor, run_id: str, era: str) -> None:
    by_http_run, by_mcp_run = f"{run_id}-http", f"{run_id}-mcp"
    for name, arguments in WRITES:
        status, by_http = over_http(http, TOOLS[name], {"run_id": by_http_run, **arguments})
        by_mcp = over_mcp(mcp, TOOLS[name], {"run_id": by_mcp_run, **arguments}, era)
        assert status < 300, (name, arguments, by_http)
        assert by_mcp.answer.get("run_id") in (None, by_mcp_run)
        assert_same(TOOLS[name], status, _without(by_http, *VARYING), Outcome(False, _without(by_mcp.answer, *VARYING)))


@pytest.mark.promise("mcp-acts-as-person")
def test_an_agent_is_the_same_through_both_doors(http: httpx2.Client, mcp: McpDoor, run_id: str) -> None:
    mine = {"run_id": run_id, "agent": "agent-a", "resource": "src/app.py"}
    _, held = over_http(http, TOOLS["claim"], mine)
    renewed = over_mcp(mcp, TOOLS["claim"], mine, MODERN).answer
    assert (held["held"], renewed["held"], renewed["renewed"]) == (True, True, True)
    assert over_http(http, TOOLS["release"], mine) == (
        200,
        {"released": 1, "finished": True, "resource": "src/app.py", "key": "path:src/app.py"},
    )


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize(("name", "arguments"), MISTAKES)
def test_a_mistake_is_told_in_the_same_words(
    http: httpx2.Client, mcp: McpDoor, known: dict[str, str], name: str, arguments: Json, era: str
) -> None:
    asked = _filled(arguments, known)
    status, by_http = over_http(http, TOOLS[name], asked)
    by_mcp = over_mcp(mcp, TOOLS[name], asked, era)
    assert 400 <= status < 500, by_http
    assert set(by_http) == {"error"}
    assert_same(TOOLS[name], status, by_http, by_mcp)


@pytest.mark.promise("mcp-acts-as-person")
@pytest.mark.parametrize("authorization", ["", "Bearer nonsense", "Bearer ctrlb_local_AAAAAAAAAAAA_" + "A" * 49])
@pytest.mark.parametrize("name", TOOLS)
def test_a_refused_key_is_told_in_the_same_words(
    http: httpx2.Client, mcp: McpDoor, name: str, authorization: str
) -> None:
    path = re.sub(r"\{\w+\}", "x", TOOLS[name].path)
    by_http = http.request(TOOLS[name].method, path, headers={"Authorization": authorization})
    by_mcp = mcp.ask(LEGACY, "tools/call", {"name": name, "arguments": {}}, {"Authorization": authorization})
    seen: list[Callable[[httpx2.Response], Any]] = [
        lambda response: response.status_code,
        lambda response: response.headers["www-authenticate"],
        lambda response: response.json(),
    ]
    assert [look(by_http) for look in seen] == [look(by_mcp) for look in seen]


def _filled(arguments: Json, known: dict[str, str]) -> Json:
    """The arguments with the names in braces replaced."""
    filled = {}
    for name, value in arguments.items():
        for placeholder, stands_for in known.items():
            value = value.replace(placeholder, stands_for) if isinstance(value, str) else value
        filled[name] = value
    return filled


def _without(value: Any, *names: str) -> Any:
    """The value without the fields of these names, at any depth."""
    if isinstance(value, list):
        return [_without(item, *names) for item in value]
    if isinstance(value, dict):
        return {name: _without(field, *names) for name, field in value.items() if name not in names}
    return value
