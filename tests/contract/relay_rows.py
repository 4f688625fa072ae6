"""Rows of a run for the suites on the relay's stores."""

from ctrlb.domain.rows import ClaimKind, ClaimRow, Dataset, Event, Holder, Run

DATASET = Dataset("acme", "agent_sessions")
RUN = Run(DATASET, "nightly")
NOW_US = 1_793_000_000_000_000
LEASE_US = 600_000_000


def hold(key: str, number: int, *, agent: str = "a", user: str = "ann", ts_us: int = NOW_US) -> ClaimRow:
    return ClaimRow(number, "HOLD", key, key[5:], Holder(user, agent), ts_us, ts_us + LEASE_US, f"request of {agent}")


def ending(kind: ClaimKind, key: str, number: int, *, agent: str = "a", ts_us: int = NOW_US) -> ClaimRow:
    return ClaimRow(number, kind, key, key[5:], Holder("ann", agent), ts_us, 0, f"request of {agent}")


def note(text: str, *, agent: str = "a", user: str = "ann", ts_us: int = NOW_US) -> Event:
    return Event("NOTE", Holder(user, agent), ts_us, text=text)
