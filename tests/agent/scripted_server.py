"""A server on loopback that answers as a test says, byte by byte, for what no well-behaved server does."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

Behaviour = Callable[["ScriptedServer", socket.socket], None]

PATIENCE_S = 120.0
"""Longer than any client of a test is to wait."""


class ScriptedServer:
    """Each connection that is accepted gets the next behaviour; the last one serves all that follow."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = behaviours
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(PATIENCE_S)
        for connection in self._open:
            with suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def read_request(self, connection: socket.socket) -> bool:
        """Read one request whole and keep it. False when the client has closed."""
        connection.settimeout(PATIENCE_S)
        received = b""
        while b"\r\n\r\n" not in received:
            chunk = connection.recv(65_536)
            if not chunk:
                return False
            received += chunk
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        while len(body) < length:
            body += connection.recv(65_536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return True

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            behaviour = self._behaviours[min(self.connections, len(self._behaviours) - 1)]
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(behaviour, connection), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, behaviour: Behaviour, connection: socket.socket) -> None:
        with connection:
            try:
                behaviour(self, connection)
            except OSError:  # the client has gone, as many tests want it to
                return


def response(status: int, body: bytes, *headers: str) -> bytes:
    """A whole HTTP response, which leaves the connection open."""
    head = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Content-Type: application/json", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def answers(status: int, body: bytes, *headers: str) -> Behaviour:
    """Answer every request of the connection alike."""

    def behave(server: ScriptedServer, connection: socket.socket) -> None:
        while server.read_request(connection):
            connection.sendall(response(status, body, *headers))

    return behave


def answers_once(status: int, body: bytes) -> Behaviour:
    """Answer one request, then close without having said that it would."""

    def behave(server: ScriptedServer, connection: socket.socket) -> None:
        server.read_request(connection)
        connection.sendall(response(status, body))

    return behave


def says(raw: bytes) -> Behaviour:
    """Read a request, send these bytes, and close."""

    def behave(server: ScriptedServer, connection: socket.socket) -> None:
        server.read_request(connection)
        connection.sendall(raw)

    return behave


def hangs(server: ScriptedServer, connection: socket.socket) -> None:
    """Read a request and never answer."""
    server.read_request(connection)
    server.ended.wait(PATIENCE_S)


def drips(raw: bytes) -> Behaviour:
    """Send these bytes one at a time, each soon enough, so that only a deadline for the whole can end it."""

    def behave(server: ScriptedServer, connection: socket.socket) -> None:
        server.read_request(connection)
        for byte in raw:
            if server.ended.wait(0.02):
                return
            connection.sendall(bytes([byte]))

    return behave


def closes(server: ScriptedServer, connection: socket.socket) -> None:
    """Close without reading anything."""
