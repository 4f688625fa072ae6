"""Relay stores that pass everything on to a real one, for tests that come in between."""

from collections.abc import Sequence

from ctrlb.domain.rows import ClaimRow, Event, Run
from ctrlb.ports import NumberTaken, RelayStore


class PassingRelay:
    """A RelayStore in front of another."""

    def __init__(self, inner: RelayStore) -> None:
        self.inner = inner

    def append(self, run: Run, row: ClaimRow) -> None:
        self.inner.append(run, row)

    def last(self, run: Run, key: str) -> ClaimRow | None:
        return self.inner.last(run, key)

    def last_of_each(self, run: Run, keys: Sequence[str]) -> list[ClaimRow | None]:
        return self.inner.last_of_each(run, keys)

    def add_events(self, run: Run, *events: Event) -> None:
        self.inner.add_events(run, *events)

    def newest(self, run: Run, limit: int) -> list[Event]:
        return self.inner.newest(run, limit)


class AnswersLost(PassingRelay):
    """Writes arrive, but their answers do not: the SDK sends them again and meets its own rows."""

    def append(self, run: Run, row: ClaimRow) -> None:
        super().append(run, row)
        raise NumberTaken


class AlwaysTaken(PassingRelay):
    """A record whose next number somebody else always has."""

    def append(self, run: Run, row: ClaimRow) -> None:
        raise NumberTaken

    def last(self, run: Run, key: str) -> ClaimRow | None:
        return None
