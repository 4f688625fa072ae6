"""A road to the real server on which requests, or their answers, come to grief as a test says."""

import gzip
import http.client
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

HANG_S = 120.0
"""Longer than any client of a test is to wait."""

Mishap = Callable[["Passenger"], None]


class Passenger(BaseHTTPRequestHandler):
    """One request that takes the road."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are two writes
    road: "BadRoad"

    def do_POST(self) -> None:
        self.content = self.rfile.read(int(self.headers["Content-Length"]))
        with self.road.turn:
            self.road.rows.append(json.loads(gzip.decompress(self.content)))
            self.road.turn.notify_all()
            mishap = self.road.mishaps.pop(0) if self.road.mishaps else self.road.then
        mishap(self)

    def forwarded(self) -> tuple[int, bytes]:
        """What the real server answers."""
        server = urlsplit(self.road.server)
        connection = http.client.HTTPConnection(server.hostname or "", server.port, timeout=HANG_S)
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type", "Content-Encoding")}
        connection.request("POST", self.path, self.content, headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def say(self, status: int, body: bytes, **headers: str) -> None:
        """Answer the request."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def vanish(self) -> None:
        """Close the connection without an answer."""
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test reads no log."""


class BadRoad:
    """Each request has the next mishap; after them all, `then` is what happens to every one."""

    def __init__(self, server: str, *mishaps: Mishap, then: Mishap | None = None) -> None:
        self.server = server
        self.mishaps = list(mishaps)
        self.then = then or arrives
        self.rows: list[list[dict[str, Any]]] = []
        """The rows of each request that set out."""
        self.turn = threading.Condition()
        self.ended = threading.Event()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), type("OnThisRoad", (Passenger,), {"road": self}))
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self._thread = threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.02})

    def has_seen(self, requests: int) -> bool:
        """Whether so many requests set out before long."""
        with self.turn:
            return self.turn.wait_for(lambda: len(self.rows) >= requests, HANG_S)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()


def arrives(request: Passenger) -> None:
    """Nothing happens: the server's answer comes back."""
    status, body = request.forwarded()
    request.say(status, body)


def answer_is_lost(request: Passenger) -> None:
    """The server takes the rows, and nobody learns of it."""
    request.forwarded()
    request.vanish()


def is_lost(request: Passenger) -> None:
    """The server never sees it."""
    request.vanish()


def hangs(request: Passenger) -> None:
    """No answer comes while the test runs."""
    request.road.ended.wait(HANG_S)
    request.vanish()


def is_answered(status: int, error: str = "no", **headers: str) -> Mishap:
    """Something on the way answers in the server's place."""

    def mishap(request: Passenger) -> None:
        request.say(status, json.dumps({"error": error}).encode(), **headers)

    return mishap


def is_too_long_over(most_bytes: int) -> Mishap:
    """A proxy that takes no larger requests; lets others through."""

    def mishap(request: Passenger) -> None:
        if len(gzip.decompress(request.content)) > most_bytes:
            request.say(413, b"{}")
        else:
            arrives(request)

    return mishap
