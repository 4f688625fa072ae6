"""The rules of the protocol's two eras."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.mcp.door import LEGACY, META, MODERN, TIMEOUT_S, Json, McpDoor

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_initialize_answers_with_the_clients_version(mcp: McpDoor, version: str) -> None:
    assert _initialize(mcp, version)["protocolVersion"] == version


def test_initialize_with_an_unknown_version_answers_with_the_newest_that_has_it(mcp: McpDoor) -> None:
    assert _initialize(mcp, "2031-01-01")["protocolVersion"] == "2025-11-25"


@ERAS
def test_the_length_of_an_answer_is_said_once(mcp: McpDoor, era: str) -> None:
    head, _, body = _by_hand(mcp, f"MCP-Protocol-Version: {era}\r\nMcp-Method: tools/call\r\nMcp-Name: peers\r\n")
    lengths = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
    assert lengths == [f"content-length: {len(body.encode())}"]


@ERAS
def test_white_space_around_a_header_is_not_part_of_it(mcp: McpDoor, era: str) -> None:
    head, _, body = _by_hand(
        mcp, f"MCP-Protocol-Version:\t{era} \r\nMcp-Method: tools/call  \r\nMcp-Name:   peers \t \r\n"
    )
    assert head.startswith("HTTP/1.1 200 "), head
    assert '"isError":false' in body


def test_there_is_no_session_and_no_order_of_calls(mcp: McpDoor, run_id: str) -> None:
    for era in (MODERN, LEGACY, MODERN):
        response = mcp.ask(
            era, "tools/call", {"name": "peers", "arguments": {"run_id": run_id}}, {"Mcp-Session-Id": "of another"}
        )
        assert response.json()["result"]["structuredContent"]["events"] == []
        assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_other_methods_than_post_are_refused_with_allow(mcp: McpDoor, method: str) -> None:
    response = mcp.send(None, method=method)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert response.json() == {"error": f"{method} is not served here; the MCP server takes POST"}


@pytest.mark.promise("mcp-acts-as-person")
@pytest.mark.promise("mcp-acts-as-person")
@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        ("", 401, None),
        ("Basic YTpi", 401, None),
        ("Bearer", 401, None),
        ("Bearer nonsense", 401, "MCP_INVALID_KEY"),
        ("Bearer ctrlb_local_AAAAAAAAAAAA_" + "A" * 49, 401, "MCP_INVALID_KEY"),
    ],
)
def test_a_refused_key_answers_as_over_http(mcp: McpDoor, authorization: str, status: int, code: str | None) -> None:
    for body in ("{}", "not JSON", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})):
        response = mcp.send(body, {"Authorization": authorization})
        assert response.status_code == status
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json().get("code") == code
        assert set(response.json()) == {"error"} | ({"code"} if code else set())


def test_a_key_in_the_query_is_not_read(mcp: McpDoor) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    response = mcp.request("POST", f"/mcp?key={mcp.key}&access_token={mcp.key}", {}, body)
    assert response.status_code == 401


@pytest.mark.parametrize("origin", ["http://evil.example", "https://localhost.evil.example", "null", "http://[", "x"])
def test_the_page_of_another_site_is_refused(mcp: McpDoor, origin: str) -> None:
    response = mcp.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"Origin": origin})
    assert response.status_code == 403
    assert set(response.json()) == {"error"}


@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1:1", "http://[::1]:1"])
def test_a_page_on_this_machine_may_call(mcp: McpDoor, origin: str) -> None:
    assert mcp.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "[::1]:8321"},
        {"Host": "a:b:c"},
        {"X-Forwarded-Port": "none"},
        {"X-Forwarded-Proto": "gopher"},
        {"Content-Type": "text/plain"},
        {"Accept": "text/html"},
        {"Accept": "application/json;q=0"},
        {"MCP-Protocol-Version": "2025-11-25"},
        {"Mcp-Session-Id": "of another"},
        {"Last-Event-ID": "5"},
        {"Cookie": "a=b"},
    ],
    ids=str,
)
def test_headers_that_say_nothing_to_us_change_nothing(mcp: McpDoor, headers: dict[str, str]) -> None:
    response = mcp.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers)
    assert (response.status_code, response.json()) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Method": ""}, -32020),
        ({"Mcp-Name": "post"}, -32020),
        ({"Mcp-Name": ""}, -32020),
        ({"MCP-Protocol-Version": "2031-01-01"}, -32020),
    ],
    ids=str,
)
def test_in_2026_headers_that_differ_from_the_body_are_400(mcp: McpDoor, headers: dict[str, str], code: int) -> None:
    response = mcp.ask(MODERN, "tools/call", {"name": "peers", "arguments": {"run_id": "r"}}, headers)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == code


def test_in_2026_an_unknown_version_names_those_that_are_served(mcp: McpDoor) -> None:
    meta = META | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    response = mcp.ask(MODERN, "tools/list", {"_meta": meta}, {"MCP-Protocol-Version": "2031-01-01"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32022
    assert "2026-07-28" in response.json()["error"]["data"]["supported"]


@pytest.mark.parametrize("key", list(META))
def test_in_2026_a_request_without_its_envelope_is_400(mcp: McpDoor, key: str) -> None:
    meta = {name: value for name, value in META.items() if name != key}
    response = mcp.ask(MODERN, "tools/list", {"_meta": meta})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/list", "prompts/get", "no/such"]
)
def test_in_2026_a_method_that_is_not_served_is_404(mcp: McpDoor, method: str) -> None:
    params: Json = {"level": "info"} if method == "logging/setLevel" else {}
    response = mcp.ask(MODERN, method, {"name": "x", **params} if method == "prompts/get" else params)
    assert (response.status_code, response.json()["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("method", ["resources/list", "completion/complete", "no/such", "server/discover"])
def test_in_2025_a_method_that_is_not_served_is_an_error_with_200(mcp: McpDoor, method: str) -> None:
    argument = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}
    response = mcp.ask(LEGACY, method, argument if method == "completion/complete" else {})
    assert (response.status_code, response.json()["error"]["code"]) == (200, -32601)


@ERAS
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": {}}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"method": "no/such"},
    ],
    ids=json.dumps,
)
def test_a_notification_is_taken_and_not_answered(mcp: McpDoor, era: str, message: Json) -> None:
    response = mcp.send({"jsonrpc": "2.0", **message}, {"MCP-Protocol-Version": era})
    assert (response.status_code, response.text) == (202, "")


def _by_hand(mcp: McpDoor, headers: str) -> tuple[str, str, str]:
    """The head and body of the answer to a call of peers, as they came: clients tidy up what they send and get."""
    if not mcp.url.startswith("http://"):
        pytest.skip("the request is written by hand, which takes a plain connection")
    where = urlsplit(mcp.url)
    params = {"_meta": META, "name": "peers", "arguments": {"run_id": "run-1"}}
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    request = (
        f"POST {where.path}/mcp HTTP/1.1\r\nHost: {where.hostname}\r\nConnection: close\r\n"
        f"Content-Length: {len(content)}\r\nAuthorization:  Bearer {mcp.key} \r\n{headers}\r\n{content}"
    )
    with socket.create_connection((where.hostname, where.port or 80), timeout=TIMEOUT_S) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65_536), b"")).decode().partition("\r\n\r\n")


def _initialize(mcp: McpDoor, version: str) -> Json:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    result: Json = mcp.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).json()["result"]
    return result
