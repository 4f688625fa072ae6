"""What laptop mode's server does with bytes that no well-behaved client sends."""

import json
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ctrlb.edge.local import server_config
from ctrlb.edge.local_protocol import MAX_HEAD_BYTES
from tests.laptop import Laptop

CLAIM = b'{"agent": "agent-a", "resource": "%s"}'
PATH = b"/ai/relay/agent_sessions/runs/wire/claims"


@pytest.fixture
def connection(laptop: Laptop) -> Iterator[socket.socket]:
    """A connection to the server, for bytes as they are."""
    url = httpx2.URL(laptop.url)
    with socket.create_connection((url.host, url.port or 0), timeout=60) as raw:
        yield raw


def claim_request(laptop: Laptop, resource: bytes, extra_headers: bytes = b"") -> bytes:
    body = CLAIM % resource
    head = b"POST %s HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n" % (PATH, laptop.key.encode())
    return head + extra_headers + b"content-length: %d\r\n\r\n" % len(body) + body


def answers(raw: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    received = b""
    while chunk := raw.recv(65_536):
        received += chunk
    return received


def test_a_head_without_end_is_refused_in_the_one_shape(connection: socket.socket) -> None:
    begin = b"GET /health HTTP/1.1\r\nx: "
    connection.sendall(begin + b"a" * (MAX_HEAD_BYTES + 1 - len(begin)))  # the last byte is the one too many
    head, _, body = answers(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body).keys() == {"error"}


def test_a_request_before_bytes_that_are_none_is_answered_and_nothing_else_is(
    laptop: Laptop, connection: socket.socket
) -> None:
    connection.sendall(claim_request(laptop, b"junk-behind.py") + b"GARBAGE \r\n\r\n")
    received = answers(connection)
    assert received.startswith(b"HTTP/1.1 200")
    assert received.count(b"HTTP/1.1") == 1
    assert b'"held":true' in received


def test_a_client_that_closes_its_side_gets_its_answer(laptop: Laptop, connection: socket.socket) -> None:
    connection.sendall(claim_request(laptop, b"half-closed.py"))
    connection.shutdown(socket.SHUT_WR)
    assert b'"held":true' in answers(connection)


def test_a_trailer_does_not_name_the_caller(laptop: Laptop, connection: socket.socket) -> None:
    body = CLAIM % b"trailer.py"
    connection.sendall(
        b"POST %s HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n" % PATH
        + b"%x\r\n%s\r\n0\r\nauthorization: Bearer %s\r\n\r\n" % (len(body), body, laptop.key.encode())
    )
    assert answers(connection).startswith(b"HTTP/1.1 401")


def test_ten_thousand_equal_headers_are_taken_or_refused_at_once(laptop: Laptop, connection: socket.socket) -> None:
    connection.sendall(claim_request(laptop, b"headers.py", b"x-a: b\r\n" * 10_000 + b"connection: close\r\n"))
    assert answers(connection)[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 400")


def test_a_path_may_be_percent_encoded_throughout(laptop: Laptop) -> None:
    assert httpx2.get(f"{laptop.url}/%68ealth").json()["ok"] is True


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
def test_no_other_protocol_is_spoken_however_often_it_is_asked_for(tmp_path: Path, protocol: str) -> None:
    laptop = Laptop(tmp_path)
    try:
        wanted = {
            "Connection": "Upgrade",
            "Upgrade": protocol,
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "eA==",
        }
        assert httpx2.get(f"{laptop.url}/health", headers=wanted).json()["ok"] is True
        assert httpx2.get(f"{laptop.url}/ai/keys", headers=wanted).status_code == 401
        laptop.process.terminate()
        printed = laptop.process.stdout.read() if laptop.process.stdout else ""
    finally:
        laptop.stop()
    assert printed.strip() == f"ctrlb: stopped; everything is kept in {tmp_path}"


def test_no_websocket_is_spoken_whatever_is_installed_beside_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("uvicorn.protocols.websockets.auto")
    library.AutoWebSocketsProtocol = object  # type: ignore[attr-defined]  # as where one is installed
    monkeypatch.setitem(sys.modules, library.__name__, library)
    config = server_config(lambda scope: None)
    config.load()
    assert config.ws_protocol_class is None


@pytest.mark.slow
def test_a_request_that_does_not_end_is_told_that_nothing_is_promised_when_the_server_stops(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    url = httpx2.URL(laptop.url)
    with socket.create_connection((url.host, url.port or 0), timeout=60) as raw:
        raw.sendall(claim_request(laptop, b"cut.py", b"expect: 100-continue\r\n")[:-5])
        assert raw.recv(65_536).startswith(b"HTTP/1.1 100")  # so the server is reading it
        assert laptop.stop() == 0
        received = answers(raw)
    assert received.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in received.lower()
