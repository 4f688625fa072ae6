"""Requests as an attacker writes them: who is calling is said by one header, and no other part is believed.

In the end nothing that was secret in them is in the server's log, or in what it printed.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ctrlb.domain.key_format import written_key
from tests.laptop import Laptop

PATH = "/ai/relay/settings"
MARK = "do-not-log-this"


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A server that is attacked by all tests of the module."""
    running = Laptop(tmp_path_factory.mktemp("attacked"))
    yield running
    running.stop()


def sent(laptop: Laptop, request: bytes) -> tuple[int, dict[str, object], bytes]:
    """The first answer to bytes as they are: its status, its JSON, and all that came."""
    url = httpx2.URL(laptop.url)
    with socket.create_connection((url.host, url.port or 0), timeout=60) as raw:
        raw.sendall(request)
        received = b""
        while chunk := raw.recv(65_536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body.partition(b"HTTP/1.1")[0]), received


def asked(laptop: Laptop, *headers: str, target: str = PATH, method: str = "GET") -> tuple[int, dict[str, object]]:
    lines = [f"{method} {target} HTTP/1.1", "host: x", "connection: close", *headers]
    status, answer, _ = sent(laptop, "\r\n".join([*lines, "", ""]).encode("latin-1"))
    return status, answer


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION", "aUtHoRiZaTiOn"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_names_and_schemes_have_no_case(laptop: Laptop, name: str, scheme: str) -> None:
    assert asked(laptop, f"{name}: {scheme} {laptop.key}")[0] == 200


def test_two_headers_are_none_whichever_is_good(laptop: Laptop) -> None:
    good, bad = f"Authorization: Bearer {laptop.key}", f"authorization: Bearer {MARK}"
    for headers in ((good, bad), (bad, good), (good, good)):
        status, answer = asked(laptop, *headers)
        assert (status, answer["code"]) == (401, "MCP_INVALID_KEY")


@pytest.mark.parametrize(
    "value",
    [
        "Bearer {key}, Bearer {key}",
        "Bearer {key},Bearer x",
        "Bearer x, Bearer {key}",
        "Bearer {key};",
        "Bearer Bearer {key}",
        'Bearer "{key}"',
        "Bearer key={key}",
        "Bearer {key}\x0b",
    ],
)
def test_one_header_holds_one_key(laptop: Laptop, value: str) -> None:
    assert asked(laptop, "Authorization: " + value.format(key=laptop.key))[0] in (400, 401)


@pytest.mark.parametrize(
    "value", ["Basic {key}", "{key}", "Token {key}", "Bearer{key}", "Bearer", "Bearer ", "", ", {key}"]
)
def test_another_scheme_names_nobody(laptop: Laptop, value: str) -> None:
    status, answer = asked(laptop, "Authorization: " + value.format(key=laptop.key))
    assert status == 401
    assert "code" not in answer


@pytest.mark.parametrize(
    "header",
    [
        "X-Authorization: Bearer {key}",
        "Proxy-Authorization: Bearer {key}",
        "X-Forwarded-Authorization: Bearer {key}",
        "X-Original-Authorization: Bearer {key}",
        "Authorization_: Bearer {key}",
        "X-Api-Key: {key}",
        "Cookie: authorization=Bearer {key}; key={key}",
        "X-CtrlB-Agent: Bearer {key}",
        "X-Forwarded-User: admin",
        "X-Remote-User: admin",
        "X-Amzn-Oidc-Identity: admin",
    ],
)
def test_no_other_header_names_the_caller(laptop: Laptop, header: str) -> None:
    assert asked(laptop, header.format(key=laptop.key))[0] == 401


@pytest.mark.parametrize(
    "name", ["key", "token", "access_token", "authorization", "api_key", "Authorization", "bearer"]
)
def test_a_key_in_the_query_is_never_read(laptop: Laptop, name: str) -> None:
    for value in (laptop.key, f"Bearer%20{laptop.key}"):
        assert asked(laptop, target=f"{PATH}?{name}={value}")[0] == 401
    # A good header is neither helped nor hurt by what stands there.
    assert asked(laptop, f"Authorization: Bearer {laptop.key}", target=f"{PATH}?{name}={MARK}")[0] == 200


def test_a_key_in_the_body_is_never_read(laptop: Laptop) -> None:
    body = {"agent": "a", "resource": "a.py", "authorization": f"Bearer {laptop.key}", "access_token": laptop.key}
    for http_path in ("/ai/relay/agent_sessions/runs/r/claims", "/mcp"):
        assert httpx2.post(laptop.url + http_path, json=body).status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "X-HTTP-Method-Override: PUT",
        "X-Original-URL: /health",
        "X-Rewrite-URL: /health",
        "X-Forwarded-Host: evil.example",
    ],
)
def test_no_header_changes_what_is_asked(laptop: Laptop, header: str) -> None:
    assert asked(laptop, header)[0] == 401
    assert asked(laptop, header, f"Authorization: Bearer {laptop.key}")[0] == 200


