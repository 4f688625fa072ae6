"""What real clients sent, replayed with their own headers: Claude Code 2.1.332, Codex 0.171.0, Inspector 2.12.0.

The recordings in tests/data/mcp called a probe server. Replaced are the key, the run, and the probe's
tools by ours: whoami by peers, add by claim, toolerror by a post without text, boom by a tool that is
not there.
"""

import json
from typing import Any

import httpx2
import pytest

from tests.mcp.door import DATA, NO_RUN, Json, McpDoor

OURS: dict[str, tuple[str, Json]] = {
    "whoami": ("peers", {}),
    "add": ("claim", {"resource": "src/app.py"}),
    "toolerror": ("post", {}),
    "boom": ("no_such_tool", {}),
}
RECORDED_RUNS = ("run-123", "run-1", "r")
INITIALIZING = [
    ("claude-fallback-to-initialize", "2025-11-25"),
    ("codex-2025-06-18", "2025-06-18"),
    ("inspector", "2025-11-25"),
]
DISCOVERING = ["claude-2026-07-28", "codex-2026-07-28", "claude-unset-variable"]
WITH_TOOLS = [client for client, _ in INITIALIZING] + ["claude-2026-07-28", "codex-2026-07-28"]


class Recording:
    """A client's exchanges, to be sent again."""

    def __init__(self, client: str, mcp: McpDoor, run_id: str) -> None:
        self._exchanges = {exchange["name"]: exchange for exchange in json.loads((DATA / f"{client}.json").read_text())}
        self._mcp = mcp
        self._run_id = run_id

    def names(self) -> list[str]:
        """What was recorded, in alphabetical order."""
        return sorted(self._exchanges)

    def send(self, name: str, *, key: str | None = None) -> httpx2.Response:
        """The exchange's request, with the deployment's key or another."""
        exchange = self._exchanges[name]
        headers: dict[str, str] = dict(exchange["headers"])
        body: Any = exchange["body"]
        if key is None:
            headers["authorization"] = f"Bearer {self._mcp.key}"
        if headers.get("x-ctrlb-run") in RECORDED_RUNS:
            headers["x-ctrlb-run"] = self._run_id
        if name.startswith("tools_call"):
            tool, arguments = OURS[body["params"]["name"]]
            body["params"] |= {"name": tool, "arguments": arguments}
            if "mcp-name" in headers:
                headers["mcp-name"] = tool
        content = None if body is None else json.dumps(body, separators=(",", ":"))
        return self._mcp.request(exchange["method"], exchange.get("path", "/mcp"), headers, content)


