"""The contract's "Relay tools": which tools there are, what they take, and when they may be called."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator

from ctrlb.operations import OPERATIONS
from tests.laptop import Laptop
from tests.mcp.door import LEGACY, MODERN, NO_RUN, McpDoor

ARGUMENTS = {
    "search_sessions": ["dataset", "limit", "offset", "one_per_session", "order", "session_id", "term", "tool"],
    "find_command": ["command", "dataset", "limit", "offset"],
    "next_actions": ["dataset", "k", "seq", "session_id", "tool"],
    "fetch_records": ["dataset", "seq_from", "seq_to", "session_id"],
    "peers": ["agent", "dataset", "limit", "run_id"],
    "post": ["agent", "dataset", "run_id", "text"],
    "claim": ["agent", "cwd", "dataset", "resource", "run_id"],
    "release": ["agent", "cwd", "dataset", "finished", "resource", "run_id"],
}
REQUIRED = {
    "search_sessions": ["term"],
    "find_command": ["command"],
    "next_actions": ["seq", "session_id"],
    "fetch_records": ["seq_from", "seq_to", "session_id"],
    "peers": [],
    "post": ["text"],
    "claim": ["resource"],
    "release": ["resource"],
}
WRITE_TOOLS = {"post": {"text": "hello"}, "claim": {"resource": "a.py"}, "release": {"resource": "a.py"}}
ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])


@pytest.mark.promise("mcp-eight-tools")
@pytest.mark.promise("mcp-eight-tools")
@ERAS
def test_there_are_eight_tools_with_the_contracts_arguments(mcp: McpDoor, era: str) -> None:
    tools = mcp.tools(era)
    assert {name: sorted(tool["inputSchema"]["properties"]) for name, tool in tools.items()} == ARGUMENTS
    assert {name: sorted(tool["inputSchema"].get("required", [])) for name, tool in tools.items()} == REQUIRED


def test_every_operation_that_is_a_tool_is_listed_and_no_other(mcp: McpDoor) -> None:
    assert set(mcp.tools()) == {operation.name for operation in OPERATIONS if operation.tool}


def test_a_tool_says_what_it_is_for_and_what_each_argument_means(mcp: McpDoor) -> None:
    for name, tool in mcp.tools().items():
        assert len(tool["description"]) > 40, name
        assert "\n" not in tool["description"], name


def test_codex_runs_every_tool_unasked(mcp: McpDoor) -> None:
    for name, tool in mcp.tools().items():
        hints = tool["annotations"]
        assert hints["readOnlyHint"] or (not hints["destructiveHint"] and not hints["openWorldHint"]), name
        assert hints["readOnlyHint"] == (name not in WRITE_TOOLS), name


@ERAS
def test_schemas_are_json_schema_of_objects(mcp: McpDoor, era: str) -> None:
    for name, tool in mcp.tools(era).items():
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object", name


@ERAS
def test_the_instructions_say_when_to_call_each_tool(mcp: McpDoor, era: str) -> None:
    said = _introduction(mcp, era)["instructions"]
    for name in ARGUMENTS:
        assert f"`{name}`" in said
    assert said.index("`peers`") < said.index("`claim`") < said.index("`release`")


@ERAS
def test_no_stream_of_changes_is_announced(mcp: McpDoor, era: str) -> None:
    assert _introduction(mcp, era)["capabilities"] == {"tools": {"listChanged": False}}


@pytest.mark.promise("mcp-run-id-required", "mcp-headers-absent")
@pytest.mark.promise("mcp-run-id-required", "mcp-headers-absent")
@ERAS
@pytest.mark.parametrize("tool", ["peers", *WRITE_TOOLS])
@pytest.mark.parametrize("headers", [{}, {"X-CtrlB-Run": ""}, {"X-CtrlB-Run": "${CTRLB_RUN}"}], ids=str)
def test_a_call_without_a_run_id_says_how_to_pass_one(
    mcp: McpDoor, era: str, tool: str, headers: dict[str, str]
) -> None:
    arguments = WRITE_TOOLS.get(tool, {})
    for run_id in ({}, {"run_id": ""}, {"run_id": None}):
        assert mcp.error(tool, {**arguments, **run_id}, headers, era) == {"error": NO_RUN}


@pytest.mark.promise("mcp-agent-required", "mcp-headers-absent")
@pytest.mark.promise("mcp-agent-required", "mcp-headers-absent")
@ERAS
@pytest.mark.parametrize("tool", WRITE_TOOLS)
@pytest.mark.parametrize("agent", ["", "${CTRLB_AGENT}"])
def test_a_write_without_an_agent_says_how_to_pass_one(
    mcp: McpDoor, era: str, tool: str, agent: str, run_id: str
) -> None:
    error = mcp.error(tool, WRITE_TOOLS[tool], {"X-CtrlB-Run": run_id, "X-CtrlB-Agent": agent}, era)
    assert error == {"error": "agent is required: pass agent, or connect with the X-CtrlB-Agent header set"}


@pytest.mark.promise("mcp-ids-from-headers")
@pytest.mark.promise("mcp-ids-from-headers", "mcp-post")
@ERAS
def test_run_and_agent_come_from_the_connection_unless_they_are_passed(mcp: McpDoor, era: str, run_id: str) -> None:
    connection = {"X-CtrlB-Run": run_id, "X-CtrlB-Agent": "agent-a"}
    posted = mcp.answer("post", {"text": "one"}, connection, era)
    assert posted == {"ok": True, "run_id": run_id, "agent": "agent-a"}
    posted = mcp.answer("post", {"text": "and", "run_id": "", "agent": None}, connection, era)
    assert posted == {"ok": True, "run_id": run_id, "agent": "agent-a"}
    posted = mcp.answer("post", {"text": "two", "run_id": f"{run_id}-b", "agent": "agent-b"}, connection, era)
    assert posted == {"ok": True, "run_id": f"{run_id}-b", "agent": "agent-b"}
    seen = mcp.answer("peers", {}, connection, era)
    assert seen["you"] == "agent-a"
    assert [(event["agent"], event["text"]) for event in seen["events"]] == [
        ("agent-a", "and"),
        ("agent-a", "one"),
    ]


def test_peers_needs_no_agent(mcp: McpDoor, run_id: str) -> None:
    assert mcp.answer("peers", {"run_id": run_id}) == {"you": None, "events": []}


@pytest.mark.promise("mcp-dataset")
@pytest.mark.promise("mcp-dataset")
@ERAS
def test_every_tool_takes_the_workspaces_dataset_by_name(mcp: McpDoor, era: str, run_id: str) -> None:
    connection = {"X-CtrlB-Run": run_id, "X-CtrlB-Agent": "agent-a"}
    for tool, arguments in WRITE_TOOLS.items():
        mcp.answer(tool, {**arguments, "dataset": "agent_sessions"}, connection, era)
        mcp.answer(tool, {**arguments, "dataset": ""}, connection, era)
        error = mcp.error(tool, {**arguments, "dataset": "elsewhere"}, connection, era)
        assert "agent_sessions" in error["error"]
        assert "elsewhere" in error["error"]
    assert len(mcp.answer("peers", {"dataset": "agent_sessions"}, connection, era)["events"]) >= len(WRITE_TOOLS)
    assert mcp.answer("peers", {"dataset": "elsewhere"}, connection, era)["events"] == []


@pytest.mark.promise("mcp-write-tools")
@pytest.mark.promise("mcp-write-tools")
def test_write_tools_are_neither_listed_nor_run_while_they_are_switched_off(tmp_path: Path) -> None:
    connection = {"X-CtrlB-Run": "run-1", "X-CtrlB-Agent": "agent-a"}
    laptop = Laptop(tmp_path)
    try:
        person = _sign_in(laptop)
        with McpDoor(laptop.url, laptop.key) as door:
            _switch_write_tools(laptop.url, person, on=False)
            for era in (LEGACY, MODERN):
                assert set(door.tools(era)) == set(ARGUMENTS) - set(WRITE_TOOLS)
                for tool, arguments in WRITE_TOOLS.items():
                    error = door.error(tool, arguments, connection, era)["error"]
                    assert error.startswith("write tools are off on this workspace's MCP server")
                assert door.answer("peers", {}, connection, era)["events"] == []
            _switch_write_tools(laptop.url, person, on=True)
            assert set(door.tools()) == set(ARGUMENTS)
            assert door.answer("claim", {"resource": "a.py"}, connection)["held"] is True
    finally:
        laptop.stop()


def _introduction(mcp: McpDoor, era: str) -> dict[str, Any]:
    if era == MODERN:
        result = mcp.ask(era, "server/discover", {}).json()["result"]
    else:
        client = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        result = mcp.ask(era, "initialize", client).json()["result"]
    assert isinstance(result, dict)
    return result


def _sign_in(laptop: Laptop) -> str:
    response = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code})
    assert response.status_code == 200, response.text
    token: str = response.json()["token"]
    return token


def _switch_write_tools(url: str, token: str, *, on: bool) -> None:
    response = httpx2.put(
        f"{url}/ai/relay/settings", json={"writeTools": on}, headers={"Authorization": f"Bearer {token}"}
    )
    assert response.status_code == 200, response.text