def test_a_header_that_is_said_to_end_with_this_connection_still_counts(laptop: Laptop) -> None:
    assert asked(laptop, "Connection: close, authorization", f"Authorization: Bearer {laptop.key}")[0] == 200


@pytest.mark.parametrize(
    "lines",
    [
        "x: y\r\n authorization: Bearer {key}",
        "authorization : Bearer {key}",
        "x: y\nauthorization: Bearer {key}\n",
        "x: y\rauthorization: Bearer {key}",
        "x: y\x00authorization: Bearer {key}",
        "authori\u00adzation: Bearer {key}",
    ],
)
def test_a_header_hidden_in_another_names_nobody_or_is_plain(laptop: Laptop, lines: str) -> None:
    """A bare line feed ends a line for many servers; either reading is safe, since nothing stands in front of ours."""
    status, _ = asked(laptop, lines.format(key=laptop.key))
    assert status in ((200, 400, 401) if "\n" in lines.replace("\r\n", "") else (400, 401))


@pytest.mark.parametrize(
    "framing",
    [
        "content-length: 4\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 4",
        "content-length: 4\r\ncontent-length: 40",
        "content-length: +4",
        "content-length: 4, 40",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, identity",
    ],
)
def test_a_body_whose_end_is_unclear_smuggles_no_request(laptop: Laptop, framing: str) -> None:
    hidden = f"GET {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {laptop.key}\r\nconnection: close\r\n\r\n"
    request = (
        f"POST /ai/relay/agent_sessions/runs/r/claims HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{framing}\r\n\r\n"
    )
    status, answer, received = sent(laptop, f"{request}0\r\n\r\n{hidden}".encode())
    assert status in (400, 401)
    assert set(answer) <= {"error", "code"}
    assert b"leaseSeconds" not in received


def test_no_answer_tells_whether_a_person_or_a_key_exists(laptop: Laptop) -> None:
    workspace, key_id = laptop.key.split("_")[1:3]
    guesses = [(workspace, key_id), (workspace, "a" * 12), ("elsewhere", key_id)]
    told = {str(asked(laptop, f"Authorization: Bearer {written_key(*guess, 'a' * 43)}")) for guess in guesses}
    assert len(told) == 1
    sessions = {str(asked(laptop, f"Authorization: Bearer ctrlbs_{guess}")) for guess in ("a" * 43, "", "admin")}
    assert len(sessions) == 1


def test_no_secret_is_in_the_log_or_in_what_the_server_prints(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "logged")
    token = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code}).json()["token"]
    jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0." + MARK
    with httpx2.Client(base_url=laptop.url, headers={"X-CtrlB-Agent": MARK, "Cookie": MARK}, timeout=60) as http:
        for credential in (laptop.key, token, jwt, laptop.key + "x", f"ctrlbs_{MARK}", MARK):
            sent_by = {"Authorization": f"Bearer {credential}"}
            http.get(PATH, headers=sent_by)
            http.get(f"{PATH}/{MARK}?key={credential}", headers=sent_by)
            http.post("/mcp", headers=sent_by, content=f'{{"{MARK}": "{credential}"}}')
            http.post("/mcp", headers=sent_by, json={"jsonrpc": "2.0", "id": 1, "method": MARK})
            claim = {"agent": MARK, "resource": f"{MARK}.py", "cwd": credential}
            http.post(f"/ai/relay/agent_sessions/runs/{MARK}/claims", headers=sent_by, json=claim)
            http.post("/ai/sessions/agent_sessions/records", headers=sent_by, json=[{"session_id": MARK, "body": MARK}])
            http.get("/ai/sessions/agent_sessions/search", headers=sent_by, params={"term": MARK})
        made = http.post("/ai/keys", headers={"Authorization": f"Bearer {token}"}, json={"name": MARK}).json()["key"]
        http.get(PATH, headers={"Authorization": f"Bearer {made}"})
        http.post("/ai/sign-in", json={"code": MARK})
        for params in ({"requestId": [MARK], "reason": {}}, {"progressToken": {}, "progress": MARK}, MARK, [MARK]):
            for method in ("cancelled", "progress", "initialized", MARK):
                message = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
                http.post("/mcp", headers={"Authorization": f"Bearer {token}"}, json=message)
    laptop.process.terminate()
    printed = laptop.process.stdout.read() if laptop.process.stdout else ""
    laptop.stop()
    logged = "".join(path.read_text() for path in (tmp_path / "logged").glob("ctrlb.log*"))
    assert logged.count("\n") > 40
    assert printed.strip() == f"ctrlb: stopped; everything is kept in {tmp_path / 'logged'}"  # no line of a library's
    for secret in (laptop.key, token, jwt, made, MARK, laptop.key[-49:], token[-43:], "Bearer"):
        assert secret not in logged
        assert secret not in printed
