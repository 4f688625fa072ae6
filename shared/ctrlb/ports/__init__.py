"""What the operations ask of the world. The docstrings are the contract, kept by every adapter.

`tests/contract` runs one suite per port over every adapter there is. Every method may raise
`Unavailable` when its store does not answer in time; then the caller was promised nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from ctrlb.domain.rows import AgentActivity, ClaimRow, Dataset, Edit, Event, Run, RunSummary, SessionRow
from ctrlb.domain.streams import Change, DeadLetter, Outcome
from ctrlb.domain.words import Term
from ctrlb.ports.identity import MAX_LIVE_KEYS, IdentityStore, Issuer, Moved, RoleGiven, SignInPlaces, TooManyKeys

Order: TypeAlias = Literal["newest", "oldest"]


PREVIEW_CHARS = 300
"""How much of a text an agent's peers are shown, so how much of it the index by time carries."""


class NumberTaken(Exception):
    """The record already has a row with this number; nothing was written."""


class SessionTaken(Exception):
    """A session of the upload belongs to another user; nothing was written."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id


class RelayStore(Protocol):
    """The append-only record of runs: a numbered record for each resource, and events beside them."""

    def append(self, run: Run, row: ClaimRow) -> None:
        """Write one row of a record durably, or raise NumberTaken and write nothing."""

    def last(self, run: Run, key: str) -> ClaimRow | None:
        """The newest row of the key's record, including every append that has returned."""

    def last_of_each(self, run: Run, keys: Sequence[str]) -> list[ClaimRow | None]:
        """`last` for each of at most 128 keys, in their order: a check has 64 paths, each with up to two keys."""

    def add_events(self, run: Run, *events: Event) -> None:
        """Write the events durably. Two equal ones are two rows. When it raises, some may be written."""

    def newest(self, run: Run, limit: int) -> list[Event]:
        """The run's events and claim rows, newest first, including every write that has returned.

        Of each text at least the first PREVIEW_CHARS.
        """


class RunStore(Protocol):
    """What the Runs page shows, derived from the rows. May lag behind them by a second or two."""

    def runs(
        self, dataset: Dataset, now_us: int, before: tuple[int, str] | None, limit: int, user: str | None
    ) -> list[RunSummary]:
        """Runs by (started, run_id), newest first, strictly below `before`; of `user` those with a row of theirs."""

    def run(self, run: Run, now_us: int, user: str | None) -> RunSummary | None:
        """One run, or None when it has no row, or none of `user` where one is named."""

    def agents(self, run: Run) -> list[AgentActivity]:
        """Every agent with a row in the run, in order of its first."""

    def resources(self, run: Run, limit: int) -> tuple[list[ClaimRow], int]:
        """The last row of each record, newest first, at most `limit`; and how many records there are."""

    def edits(self, run: Run, limit: int) -> list[Edit]:
        """The newest edits of the run's session rows, newest first, at most `limit`; none of a call that failed."""


class SessionStore(Protocol):
    """The session rows by identity. A write is in every read that starts after it returned."""

    def write(self, dataset: Dataset, user: str, rows: Sequence[SessionRow], written_us: int) -> None:
        """Write all rows durably, or raise SessionTaken and write none.

        A session belongs to the user of its first write. A row with the identity of an earlier one
        takes its place. A row without a time keeps that of the one it replaces, or else gets `written_us`.
        `rows` holds no identity twice.
        """

    def owner(self, dataset: Dataset, session_id: str) -> str | None:
        """The user that the session belongs to, or None when it has no row."""

    def rows(
        self, dataset: Dataset, session_id: str, seq_from: int, seq_to: int, limit: int, text_chars: int
    ) -> list[SessionRow]:
        """Rows with seq_from <= seq <= seq_to by (seq, block_idx), at most `limit`.

        Of each text (command, paths, extra and body) the first `text_chars` characters, wherever that cuts it.
        """

    def rows_at(
        self, dataset: Dataset, session_id: str, places: Sequence[tuple[int, int]], text_chars: int
    ) -> list[SessionRow]:
        """The rows at these (seq, block_idx), at most 32, in any order; cut as in `rows`."""


