"""The stores of a deployment in AWS. Each is imported and made at its first call, so that no function waits for what
it does not use; `open_table` makes ahead of the first request what nearly all use.
"""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ctrlb.adapters.system import SystemClock, SystemRandomness
from ctrlb.ports import IdentityStore, Ports, RelayStore, RunStore, SessionIndex, SessionStore

if TYPE_CHECKING:
    from ctrlb.adapters.dynamodb_table import Table

RELAY_TABLE = "RELAY_TABLE"
SESSIONS_TABLE = "SESSIONS_TABLE"
BODIES_BUCKET = "BODIES_BUCKET"
SEARCH_URL = "SEARCH_URL"
"""Where the search index is; without it, search is off."""
SEARCH_SERVICE = "SEARCH_SERVICE"
"""How requests to it are signed: `es` for a domain, `aoss` for a serverless collection."""


class AwsStores:
    """The stores that the variables name."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._clock = SystemClock()
        self._random = SystemRandomness()
        self._client = functools.cache(self._connected)

    def ports(self) -> Ports:
        """All of them, none made yet."""
        return Ports(
            relay=late(self._relay),
            runs=late(self._runs),
            sessions=late(self._sessions),
            index=late(self._index),
            identity=late(self._identity),
            clock=self._clock,
            random=self._random,
        )

    def open_table(self) -> None:
        """Make the client of the tables; it connects at its first call."""
        self._client()

    def _connected(self) -> Any:
        from ctrlb.adapters.aws_client import DYNAMODB_CONFIG, connect

        return connect("dynamodb", DYNAMODB_CONFIG)

    def _table(self, variable: str) -> "Table":
        from ctrlb.adapters.dynamodb_table import Table

        return Table(self._client(), self._variables[variable])

    def _relay(self) -> RelayStore:
        from ctrlb.adapters.dynamodb_relay import DynamodbRelay

        return DynamodbRelay(self._table(RELAY_TABLE), self._clock, self._random)

    def _runs(self) -> RunStore:
        from ctrlb.adapters.dynamodb_runs import DynamodbRuns

        return DynamodbRuns(self._table(RELAY_TABLE))

    def _identity(self) -> IdentityStore:
        from ctrlb.adapters.dynamodb_identity import DynamodbIdentity
        from ctrlb.adapters.identity_cache import CachedIdentity

        return CachedIdentity(DynamodbIdentity(self._table(RELAY_TABLE), self._random), self._clock)

    def _sessions(self) -> SessionStore:
        from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
        from ctrlb.adapters.s3_bodies import S3Bodies

        bodies = S3Bodies(self._variables[BODIES_BUCKET])
        return DynamodbSessions(self._table(SESSIONS_TABLE), bodies, self._clock)

    def _index(self) -> SessionIndex:
        url = self._variables.get(SEARCH_URL)
        if not url:
            from ctrlb.adapters.search_off import SearchOff

            return SearchOff()
        from ctrlb.adapters.aws_client import account
        from ctrlb.adapters.opensearch import OpenSearch, Signing
        from ctrlb.adapters.opensearch_sessions import OpenSearchSessions

        credentials, region = account()
        service = self._variables.get(SEARCH_SERVICE, "es")
        return OpenSearchSessions(OpenSearch(url, Signing(credentials, region, service)))


def late(make: Callable[[], Any]) -> Any:
    """What `make` makes, made at the first call of one of its methods."""
    return _Late(functools.cache(make))


class _Late:
    """Passes every call on. Two threads that come first may both make the store; one of the two is kept."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)
