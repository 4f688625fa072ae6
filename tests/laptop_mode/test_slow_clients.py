"""Clients that dawdle, and too many at once: the server ends the first and refuses the rest."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn

from ctrlb.edge import local, local_protocol
from ctrlb.edge.local import LocalApp, server_config
from ctrlb.edge.routes import Route, Router
from tests.acceptance.calls import eventually

PATIENCE_S = 0.5
LONGER_S = 2.0
"""Enough for a client on a busy machine to say what it wants."""
HANDLER = """
import threading

begun, go_on = threading.Semaphore(0), threading.Event()


def handler(event, context):
    if event["rawPath"] == "/waits":
        begun.release()
        go_on.wait(60)
    return {"statusCode": 200, "headers": {}, "body": "x" * (50_000_000 if event["rawPath"] == "/long" else 2)}
"""
HEAD = b"%s /%s HTTP/1.1\r\nhost: x\r\n"


class Served:
    """A server of this process, with a short answer, a long one, and one that waits until it is told to go on."""

    def __init__(self, folder: Path) -> None:
        (folder / "answer.py").write_text(HANDLER)
        router = Router([Route("ANY", f"/{name}", "answer") for name in ("short", "long", "waits")], folder)
        handler, _ = router.find("GET", "/waits")
        module = handler.__globals__
        self.has_begun: Callable[[], bool] = lambda: module["begun"].acquire(timeout=60)
        self.go_on: Callable[[], None] = module["go_on"].set
        ready = threading.Event()
        self.server = uvicorn.Server(server_config(LocalApp(router, ready.set)))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self.server.run, args=([self._listener],))
        self._thread.start()
        assert ready.wait(60)

    def connected(self, begin: bytes = b"") -> socket.socket:
        """A connection on which so much has been sent."""
        raw = socket.create_connection(self._listener.getsockname(), timeout=60)
        raw.sendall(begin)
        return raw

    def stop(self) -> None:
        self.go_on()
        self.server.should_exit = True
        self._thread.join(60)
        self._listener.close()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(local_protocol, "PATIENCE_S", PATIENCE_S)
    running = Served(tmp_path)
    yield running
    running.stop()


def all_of(raw: socket.socket) -> bytes:
    """What comes until the server hangs up."""
    received = b""
    while chunk := raw.recv(65_536):
        received += chunk
    return received


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET /sho",
        HEAD % (b"GET", b"short"),
        HEAD % (b"POST", b"short") + b"content-length: 9\r\n\r\nhalf",
        HEAD % (b"POST", b"short") + b"transfer-encoding: chunked\r\n\r\n5\r\nhalf",
        HEAD % (b"GET", b"short") + b"\r\n" + HEAD % (b"GET", b"short"),
    ],
    ids=["nothing", "half a line", "half a head", "half a body", "half a chunk", "half of a second request"],
)
def test_a_client_that_does_not_go_on_is_hung_up_on(served: Served, begin: bytes) -> None:
    with served.connected(begin) as raw:
        try:
            received = all_of(raw)
        except ConnectionResetError:
            received = b""
    assert received.count(b"HTTP/1.1 200") <= 1
    assert b"HTTP/1.1 4" not in received


def test_a_client_that_is_refused_before_its_body_is_whole_is_hung_up_on_like_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MAX_REQUESTS", 0)
    with served.connected(HEAD % (b"POST", b"short") + b"content-length: 9\r\n\r\nhalf") as raw:
        assert raw.recv(65_536).startswith(b"HTTP/1.1 503")
        raw.sendall(b" more")

        def is_gone() -> None:
            assert not served.server.server_state.connections

        eventually(is_gone)


def test_a_client_that_does_not_fetch_its_answer_is_hung_up_on(served: Served) -> None:
    with served.connected(HEAD % (b"GET", b"long") + b"\r\n"):

        def is_gone() -> None:
            assert served.server.server_state.total_requests == 1
            assert not served.server.server_state.connections

        eventually(is_gone)


def test_an_answer_may_take_longer_than_a_client_may(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_protocol, "PATIENCE_S", LONGER_S)
    waits = HEAD % (b"GET", b"waits") + b"connection: close\r\n\r\n"
    with (
        served.connected(waits) as raw,
        served.connected(HEAD % (b"GET", b"waits") + b"\r\n" + b"GET /sh") as pipelined,
    ):
        assert served.has_begun()
        assert served.has_begun()
        raw.settimeout(2 * LONGER_S)
        with pytest.raises(TimeoutError):
            raw.recv(1)
        raw.settimeout(60)
        served.go_on()
        assert all_of(raw).startswith(b"HTTP/1.1 200")
        assert pipelined.recv(65_536).startswith(b"HTTP/1.1 200")


def test_more_requests_than_the_server_takes_in_are_told_to_come_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MAX_REQUESTS", 2)
    monkeypatch.setattr(local_protocol, "PATIENCE_S", 60.0)
    waits = HEAD % (b"GET", b"waits") + b"connection: close\r\n\r\n"
    with served.connected(waits) as first, served.connected(waits) as second:
        assert served.has_begun()
        assert served.has_begun()
        post = HEAD % (b"POST", b"short") + b"connection: close\r\ncontent-length: 9\r\n\r\nhalf"
        with served.connected(post) as third:
            refused = all_of(third).lower()
        assert refused.startswith(b"http/1.1 503")
        assert b"retry-after: 1" in refused
        assert b'{"error":"2 requests are under way already' in refused
        served.go_on()
        assert all_of(first).startswith(b"HTTP/1.1 200")
        assert all_of(second).startswith(b"HTTP/1.1 200")
    with served.connected(waits) as later:
        assert all_of(later).startswith(b"HTTP/1.1 200")
