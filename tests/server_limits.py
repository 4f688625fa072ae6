"""A server's limits, far enough for any machine.

A slow one needs more for a request than the 5 s after which it answers 503. A fast one sends more requests, and more
bad credentials, in a second than a server takes from one caller. Tests of the limits themselves set them anew.
"""

from ctrlb import claims
from ctrlb.adapters import oidc_answers, sqlite_database, sqlite_readers
from ctrlb.domain.rates import Rate
from ctrlb.edge import limits

LONG_S = 60.0
MANY = 1_000_000


def extend() -> None:
    """Let the stores of this process take their time."""
    sqlite_readers.READ_BUDGET_S = LONG_S
    sqlite_database.BUSY_TIMEOUT_MS = int(LONG_S * 1_000)
    oidc_answers.TIMEOUT_S = LONG_S


def extend_by_the_clock() -> None:
    """The same for what a test with a clock of its own looks at: for a process that has a real one."""
    extend()
    claims.CALL_BUDGET_S = claims.LAST_TURN_S = LONG_S
    limits.DEFAULT_REQUESTS_PER_S = MANY
    limits.REFUSALS = Rate(per_s=MANY, burst=MANY)
