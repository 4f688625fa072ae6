"""Nothing that a client sends makes the MCP server fail, or wait for what never comes."""

import gzip
import json
from typing import Any

import pytest

from tests.mcp.door import LEGACY, META, MODERN, Json, McpDoor

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])
MIB = 1024 * 1024


@ERAS
@pytest.mark.parametrize(
    "body",
    [
        "",
        "not JSON",
        '{"jsonrpc": "2.0", "id": 1, "method": "ping"',
        b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
        "[" * 100_000,
        '{"a":' * 50_000,
        f'{{"jsonrpc": "2.0", "id": {"9" * 5_000}, "method": "ping"}}',
    ],
    ids=["nothing", "words", "cut off", "not UTF-8", "deep arrays", "deep objects", "a number of 5,000 digits"],
)
def test_a_body_that_is_not_json_is_a_parse_error(mcp: McpDoor, era: str, body: str | bytes) -> None:
    response = mcp.send(body, {"MCP-Protocol-Version": era})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32700
    assert response.json()["id"] is None


@ERAS
@pytest.mark.parametrize(
    "body",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}],
        5,
        None,
        "text",
        {},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]},
    ],
    ids=json.dumps,
)
def test_json_that_is_no_request_is_an_error_and_a_batch_too(mcp: McpDoor, era: str, body: Any) -> None:
    response = mcp.send(json.dumps(body), {"MCP-Protocol-Version": era})
    assert response.status_code == 400
    assert response.json()["error"]["code"] in (-32600, -32602)


@ERAS
@pytest.mark.parametrize(
    "params",
    [{}, {"name": 5}, {"name": "peers", "arguments": [1]}, {"name": "peers", "arguments": "x"}],
    ids=json.dumps,
)
def test_a_malformed_tool_call_is_an_error_of_the_request(mcp: McpDoor, era: str, params: Json) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": META, **params}}
    headers = {"MCP-Protocol-Version": era, "Mcp-Method": "tools/call"}
    if era == MODERN and "name" in params:
        headers["Mcp-Name"] = str(params["name"])
    response = mcp.send(request, headers)
    assert response.status_code == (400 if era == MODERN else 200)
    assert response.json()["error"]["code"] in (-32602, -32020)


@ERAS
@pytest.mark.parametrize("tool", ["no_such_tool", "", "check", "upload_records", "Peers"])
def test_a_tool_that_is_not_there_names_those_that_are(mcp: McpDoor, era: str, tool: str) -> None:
    error = mcp.error(tool, {"run_id": "r"}, era=era)["error"]
    assert error.startswith("there is no such tool; the tools are search_sessions, ")


@ERAS
@pytest.mark.parametrize("half", ["\\ud800", "\\udc00x", "x\\ud83d"])
def test_half_a_character_is_refused_in_every_argument_that_is_text(mcp: McpDoor, era: str, half: str) -> None:
    for tool, listed in mcp.tools().items():
        for name, schema in listed["inputSchema"]["properties"].items():
            if schema["type"] == "string" and "enum" not in schema:
                request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
                request["params"] = {"name": tool, "arguments": _filled(listed) | {name: "HALF"}, "_meta": META}
                body = json.dumps(request).replace("HALF", half)
                headers = {"MCP-Protocol-Version": era, "Mcp-Method": "tools/call", "Mcp-Name": tool}
                response = mcp.send(body, headers)
                if era == MODERN:
                    told = json.loads(response.json()["result"]["content"][0]["text"])
                    assert told["error"].startswith(f"{name}: "), (tool, told)
                else:
                    assert response.json()["error"]["code"] == -32700, (tool, name)


@ERAS
def test_a_gzip_body_is_read(mcp: McpDoor, era: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})
    headers = {"Content-Encoding": "gzip", "MCP-Protocol-Version": era, "Mcp-Method": "tools/list"}
    response = mcp.send(gzip.compress(body.encode()), headers)
    assert len(response.json()["result"]["tools"]) == 8


@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (b"not gzip", "gzip", 400),
        (gzip.compress(b'{"jsonrpc": "2.0"}' * 99)[:-9], "gzip", 400),
        (gzip.compress(b" " * 50 * MIB), "gzip", 413),
        (b" " * (4 * MIB + 1), "identity", 413),
        (b"{}", "br", 400),
    ],
    ids=["not gzip", "cut off", "a bomb", "4 MiB and one byte", "br"],
)
def test_a_body_that_is_broken_or_too_large_is_refused_in_the_one_shape(
    mcp: McpDoor, body: bytes, encoding: str, status: int
) -> None:
    response = mcp.send(body, {"Content-Encoding": encoding})
    assert response.status_code == status
    assert set(response.json()) == {"error"}


@ERAS
def test_a_note_of_four_megabytes_is_taken_and_cut(mcp: McpDoor, era: str, run_id: str) -> None:
    mcp.answer("post", {"run_id": run_id, "agent": "agent-a", "text": "x" * (4 * MIB - 2_000)}, era=era)
    (event,) = mcp.answer("peers", {"run_id": run_id}, era=era)["events"]
    assert event["text"] == "x" * 300


def _filled(tool: Json) -> Json:
    """Arguments that would do, were it not for the one that a test breaks."""
    values: Json = {"run_id": "run-1", "agent": "agent-a"}
    return {
        name: values.get(name, "text" if schema["type"] == "string" else 1)
        for name, schema in tool["inputSchema"]["properties"].items()
        if name in values or name in tool["inputSchema"].get("required", [])
    }
