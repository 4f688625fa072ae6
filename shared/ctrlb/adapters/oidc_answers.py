"""What an OpenID Connect issuer answers: read within bounds, and kept by the process.

Nothing that a caller sends chooses an address or makes the issuer be asked more often than the bounds below allow.
"""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from ctrlb.domain.errors import Invalid, Unavailable
from ctrlb.ports import Clock

FRESH_S = 3_600.0
"""How long an answer is used before the issuer is asked again, so that a key which it withdrew is refused."""
KEPT_S = 86_400.0
"""How long it is used when the issuer does not answer."""
ASK_EVERY_S = 30.0
"""What is not in an answer has the issuer asked at most so often: it may have changed its keys."""
RETRY_S = 5.0
"""After the issuer did not answer, it is asked at most so often."""
TIMEOUT_S = 2.0
"""For each of connecting and waiting for a next piece of an answer."""
FETCH_BUDGET_S = 5.0
"""For an answer as a whole, however slowly its pieces come."""
MAX_ASKING_S = 2 * FETCH_BUDGET_S
"""After it nobody waits any longer for the thread that asks, which reads two documents at most."""
MAX_DOCUMENT_BYTES = 262_144
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_AUTHORITY = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
"""A host and a port, and no user; what stands in a header must hold no other characters either."""

Content = TypeVar("Content")
Part = TypeVar("Part")


class IssuerFault(Exception):
    """What the issuer answered is not what it should be; the text says why."""


class IssuerReader:
    """Reads an issuer's documents. May be used by many threads."""

    def __init__(self, issuer: str, clock: Clock) -> None:
        """Raises Invalid for an issuer that others on the way could speak for."""
        if not _is_safe(issuer, allow_loopback=True):
            raise Invalid(f"OIDC_ISSUER should be an https address without query or user, not {issuer}")
        self._issuer = issuer
        self._on_loopback = urlsplit(issuer).hostname in LOOPBACK
        self._clock = clock
        self._pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=TIMEOUT_S, read=TIMEOUT_S))

    def discovery(self) -> dict[str, Any]:
        """Its discovery document, asked for now. Raises IssuerFault, HTTPError, ValueError or RecursionError."""
        discovery = self.document(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if discovery.get("issuer") != self._issuer:
            raise IssuerFault("the discovery document is another issuer's")
        return discovery

    def place(self, discovery: dict[str, Any], name: str) -> str | None:
        """The address that the discovery document names so; None for none where nobody else could answer."""
        address = discovery.get(name)
        if isinstance(address, str) and _is_safe(address, allow_loopback=self._on_loopback, allow_query=True):
            return address
        return None

    def document(self, address: str) -> dict[str, Any]:
        """The JSON object at the address, with the errors of `discovery`. Redirections are not followed."""
        until_s = self._clock.elapsed_s() + FETCH_BUDGET_S
        response = self._pool.request("GET", address, redirect=False, preload_content=False)
        try:
            if response.status != 200:
                raise IssuerFault(f"answered {response.status}")
            content = _bounded(response, lambda: self._clock.elapsed_s() > until_s)
        finally:
            response.close()
        document = json.loads(content)
        if not isinstance(document, dict):
            raise IssuerFault("answered JSON that is no object")
        return document


@dataclass(frozen=True, slots=True)
class _Read(Generic[Content]):
    content: Content
    at_s: float


class Kept(Generic[Content]):
    """What was read of an issuer at a time. May be used by many threads, of which one asks."""

    def __init__(self, read: Callable[[], Content], clock: Clock) -> None:
        """`read` asks the issuer, and raises what IssuerReader does."""
        self._ask_issuer = read
        self._clock = clock
        self._read: _Read[Content] | None = None
        self._asked_s: float | None = None
        self._failed = False
        self._asking = threading.Lock()

    def find(self, pick: Callable[[Content], Part | None]) -> Part | None:
        """What `pick` takes of the content; None when even a new reading has nothing for it.

        Raises Unavailable when the issuer does not answer now, and what is known is not enough.
        """
        if (part := self._known(pick, FRESH_S)) is not None:
            return part
        asks = self._asking.acquire(timeout=self._patience_s())
        if asks:
            try:
                if self._may_ask(pick):
                    self._ask()
            finally:
                self._asking.release()
        if (part := self._known(pick, KEPT_S)) is not None:
            return part
        if self._failed or not asks:
            raise Unavailable("the issuer does not answer", retry_after_s=int(RETRY_S))
        return None

    def _known(self, pick: Callable[[Content], Part | None], for_s: float) -> Part | None:
        known = self._read
        return pick(known.content) if known and self._clock.elapsed_s() - known.at_s < for_s else None

    def _patience_s(self) -> float:
        """How long to wait for a thread that asks: not at all where something is known already, or it is over time.

        The head of an answer may come more slowly than any bound sees. Then one thread waits for it, and not all.
        """
        if self._read is not None:
            return 0
        asked_s = self._asked_s
        return MAX_ASKING_S if asked_s is None else max(0, asked_s + MAX_ASKING_S - self._clock.elapsed_s())

    def _may_ask(self, pick: Callable[[Content], Part | None]) -> bool:
        if self._asked_s is None:
            return True
        if self._known(pick, FRESH_S) is not None:
            return False  # another thread has asked meanwhile
        return self._clock.elapsed_s() - self._asked_s >= (RETRY_S if self._failed else ASK_EVERY_S)

    def _ask(self) -> None:
        self._asked_s = self._clock.elapsed_s()
        try:
            self._read = _Read(self._ask_issuer(), self._asked_s)
            self._failed = False
        except (HTTPError, IssuerFault, ValueError, RecursionError):
            self._failed = True


def _is_safe(address: str, *, allow_loopback: bool, allow_query: bool = False) -> bool:
    """Whether nobody between here and the address can answer in its place."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    if not host or not _AUTHORITY.fullmatch(parts.netloc) or parts.fragment or (parts.query and not allow_query):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and allow_loopback and host in LOOPBACK)


def _bounded(response: urllib3.BaseHTTPResponse, is_late: Callable[[], bool]) -> bytes:
    content = bytearray()
    while piece := response.read1(65_536, decode_content=True):
        content += piece
        if len(content) > MAX_DOCUMENT_BYTES or is_late():
            raise IssuerFault("the answer is too long, or comes too slowly")
    return bytes(content)
