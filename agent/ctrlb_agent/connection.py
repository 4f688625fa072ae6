"""One connection to the server that is kept for the next request, with a deadline for each."""

from __future__ import annotations

import http.client
import io
import socket
import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from ctrlb_agent import __version__
from ctrlb_agent.json_values import object_of, parsed

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

MAX_ANSWER_BYTES = 16 << 20
SHORTEST_WAIT_S = 0.001  # a socket without time left is to fail, not to wait for ever


class Unreachable(Exception):
    """No answer came: the address is wrong, nothing listens there, or it took too long. The text says which."""


class Answer(NamedTuple):
    """What the server answered, whatever its status."""

    status: int
    body: bytes
    retry_after_s: float | None


class Connection:
    """A keep-alive connection. Not for several threads at once."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self.key = key
        self._open: http.client.HTTPConnection | None = None

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        deadline_s: float,
        gzipped: bool = False,
    ) -> Answer:
        """Send one request and read its answer within `deadline_s` seconds. Raises Unreachable.

        A kept connection that the server has closed meanwhile is opened again, once.
        """
        give_up_s = time.monotonic() + deadline_s
        try:
            return self._on_kept_or_new(method, path, body, self._headers(body, gzipped), give_up_s)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            raise Unreachable(reason_of(error, self.url)) from error

    def close(self) -> None:
        """Give the connection up; the next request opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _headers(self, body: bytes | None, gzipped: bool) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"ctrlb-agent/{__version__}"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        if gzipped:
            headers["Content-Encoding"] = "gzip"
        return headers

    def _on_kept_or_new(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], give_up_s: float
    ) -> Answer:
        if self._open is not None:
            try:
                return self._exchange(method, path, body, headers, give_up_s)
            except ConnectionError:
                self.close()
        return self._exchange(method, path, body, headers, give_up_s)

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], give_up_s: float
    ) -> Answer:
        if self._open is None:
            self._open = opened(self.url, remaining_s(give_up_s))
        connection = self._open
        connection.response_class = _by(give_up_s)
        connection.sock.settimeout(remaining_s(give_up_s))
        connection.request(method, urlsplit(self.url).path + path, body=body, headers=dict(headers))
        response = connection.getresponse()
        if response.length is None and not response.chunked:
            raise http.client.IncompleteRead(b"")  # its end could not be told from a server's death
        content = _content(response)
        if response.will_close:
            self.close()
        return Answer(response.status, content, _seconds(response.getheader("Retry-After")))


class _Timed(io.RawIOBase):
    """What a socket receives, none of it after a deadline: `http.client` itself counts from each byte anew."""

    def __init__(self, sock: socket.socket, give_up_s: float) -> None:
        self._sock = sock
        self._give_up_s = give_up_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(remaining_s(self._give_up_s))
        return self._sock.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Stand in for the socket where a response asks it for a file."""
        return io.BufferedReader(self)


def _by(give_up_s: float) -> Any:
    """A class of responses that are read until then."""
    return lambda sock, **options: http.client.HTTPResponse(cast("socket.socket", _Timed(sock, give_up_s)), **options)


def _content(response: http.client.HTTPResponse) -> bytes:
    content = bytearray()
    while True:
        chunk = response.read1(1 << 16)
        if not chunk:
            break
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"answers more than {MAX_ANSWER_BYTES:,} bytes")
    if response.length:
        raise http.client.IncompleteRead(bytes(content), response.length)
    response.read()  # of nothing, which frees the connection for the next request
    return bytes(content)


def opened(url: str, timeout_s: float) -> http.client.HTTPConnection:
    """A connection to the URL's host, through the environment's proxy where one is meant for it. Raises ValueError."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is no address of a server: it should begin with http:// or https://")
    encrypted = parts.scheme == "https"
    proxy = None if proxy_bypass(parts.hostname) else getproxies().get(parts.scheme)
    via = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else parts
    kind = partial(http.client.HTTPSConnection, context=_trust()) if encrypted else http.client.HTTPConnection
    port = 443 if encrypted else 80
    connection = kind(via.hostname or "", via.port or (port if via is parts else 8080), timeout=timeout_s)
    if via is not parts:
        connection.set_tunnel(parts.hostname, parts.port or port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """The authorities of this machine, read once: it takes longer than a request."""
    import ssl

    return ssl.create_default_context()


def error_of(answer: Answer) -> str:
    """The server's own words, with its code: `… (MCP_KEY_EXPIRED)`. Of an answer without any, its status."""
    said = object_of(parsed(answer.body))
    if "error" not in said:
        return f"the server answered {answer.status}"
    return f"{said['error']} ({said['code']})" if said.get("code") else str(said["error"])


def reason_of(error: Exception, url: str) -> str:
    """Why there was no answer, in words for a person."""
    if isinstance(error, socket.timeout):
        return f"{url} did not answer in time"
    if isinstance(error, http.client.HTTPException):
        return f"{url} broke off its answer ({type(error).__name__})"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {url}"
    return f"{url}: {error}"


def remaining_s(give_up_s: float) -> float:
    """Seconds until then on the monotonic clock. Raises TimeoutError when there are none."""
    left_s = give_up_s - time.monotonic()
    if left_s < SHORTEST_WAIT_S:
        raise socket.timeout("no time is left")
    return left_s


def _seconds(value: str | None) -> float | None:
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None
