"""Clients of AWS, with bounds on how long a call takes. The SDK's exceptions stop here.

A call to DynamoDB is sent at most twice. With these time-outs both tries end within 2.4 s, or 3 s when the first
was throttled late, so a claim of a free resource, one write and one read, ends within its five seconds whatever
becomes of them.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError, HTTPClientError
from botocore.exceptions import ConnectionError as NotConnected
from botocore.parsers import ResponseParserError
from botocore.session import get_session

from ctrlb.domain.errors import Unavailable

CONNECT_TIMEOUT_S = 0.4
READ_TIMEOUT_S = 0.75
ATTEMPTS = 2
CONNECTIONS = 24
"""As many as threads of one call are at work at once, and some more."""
RETRY_AFTER_S = 1

DYNAMODB_CONFIG = Config(
    connect_timeout=CONNECT_TIMEOUT_S,
    read_timeout=READ_TIMEOUT_S,
    max_pool_connections=CONNECTIONS,
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    tcp_keepalive=True,
)
SCAN_CONFIG = Config(
    connect_timeout=2,
    read_timeout=20,
    max_pool_connections=CONNECTIONS,
    retries={"mode": "standard", "total_max_attempts": 4},
)
"""For reading a table through, where nobody waits for each page."""
S3_CONFIG = Config(
    connect_timeout=1,
    read_timeout=3,
    max_pool_connections=CONNECTIONS,
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
)

PASSING = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""Error codes of a store that is busy or down; every other one is a fault of the code or of the deployment."""

_LATE = (NotConnected, HTTPClientError, CredentialRetrievalError, ResponseParserError)
"""No connection, no answer in time, or half of one."""

T = TypeVar("T")


class StoreRefused(RuntimeError):
    """The store calls a call wrong or not allowed: a fault of the code, or of what was deployed."""


def connect(service: str, config: Config) -> Any:
    """A client of the service, for the region, credentials and address that the environment names.

    Raises StoreRefused when it does not name a region, say.
    """
    try:
        return get_session().create_client(service, config=config)
    except BotoCoreError as error:
        raise StoreRefused(type(error).__name__) from error


def account() -> tuple[Any, str]:
    """The credentials and the region that the environment names."""
    session = get_session()
    return session.get_credentials(), str(session.get_config_variable("region"))


def answered(call: Callable[[], T]) -> T:
    """What the call of a client returns. Raises Unavailable when the store is busy, down or late.

    An error with a code that says neither is left as it is, for the adapter that knows what it means.
    """
    try:
        return call()
    except ClientError as error:
        if error_code(error) in PASSING or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
            raise unavailable() from error
        raise
    except _LATE as error:
        raise unavailable() from error
    except BotoCoreError as error:
        raise StoreRefused(type(error).__name__) from error


def error_code(error: ClientError) -> str:
    """The code by which AWS calls the error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def refused(operation: str, error: ClientError) -> StoreRefused:
    """The fault that the error shows. Its own text stays out: it can hold what somebody wrote."""
    return StoreRefused(f"{operation}: {error_code(error)}")


def unavailable() -> Unavailable:
    """What a caller is told when a store did not do what it was asked."""
    return Unavailable("the store did not answer in time; nothing is promised, send the same again", RETRY_AFTER_S)