@dataclass(frozen=True, slots=True)
class Found:
    """One page of a search, and how many hits there are in all, counted up to the cap."""

    total: int
    rows: list[SessionRow]
    """With whole bodies for `search`, with whole commands and no body for `commands`: snippets are cut from them.

    Paths and extra may be left out.
    """


class SessionIndex(Protocol):
    """Search over session rows. A write is found within a second or two after it returned."""

    def search(
        self,
        dataset: Dataset,
        term: Term,
        *,
        user: str | None,
        session_id: str | None,
        tool: str | None,
        order: Order,
        one_per_session: bool,
        offset: int,
        limit: int,
    ) -> Found:
        """Rows whose text or command has the term's words in order, next to each other.

        Ordered by (ts, session_id, seq, block_idx), all one direction. With `one_per_session` the
        first hit of each session, and `total` counts sessions. Counting stops at MAX_COUNTED + 1.
        """

    def commands(self, dataset: Dataset, text: str, *, user: str | None, offset: int, limit: int) -> Found:
        """Tool calls whose folded command contains the (already folded) text, newest first."""


class Follower(Protocol):
    """What is derived from a table, kept up with the changes that the table's stream delivers."""

    def take(self, changes: Sequence[Change]) -> list[Outcome]:
        """Follow the changes of a batch and tell of each, in their order, what became of it.

        Taking a change again, or an older one after a newer, changes nothing. May raise Unavailable: then all again.
        """


class SearchRebuild(Protocol):
    """Makes a dataset's search index anew from its stored rows."""

    def run(self, dataset: Dataset, tell: Callable[[str], None]) -> None:
        """Rebuild it; `tell` is called with a line now and then, on any thread. Search goes on meanwhile.

        May be ended at any moment, and run again: what was searched before is searched until all is done.
        Raises Unavailable when it could not be done.
        """


class DeadLetters(Protocol):
    """Where somebody looks for what could not be taken."""

    def put(self, letters: Sequence[DeadLetter]) -> None:
        """Keep the letters; one may be kept twice. When it raises Unavailable, some of them may not be kept."""


class Clock(Protocol):
    """The present, and waiting."""

    def now_us(self) -> int:
        """Microseconds since the epoch by the wall clock."""

    def elapsed_s(self) -> float:
        """Seconds on a clock that never goes back, for bounds on how long a call may take."""

    def wait_ms(self, ms: int) -> None:
        """Return after `ms` milliseconds."""


class Randomness(Protocol):
    """Names and secrets that nobody can guess."""

    def request_id(self) -> str:
        """A name for one call, never given twice."""

    def key_id(self) -> str:
        """12 letters and digits."""

    def secret(self) -> str:
        """43 letters and digits: 256 random bits."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All that an operation may reach."""

    relay: RelayStore
    runs: RunStore
    sessions: SessionStore
    index: SessionIndex
    identity: IdentityStore
    clock: Clock
    random: Randomness
    workspace_hosts: Mapping[str, str] = field(default_factory=dict)
    """The workspace that an address serves alone, by host name in small letters. Any other address serves all."""
    issuer: Issuer | None = None
    """None where no issuer's tokens are taken."""


__all__ = [
    "MAX_LIVE_KEYS",
    "PREVIEW_CHARS",
    "Clock",
    "DeadLetters",
    "Follower",
    "Found",
    "IdentityStore",
    "Issuer",
    "Moved",
    "NumberTaken",
    "Order",
    "Ports",
    "Randomness",
    "RelayStore",
    "RoleGiven",
    "RunStore",
    "SearchRebuild",
    "SessionIndex",
    "SessionStore",
    "SessionTaken",
    "SignInPlaces",
    "TooManyKeys",
]
