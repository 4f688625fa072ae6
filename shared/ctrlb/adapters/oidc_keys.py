"""The keys that an OpenID Connect issuer signs with, read from where its discovery document says.

Nothing that a caller sends chooses an address or makes the issuer be asked more often than the bounds below allow.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from ctrlb.domain.errors import Invalid, Unavailable
from ctrlb.ports import Clock

if TYPE_CHECKING:
    from jwt import PyJWK

FRESH_S = 3_600.0
"""How long keys are used before the issuer is asked again, so that a key which it withdrew is refused."""
KEPT_S = 86_400.0
"""How long they are used when the issuer does not answer."""
ASK_EVERY_S = 30.0
"""An id that is not among the keys has the issuer asked at most so often: it may have changed its keys."""
RETRY_S = 5.0
"""After the issuer did not answer, it is asked at most so often."""
TIMEOUT_S = 2.0
"""For each of connecting and waiting for a next piece of an answer."""
FETCH_BUDGET_S = 5.0
"""For an answer as a whole, however slowly its pieces come."""
MAX_DOCUMENT_BYTES = 262_144
MAX_KEYS = 100
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_KINDS = {("RSA", ""): "RS256", ("EC", "P-256"): "ES256"}
"""The kinds of keys that are taken, each for one algorithm: a token does not choose."""
_ALWAYS = ["RS256"]
"""What an issuer that says nothing signs with. Source: OpenID Connect Discovery 1.0, section 3."""


class IssuerFault(Exception):
    """What the issuer answered is not what it should be; the text says why."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The keys as they were read at a time."""

    by_id: Mapping[str, "PyJWK"] = field(default_factory=dict)
    at_s: float = 0.0


class IssuerKeys:
    """The keys of one issuer, kept by the process. May be used by many threads, of which one asks."""

    def __init__(self, issuer: str, clock: Clock) -> None:
        """Raises Invalid for an issuer that others on the way could speak for."""
        if not is_safe(issuer, allow_loopback=True):
            raise Invalid(f"OIDC_ISSUER should be an https address without query or user, not {issuer}")
        self._issuer = issuer
        self._clock = clock
        self._read = _Read()
        self._asked_s: float | None = None
        self._failed = False
        self._asking = threading.Lock()
        self._pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=TIMEOUT_S, read=TIMEOUT_S))

    def find(self, key_id: str) -> "PyJWK | None":
        """The key of that id; None when the issuer has none.

        Raises Unavailable when the issuer's keys cannot be had now.
        """
        known = self._read
        if key_id in known.by_id and self._age_s(known) < FRESH_S:
            return known.by_id[key_id]
        # Where there are keys already, nobody waits for the thread that asks.
        asks = self._asking.acquire(blocking=not known.by_id)
        if asks:
            try:
                if self._may_ask(key_id):
                    self._ask()
            finally:
                self._asking.release()
        known = self._read
        if key_id in known.by_id and self._age_s(known) < KEPT_S:
            return known.by_id[key_id]
        if self._failed or not asks:
            raise Unavailable("the issuer of the token does not answer", retry_after_s=int(RETRY_S))
        return None

    def _age_s(self, known: _Read) -> float:
        return self._clock.elapsed_s() - known.at_s

    def _may_ask(self, key_id: str) -> bool:
        if self._asked_s is None:
            return True
        if key_id in self._read.by_id and self._age_s(self._read) < FRESH_S:
            return False  # another thread has asked meanwhile
        return self._clock.elapsed_s() - self._asked_s >= (RETRY_S if self._failed else ASK_EVERY_S)

    def _ask(self) -> None:
        self._asked_s = self._clock.elapsed_s()
        try:
            self._read = _Read(self._fetched(), self._asked_s)
            self._failed = False
        except (HTTPError, IssuerFault, ValueError, RecursionError):
            self._failed = True

    def _fetched(self) -> dict[str, "PyJWK"]:
        discovery = self._document(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if discovery.get("issuer") != self._issuer:
            raise IssuerFault("the discovery document is another issuer's")
        address = discovery.get("jwks_uri")
        on_loopback = urlsplit(self._issuer).hostname in LOOPBACK
        if not isinstance(address, str) or not is_safe(address, allow_loopback=on_loopback, allow_query=True):
            raise IssuerFault("the discovery document names no safe place for keys")
        algorithms = discovery.get("id_token_signing_alg_values_supported")
        return _usable(self._document(address), algorithms if isinstance(algorithms, list) else _ALWAYS)

    def _document(self, address: str) -> dict[str, Any]:
        """The JSON object at the address. Redirections are not followed."""
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


def is_safe(address: str, *, allow_loopback: bool, allow_query: bool = False) -> bool:
    """Whether nobody between here and the address can answer in its place."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    if not host or parts.username is not None or parts.fragment or (parts.query and not allow_query):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and allow_loopback and host in LOOPBACK)


def _bounded(response: urllib3.BaseHTTPResponse, is_late: Callable[[], bool]) -> bytes:
    content = bytearray()
    while piece := response.read1(65_536, decode_content=True):
        content += piece
        if len(content) > MAX_DOCUMENT_BYTES or is_late():
            raise IssuerFault("the answer is too long, or comes too slowly")
    return bytes(content)


def _usable(document: Mapping[str, Any], algorithms: list[Any]) -> dict[str, "PyJWK"]:
    """The keys for signatures of the issuer's algorithms, by their ids. Others are passed over."""
    import jwt

    listed = document.get("keys")
    if not isinstance(listed, list):
        raise IssuerFault("the key set has no keys")
    keys: dict[str, jwt.PyJWK] = {}
    for each in listed[:MAX_KEYS]:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig" or not isinstance(each.get("kid"), str):
            continue
        algorithm = _KINDS.get((str(each.get("kty")), str(each.get("crv", ""))))
        if algorithm is None or algorithm not in algorithms or each.get("alg", algorithm) != algorithm:
            continue
        try:
            keys.setdefault(each["kid"], jwt.PyJWK(each, algorithm))
        except jwt.PyJWTError:
            continue
    return keys
