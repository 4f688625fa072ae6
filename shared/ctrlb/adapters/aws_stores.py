"""The stores of a deployment in AWS. Each is imported and made at its first call, so that no function waits for what
it does not use; `open_table` makes ahead of the first request what nearly all use.
"""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ctrlb.adapters.system import SystemClock, SystemRandomness
from ctrlb.domain.errors import Invalid
from ctrlb.ports import (
    DeadLetters,
    Follower,
    IdentityStore,
    Ports,
    RelayStore,
    RunStore,
    SearchRebuild,
    SessionIndex,
    SessionStore,
)

if TYPE_CHECKING:
    from ctrlb.adapters.dynamodb_table import Table
    from ctrlb.adapters.opensearch import OpenSearch
    from ctrlb.adapters.s3_bodies import S3Bodies

RELAY_TABLE = "RELAY_TABLE"
SESSIONS_TABLE = "SESSIONS_TABLE"
BODIES_BUCKET = "BODIES_BUCKET"
SEARCH_URL = "SEARCH_URL"
"""Where the search index is; without it, search is off."""
SEARCH_SERVICE = "SEARCH_SERVICE"
"""How requests to it are signed: `es` for a domain, `aoss` for a serverless collection."""
DEAD_LETTER_QUEUE = "DEAD_LETTER_QUEUE"
"""The address of the queue for what a stream's function cannot take."""
OF_REBUILD = (SESSIONS_TABLE, BODIES_BUCKET, SEARCH_URL)
"""What a rebuild of the search index needs."""
BULK_TIMEOUT_S = 10.0
"""How long one of at most three answers to a request of the indexer may take."""
REBUILD_TIMEOUT_S = 30.0


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

        return DynamodbSessions(self._table(SESSIONS_TABLE), self._bodies(), self._clock)

    def _bodies(self) -> "S3Bodies":
        from ctrlb.adapters.s3_bodies import S3Bodies

        return S3Bodies(self._variables[BODIES_BUCKET])

    def _index(self) -> SessionIndex:
        if not self._variables.get(SEARCH_URL):
            from ctrlb.adapters.search_off import SearchOff

            return SearchOff()
        from ctrlb.adapters.opensearch_sessions import OpenSearchSessions

        return OpenSearchSessions(self._search())

    def _search(self, **bounds: float) -> "OpenSearch":
        from ctrlb.adapters.aws_client import account
        from ctrlb.adapters.opensearch import OpenSearch, Signing

        url = self._variables.get(SEARCH_URL)
        if not url:
            raise RuntimeError(f"no search index is configured: {SEARCH_URL} says where it is")
        credentials, region = account()
        if credentials is None:
            raise Invalid("the environment has no credentials of AWS")
        service = self._variables.get(SEARCH_SERVICE, "es")
        return OpenSearch(url, Signing(credentials, region, service), **bounds)

    def search_follower(self) -> Follower:
        """Keeps the search index up with the sessions table."""
        from ctrlb.adapters.opensearch_writer import OpenSearchWriter
        from ctrlb.adapters.search_follower import SearchFollower

        writer = OpenSearchWriter(self._search(timeout_s=BULK_TIMEOUT_S))
        return SearchFollower(writer, self._bodies().get, self._clock)

    def runs_follower(self) -> Follower:
        """Keeps the list of runs up with both tables."""
        from ctrlb.adapters.dynamodb_projections import DynamodbProjections
        from ctrlb.adapters.runs_follower import RunsFollower

        return RunsFollower(DynamodbProjections(self._table(RELAY_TABLE)), self._bodies().get)

    def search_rebuild(self) -> SearchRebuild:
        """Makes a dataset's search index anew from the sessions table. Raises Invalid when a part is not named."""
        missing = [name for name in OF_REBUILD if not self._variables.get(name)]
        if missing:
            raise Invalid(f"the environment names a deployment but for {', '.join(missing)}")
        from ctrlb.adapters.aws_client import SCAN_CONFIG, connect
        from ctrlb.adapters.dynamodb_table import Table
        from ctrlb.adapters.opensearch_indices import OpenSearchIndices
        from ctrlb.adapters.opensearch_writer import OpenSearchWriter
        from ctrlb.adapters.search_rebuild import OpenSearchRebuild

        table = Table(connect("dynamodb", SCAN_CONFIG), self._variables[SESSIONS_TABLE])
        service = self._search(timeout_s=REBUILD_TIMEOUT_S)
        indices, writer = OpenSearchIndices(service), OpenSearchWriter(service)
        return OpenSearchRebuild(table, self._bodies().get, indices, writer, self._clock)

    def dead_letters(self) -> DeadLetters:
        """The queue for what a stream's function cannot take."""
        from ctrlb.adapters.aws_client import connect
        from ctrlb.adapters.sqs_dead_letters import SQS_CONFIG, SqsDeadLetters

        return SqsDeadLetters(self._variables[DEAD_LETTER_QUEUE], lambda: connect("sqs", SQS_CONFIG))


def late(make: Callable[[], Any]) -> Any:
    """What `make` makes, made at the first call of one of its methods."""
    return _Late(functools.cache(make))


class _Late:
    """Passes every call on. Two threads that come first may both make the store; one of the two is kept."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)
