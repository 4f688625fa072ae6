"""One connection to the server that is kept for the next request, with a deadline for each."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from ctrlb_agent import __version__
from ctrlb_agent.json_values import object_of, parsed, text_of
from ctrlb_agent.route import Unusable, opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctrlb_agent.route import Route

MAX_ANSWER_BYTES = 16 << 20
SHORTEST_WAIT_S = 0.001  # a socket without time left is to fail, not to wait for ever


class Unreachable(Exception):
    """No answer came: the address is wrong, nothing listens there, or it took too long. The text says which."""


class BadKey(ValueError):
    """The key cannot be sent. The text says why, and follows the server's address."""


class Answer(NamedTuple):
    """What the server answered, whatever its status."""

    status: int
    body: bytes
    retry_after_s: float | None


class Connection:
    """A keep-alive connection. Not for several threads at once.

    A server may end a kept connection at any time, also when it has just done what was asked. The request is then sent
    again, over a new one: so only requests that may be done twice are to follow another (decision 29).
    """

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self.key = key
        self._open: Route | None = None

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
            raise Unreachable(why_unreachable(error, self.url)) from error

    def close(self) -> None:
        """Give the connection up; the next request opens another."""
        if self._open is not None:
            self._open.connection.close()
            self._open = None

    def _headers(self, body: bytes | None, gzipped: bool) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"ctrlb-agent/{__version__}"}
        if self.key:
            if fault := key_fault(self.key):
                raise BadKey(f"was not asked: the key {fault}")
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
            except (http.client.HTTPException, OSError) as error:
                if not was_cut(error):
                    raise
                self.close()
        return self._exchange(method, path, body, headers, give_up_s)

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], give_up_s: float
    ) -> Answer:
        if self._open is None:
            self._open = opened(self.url, remaining_s(give_up_s))
        connection = self._open.connection
        connection.response_class = _by(give_up_s)
        connection.sock.settimeout(remaining_s(give_up_s))
        target = self._open.target_prefix + urlsplit(self.url).path + path
        connection.request(method, target, body=body, headers={**headers, **self._open.headers})
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
            raise Unusable(f"answers more than {MAX_ANSWER_BYTES:,} bytes")
    if response.length:
        raise http.client.IncompleteRead(bytes(content), response.length)
    response.read()  # of nothing, which frees the connection for the next request
    return bytes(content)


def was_cut(error: BaseException | None) -> bool:
    """Whether there was a connection, and it ended before the answer was whole."""
    cuts = (http.client.HTTPException, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
    return isinstance(error, cuts) or type(error).__name__ == "SSLEOFError"  # without importing `ssl`


def error_of(answer: Answer) -> str:
    """The server's own words, with its code: `… (MCP_KEY_EXPIRED)`. Of an answer without any, its status."""
    said = object_of(parsed(answer.body))
    error, code = text_of(said.get("error")), text_of(said.get("code"))
    if not error:
        return f"the server answered {answer.status}"
    return f"{error} ({code})" if code else error


def why_unreachable(error: Exception, url: str) -> str:
    """Why there was no answer, in words for a person, without the key and without a password of the address.

    What a library says of a value that it refuses holds the value, so only its kind is told.
    """
    shown = shown_url(url)
    if isinstance(error, socket.timeout):
        return f"{shown} did not answer in time"
    if isinstance(error, http.client.HTTPException):
        return f"{shown} broke off its answer ({type(error).__name__})"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {shown}"
    if isinstance(error, OSError):
        return f"{shown}: {error}"
    if isinstance(error, (Unusable, BadKey)):
        return f"{shown} {error}"
    return f"{shown} could not be asked ({type(error).__name__})"


def shown_url(url: str) -> str:
    """The address as a person may see it: without a name and a password in front of the host, even of a wrong one."""
    before, at, after = url.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    return f"{scheme if slashes else ''}{slashes}…@{after}" if at else url


def key_fault(key: str) -> str:
    """Why this can be nobody's key, without showing it; an empty text when it can."""
    return "" if key.isascii() and key.isprintable() else "holds characters that are not printable ASCII"


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
