"""Load from a process of its own, over raw keep-alive connections, so that the client is never what is measured."""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import quantiles
from typing import cast

import uvloop

HOST = "127.0.0.1"
ROUND_TIMEOUT_S = 300.0


class WrongAnswer(Exception):
    """A server answered something else than the measured answer; its figures would mean nothing."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of requests took."""

    duration_s: float
    latencies_ms: list[float]

    @property
    def per_s(self) -> float:
        """Requests answered in a second."""
        return len(self.latencies_ms) / self.duration_s

    @property
    def p50_ms(self) -> float:
        """The latency that half of the requests stay below."""
        return percentile(self.latencies_ms, 50)

    @property
    def p99_ms(self) -> float:
        """The latency that one request in a hundred goes over."""
        return percentile(self.latencies_ms, 99)


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that `percent` of the values stay below."""
    return quantiles(values, n=100, method="inclusive")[percent - 1]


class LoadProcess:
    """One process that sends what it is given."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> "LoadProcess":
        return self

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown()

    def send(self, port: int, requests: list[bytes], connections: int, expected: bytes) -> Round:
        """Send the requests in order, each connection its next as soon as it is answered.

        Every answer must hold the bytes `expected`. Raises WrongAnswer.
        """
        return self._pool.submit(_drive, port, requests, connections, expected).result(ROUND_TIMEOUT_S)


def request(method: str, target: str, key: str, body: bytes = b"", headers: str = "") -> bytes:
    """The bytes of a request, as a client with a keep-alive connection sends it."""
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    )
    return head.encode() + body


def _drive(port: int, requests: list[bytes], connections: int, expected: bytes) -> Round:
    return uvloop.run(_send_all(port, requests, connections, expected))


async def _send_all(port: int, requests: list[bytes], connections: int, expected: bytes) -> Round:
    loop = asyncio.get_running_loop()
    queue, latencies_ms, clients = iter(requests), list[float](), list[_Client]()
    for _ in range(connections):
        _, client = await loop.create_connection(lambda: _Client(queue, expected, latencies_ms.append), HOST, port)
        clients.append(client)
    started_s = time.perf_counter()
    for client in clients:
        client.send_next()
    await asyncio.gather(*(client.finished for client in clients))
    return Round(time.perf_counter() - started_s, latencies_ms)


class _Client(asyncio.Protocol):
    """One agent: it sends a request of the shared queue, waits for the whole answer, and sends the next."""

    def __init__(self, queue: Iterator[bytes], expected: bytes, note_ms: Callable[[float], None]) -> None:
        self.finished = asyncio.get_running_loop().create_future()
        self._queue = queue
        self._expected = expected
        self._note_ms = note_ms
        self._answer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its type

    def send_next(self) -> None:
        following = next(self._queue, None)
        if following is None:
            self._transport.close()
        else:
            self._sent_s = time.perf_counter()
            self._transport.write(following)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, blank, body = self._answer.partition(b"\r\n\r\n")
        if not blank or len(body) < _content_length(head):
            return
        self._note_ms((time.perf_counter() - self._sent_s) * 1_000)
        if self._expected not in body:
            self.finished.set_exception(WrongAnswer(self._answer.decode(errors="replace")[:1_000]))
            return
        self._answer = b""
        self.send_next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.finished.done():
            if error is None and not self._answer:
                self.finished.set_result(None)
            else:
                self.finished.set_exception(error or WrongAnswer("the connection ended within an answer"))


def _content_length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
