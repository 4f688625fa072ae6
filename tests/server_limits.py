"""A server's limits of time, far enough for any machine: it answers 503 where a request takes longer than 5 s.

Tests of the limits themselves set them anew.
"""

from ctrlb import claims
from ctrlb.adapters import oidc_answers, sqlite_database, sqlite_readers

LONG_S = 60.0


def extend() -> None:
    """Let the stores of this process take their time."""
    sqlite_readers.READ_BUDGET_S = LONG_S
    sqlite_database.BUSY_TIMEOUT_MS = int(LONG_S * 1_000)
    oidc_answers.TIMEOUT_S = LONG_S


def extend_by_the_clock() -> None:
    """The same for what a test with a clock of its own looks at: for a process that has a real one."""
    extend()
    claims.CALL_BUDGET_S = claims.LAST_TURN_S = LONG_S