def result_of(response: httpx2.Response) -> Json:
    """The result in an answer that went well."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in response.headers
    message = response.json()
    assert set(message) == {"jsonrpc", "id", "result"}
    result: Json = message["result"]
    return result


def assert_complete(result: Json) -> None:
    """What every result of the stateless era carries."""
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "ctrlb"


@pytest.mark.parametrize("client", DISCOVERING)
def test_a_client_of_2026_discovers_the_server(client: str, mcp: McpDoor, run_id: str) -> None:
    result = result_of(Recording(client, mcp, run_id).send("server_discover"))
    assert_complete(result)
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["instructions"].startswith("CtrlB lets agents")
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.parametrize(("client", "version"), INITIALIZING)
def test_a_client_of_2025_initializes_with_its_own_version(
    client: str, version: str, mcp: McpDoor, run_id: str
) -> None:
    recording = Recording(client, mcp, run_id)
    result = result_of(recording.send("initialize"))
    assert set(result) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"]["name"] == "ctrlb"
    response = recording.send("notifications_initialized")
    assert (response.status_code, response.text) == (202, "")


@pytest.mark.parametrize("client", ["claude-fallback-to-initialize", "inspector"])
def test_a_client_that_asks_for_a_stream_is_told_that_there_is_none(client: str, mcp: McpDoor, run_id: str) -> None:
    response = Recording(client, mcp, run_id).send("GET")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert set(response.json()) == {"error"}


@pytest.mark.parametrize("client", WITH_TOOLS)
def test_a_client_lists_the_eight_tools(client: str, mcp: McpDoor, run_id: str) -> None:
    result = result_of(Recording(client, mcp, run_id).send("tools_list"))
    assert {tool["name"] for tool in result["tools"]} == set(mcp.tools())
    assert "nextCursor" not in result
    if "2026" in client:
        assert_complete(result)
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.promise("mcp-ids-from-headers")
@pytest.mark.parametrize(
    ("client", "exchange", "you"),
    [
        ("claude-2026-07-28", "tools_call-whoami", "agent-7"),
        ("claude-fallback-to-initialize", "tools_call", None),
        ("codex-2025-06-18", "tools_call-whoami", "agent-7"),
        ("inspector", "tools_call-whoami", None),
    ],
)
def test_a_tool_call_is_for_the_run_and_agent_of_the_headers(
    client: str, exchange: str, you: str | None, mcp: McpDoor, run_id: str
) -> None:
    mcp.answer("post", {"run_id": run_id, "agent": "agent-b", "text": f"seen by {client}"})
    result = result_of(Recording(client, mcp, run_id).send(exchange))
    assert result["isError"] is False
    answer = result["structuredContent"]
    assert answer["you"] == you
    assert [event["text"] for event in answer["events"]] == [f"seen by {client}"]
    assert json.loads(result["content"][0]["text"]) == answer


def test_codex_with_its_2026_flag_claims_a_file(mcp: McpDoor, run_id: str) -> None:
    result = result_of(Recording("codex-2026-07-28", mcp, run_id).send("tools_call-add"))
    assert_complete(result)
    assert result["structuredContent"]["held"] is True
    refused = mcp.answer("claim", {"run_id": run_id, "agent": "agent-8", "resource": "src/app.py"})
    assert refused["held_by"] == "agent-7"


@pytest.mark.parametrize(
    ("client", "exchange", "error"),
    [
        ("claude-2026-07-28", "tools_call-toolerror", "text is required"),
        ("codex-2025-06-18", "tools_call-toolerror", "text is required"),
        ("codex-2026-07-28", "tools_call-boom", "there is no such tool"),
    ],
)
def test_a_mistake_is_a_tool_error_that_the_agent_can_read(
    client: str, exchange: str, error: str, mcp: McpDoor, run_id: str
) -> None:
    result = result_of(Recording(client, mcp, run_id).send(exchange))
    assert result["isError"] is True
    assert "structuredContent" not in result
    told = json.loads(result["content"][0]["text"])
    assert set(told) == {"error"}
    assert told["error"].startswith(error)


@pytest.mark.parametrize("exchange", ["prompts_list", "resources_list", "subscriptions_listen"])
def test_claude_is_told_at_once_what_is_not_served(exchange: str, mcp: McpDoor, run_id: str) -> None:
    response = Recording("claude-2026-07-28", mcp, run_id).send(exchange)
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"]["code"] == -32601


@pytest.mark.promise("mcp-headers-absent")
def test_a_variable_that_claude_did_not_expand_counts_as_no_run(mcp: McpDoor) -> None:
    (recorded,) = json.loads((DATA / "claude-unset-variable.json").read_text())
    assert recorded["headers"]["x-ctrlb-run"] == "${CTRLB_RUN}"
    ours = {name: recorded["headers"][name] for name in ("x-ctrlb-run", "x-ctrlb-agent")}
    assert mcp.error("claim", {"resource": "src/app.py"}, ours, "2026-07-28") == {"error": NO_RUN}


@pytest.mark.parametrize("exchange", ["server_discover", "initialize"])
def test_claude_without_a_key_is_told_to_send_one(exchange: str, mcp: McpDoor, run_id: str) -> None:
    response = Recording("claude-401", mcp, run_id).send(exchange, key="as recorded")
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json() == {"error": "the request carries no user: send the header Authorization: Bearer <your key>"}


def test_the_inspector_without_a_key_is_told_to_send_one(mcp: McpDoor, run_id: str) -> None:
    response = Recording("inspector", mcp, run_id).send("initialize", key="as recorded")
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_claude_looking_for_a_sign_in_service_finds_none(mcp: McpDoor, run_id: str) -> None:
    recording = Recording("claude-401", mcp, run_id)
    walked = [name for name in recording.names() if name.startswith("/")]
    assert len(walked) == 5
    for name in walked:
        response = recording.send(name, key="as recorded")
        assert response.status_code == 404, name
        assert set(response.json()) == {"error"}
