"""A gate in front of a search service: a real server that lets bulk requests through, or does what a test tells it."""

import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import urlsplit

HANG_S = 30
FORWARD_TIMEOUT_S = 60

Fate: TypeAlias = Callable[["Request"], None]
"""What becomes of one bulk request."""


class Gate:
    """Passes everything on, and has a fate for each of the next bulk requests."""

    def __init__(self, behind: str) -> None:
        """`behind` is the address of the service."""
        self.behind = urlsplit(behind)
        self.fates: list[Fate] = []
        self.bulks: list[bytes] = []
        """What was sent in bulk, in order, whatever became of it."""
        self.ended = threading.Event()
        self.url = ""


@contextlib.contextmanager
def open_gate(behind: str) -> Iterator[Gate]:
    """A gate on a free loopback port."""
    gate = Gate(behind)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Request,), {"gate": gate})) as server:
        server.daemon_threads = True
        gate.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield gate
        finally:
            gate.ended.set()
            server.shutdown()
            thread.join()


class Request(BaseHTTPRequestHandler):
    """One request, to be passed on or not."""

    gate: Gate
    protocol_version = "HTTP/1.1"

    def read_and_answer(self) -> None:
        """Read the request and let its fate come true."""
        self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fate: Fate = passed
        if "/_bulk" in self.path:
            self.gate.bulks.append(self.content)
            fate = self.gate.fates.pop(0) if self.gate.fates else passed
        with contextlib.suppress(ConnectionError):  # the caller no longer waits
            fate(self)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = read_and_answer  # noqa: N815 - the server's names

    def forward(self, content: bytes) -> tuple[int, bytes]:
        """What the service answers to the request with this content."""
        place = self.gate.behind
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=FORWARD_TIMEOUT_S)
        with contextlib.closing(connection):
            headers = {"Content-Type": self.headers.get("Content-Type") or "application/json"}
            connection.request(self.command, self.path, content, headers)
            response = connection.getresponse()
            return response.status, response.read()

    def answer(self, status: int, content: bytes, *, sent_bytes: int | None = None) -> None:
        """Answer; of the content only `sent_bytes`, where they are given, and then no more."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:sent_bytes])
        self.close_connection = sent_bytes is not None

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def passed(request: Request) -> None:
    """The request arrives, and so does its answer."""
    request.answer(*request.forward(request.content))


def answers(status: int) -> Fate:
    """The service answers this and does nothing."""
    return lambda request: request.answer(status, json.dumps({"error": {"type": "told"}, "status": status}).encode())


def hangs(request: Request) -> None:
    """Nothing is answered for longer than anybody waits."""
    request.gate.ended.wait(HANG_S)
    request.close_connection = True


def half_answers(request: Request) -> None:
    """The service does what it is asked, but its answer ends halfway."""
    status, content = request.forward(request.content)
    request.answer(status, content, sent_bytes=len(content) // 2)


def too_busy_for(place: int) -> Fate:
    """The service takes all documents of the request but one, for which it says 429."""

    def fate(request: Request) -> None:
        lines = request.content.splitlines(keepends=True)
        left_out = lines[2 * place : 2 * place + 2]
        rest = b"".join(lines[: 2 * place] + lines[2 * place + 2 :])
        taken: dict[str, Any] = {"items": []}
        if rest:
            _, content = request.forward(rest)
            taken = json.loads(content)
        busy = {"index": {"status": 429, "error": {"type": "rejected", "reason": left_out[-1].decode()}}}
        taken["items"].insert(place, busy)
        request.answer(200, json.dumps(taken).encode())

    return fate
