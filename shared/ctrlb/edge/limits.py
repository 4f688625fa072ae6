"""Who is let in, and how often: by key, by person, and by the address that refused credentials and codes come from.

Each process counts for itself, and forgets whom it has not seen for long, so limits are approximate. Of a credential
only a hash is kept. An address is that of the connection: no header says otherwise.
"""

import functools
import ipaddress
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from ctrlb.domain.access import Caller
from ctrlb.domain.errors import ForbiddenRole, Invalid, KeyRefused, SignInRefused, TooManyRequests, WorkspaceMismatch
from ctrlb.domain.key_format import secret_hash
from ctrlb.domain.rates import Rate, take
from ctrlb.edge.identity import credential_of, host_of, identify
from ctrlb.ports import Ports

REQUESTS_PER_S = "REQUESTS_PER_S"
"""The variable that says how many requests a second a key or person may make for long; 0 switches limits off."""
DEFAULT_REQUESTS_PER_S = 1_000.0
BURST_S = 5
"""After a pause, as many at once as in so many seconds."""
REFUSALS = Rate(per_s=20, burst=500)
"""How many credentials of one address may be refused."""
MAX_COUNTED = 10_000
"""Keys, persons, addresses and credentials that a process counts, each; those it has not seen for longest go first."""
_NETWORK_BITS = 64
"""What one subscriber has of IPv6: its addresses count as one."""


class Buckets:
    """A bucket of tokens for each name, full for one that is new. May be used by many threads."""

    def __init__(self, rate: Rate, elapsed_s: Callable[[], float]) -> None:
        self._rate = rate
        self._elapsed_s = elapsed_s
        self._full_at_s: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> float:
        """Take a token, or say in how many seconds there is one; 0 when it was taken."""
        now_s = self._elapsed_s()
        with self._lock:
            wait_s, full_at_s = take(self._full_at_s.pop(name, 0.0), now_s, self._rate)
            self._full_at_s[name] = full_at_s
            if len(self._full_at_s) > MAX_COUNTED:
                self._full_at_s.popitem(last=False)
        return wait_s

    def wait_s(self, name: str) -> float:
        """In how many seconds there is a token, which nobody takes."""
        return take(self._full_at_s.get(name, 0.0), self._elapsed_s(), self._rate)[0]


class Limits:
    """What a process counts of its callers."""

    def __init__(self, requests_per_s: float, elapsed_s: Callable[[], float]) -> None:
        """Allow so many requests; `elapsed_s` is a clock that never goes back."""
        self._requests = Buckets(Rate(requests_per_s, max(1, int(requests_per_s * BURST_S))), elapsed_s)
        self._refusals = Buckets(REFUSALS, elapsed_s)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def caller(self, authorization: str | None, address: str, ports: Ports, host: str = "") -> Caller:
        """See `let_in`."""
        credential = secret_hash(credential_of(authorization))
        # Whoever was let in before is so still when somebody else guesses from the same address.
        if credential not in self._known:
            self.check_refusals(address)
        try:
            caller = identify(authorization, ports, host)
        except (KeyRefused, SignInRefused, ForbiddenRole, WorkspaceMismatch):
            self.count_refusal(address)
            with self._lock:
                self._known.pop(credential, None)
            raise
        with self._lock:
            self._known.pop(credential, None)
            self._known[credential] = None
            if len(self._known) > MAX_COUNTED:
                self._known.popitem(last=False)
        # One token of an issuer can be written in several ways, and renewed: what counts is whose it is.
        name = f"{caller.workspace}/{caller.user}" if caller.is_person else credential
        if wait_s := self._requests.take(name):
            raise _too_many("too many requests of this key or person", wait_s)
        return caller

    def check_refusals(self, address: str) -> None:
        """Raise TooManyRequests when too many credentials of the address were refused of late."""
        if wait_s := self._refusals.wait_s(_network(address)):
            raise _too_many("too many credentials from this address were refused", wait_s)

    def count_refusal(self, address: str) -> None:
        """Count a refused credential of the address."""
        self._refusals.take(_network(address))


def let_in(event: Mapping[str, Any], ports: Ports) -> Caller:
    """Who sent the event. Raises what `identify` does, and TooManyRequests for one who does so too often."""
    authorization, host = event["headers"].get("authorization"), host_of(event)
    limits = limits_here()
    if limits is None:
        return identify(authorization, ports, host)
    return limits.caller(authorization, _address(event), ports, host)


def check_refusals(event: Mapping[str, Any]) -> None:
    """Raise TooManyRequests when too many credentials or codes of the event's address were refused of late."""
    if limits := limits_here():
        limits.check_refusals(_address(event))


def count_refusal(event: Mapping[str, Any]) -> None:
    """Count a refused code of the event's address."""
    if limits := limits_here():
        limits.count_refusal(_address(event))


@functools.cache
def limits_here() -> Limits | None:
    """This process's, as the environment says; None where it says that there are none. Raises Invalid."""
    said = os.environ.get(REQUESTS_PER_S)
    try:
        requests_per_s = float(said) if said else DEFAULT_REQUESTS_PER_S
    except ValueError:
        requests_per_s = math.nan
    if not 0 <= requests_per_s < math.inf:
        raise Invalid(f"{REQUESTS_PER_S} should be a number from 0 on, not {said}")
    return Limits(requests_per_s, time.monotonic) if requests_per_s > 0 else None


def _address(event: Mapping[str, Any]) -> str:
    return str(event["requestContext"]["http"].get("sourceIp", ""))


def _network(address: str) -> str:
    """The name under which an address is counted: one for all that are none, however long and many they are."""
    try:
        spoken = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if spoken.version == 4:
        return str(spoken)
    if spoken.ipv4_mapped:
        return str(spoken.ipv4_mapped)  # as a listener for both kinds writes an IPv4 address
    return str(ipaddress.ip_network((spoken, _NETWORK_BITS), strict=False))


def _too_many(what: str, wait_s: float) -> TooManyRequests:
    return TooManyRequests(f"{what}; send the same again later", retry_after_s=max(1, math.ceil(wait_s)))
