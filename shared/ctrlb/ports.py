"""What the operations ask of the world. The docstrings are the contract, kept by every adapter.

`tests/contract` runs one suite per port over every adapter there is. Every method may raise
`Unavailable` when its store does not answer in time; then the caller was promised nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from ctrlb.domain.rows import (
    AgentActivity,
    Audit,
    ClaimRow,
    Dataset,
    Edit,
    Event,
    Grounds,
    IngestCredential,
    Key,
    Member,
    Role,
    Run,
    RunSummary,
    SessionRow,
    Settings,
    SignIn,
)
from ctrlb.domain.streams import Change, DeadLetter, Outcome
from ctrlb.domain.words import Term

Order: TypeAlias = Literal["newest", "oldest"]


PREVIEW_CHARS = 300
"""How much of a text an agent's peers are shown, so how much of it the index by time carries."""


class NumberTaken(Exception):
    """The record already has a row with this number; nothing was written."""


class Moved(Exception):
    """What was to be replaced is not as it was read: somebody changed it meanwhile. Nothing was written."""


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

    def add_event(self, run: Run, event: Event) -> None:
        """Write one event durably. Two equal events are two rows."""

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


class IdentityStore(Protocol):
    """Workspaces' members, roles, keys, settings and sign-ins."""

    def key(self, workspace: str, key_id: str, presented_sha256: str = "") -> Key | None:
        """The key as it is stored, revoked or not.

        Only where `presented_sha256` is its own may it be known from some seconds ago: so a wrong secret costs what
        an unknown id does, and no time tells which ids there are.
        """

    def add_key(self, key: Key, audit: Audit) -> None:
        """Write a new key; its id is random and taken to be new."""

    def keys(self, workspace: str, user: str | None) -> list[Key]:
        """The keys of a user, or of the workspace, oldest first, revoked ones too."""

    def revoke_key(self, workspace: str, key_id: str, revoked_us: int, audit: Audit) -> None:
        """Mark the key revoked; one that is revoked already keeps its first time."""

    def touch_key(self, workspace: str, key_id: str, used_us: int) -> None:
        """Note that the key was used; callers do so at most once an hour for a key."""

    def member(self, workspace: str, user: str) -> Member | None:
        """The person, active or not."""

    def members(self, workspace: str) -> list[Member]:
        """The workspace's people by name, active or not."""

    def change_member(self, before: Member | None, after: Member, by: Grounds | None, audit: Audit) -> None:
        """Replace `before` by `after`, or add `after` where there was nobody; or raise Moved and write nothing.

        It moved as well when `by`, what somebody else decided it by, is no longer as given; None is the command line.
        """

    def role(self, workspace: str, name: str) -> Role | None:
        """The role as the workspace has defined it; built-in roles are not kept."""

    def roles(self, workspace: str) -> list[Role]:
        """The roles that the workspace has defined, by name."""

    def change_role(self, before: Role | None, after: Role, by: Grounds, audit: Audit) -> None:
        """Replace or add a role as `change_member` does a person."""

    def settings(self, workspace: str) -> Settings:
        """The workspace's settings; the defaults when it has changed none."""

    def change_settings(
        self, workspace: str, before: Settings, after: Settings, by: Grounds | None, audit: Audit
    ) -> None:
        """Replace `before` by `after`, or raise Moved and write nothing, as `change_member` does."""

    def ingest_credential(
        self, workspace: str, credential_id: str, presented_sha256: str = ""
    ) -> IngestCredential | None:
        """The credential as it is stored, revoked or not; known from before as `key` is."""

    def ingest_credentials(self, workspace: str) -> list[IngestCredential]:
        """The workspace's credentials, oldest first, revoked ones too."""

    def add_ingest_credential(self, credential: IngestCredential, by: Grounds, audit: Audit) -> None:
        """Write a new credential, whose id is random and taken to be new; or raise Moved, as `change_member` does."""

    def revoke_ingest_credential(
        self, workspace: str, credential_id: str, revoked_us: int, by: Grounds, audit: Audit
    ) -> None:
        """Mark the credential revoked; one that is revoked already keeps its first time.

        Raises Moved, and writes nothing, as `change_member` does, and where there is no such credential.
        """

    def add_sign_in(self, sign_in: SignIn, *, once: bool) -> None:
        """Keep a session (`once=False`) or a one-time code (`once=True`)."""

    def sign_in(self, token_sha256: str) -> SignIn | None:
        """The session with this token's hash, expired or not."""

    def use_code(self, token_sha256: str) -> SignIn | None:
        """Take a one-time code: of any number of callers, one gets it."""

    def remove_sign_in(self, token_sha256: str) -> None:
        """End a session; one that is unknown is no error."""


class Issuer(Protocol):
    """Who signs a deployment's people in."""

    @property
    def address(self) -> str:
        """The issuer's own, where people sign out again."""

    @property
    def workspace(self) -> str:
        """The workspace whose members they are, at an address that serves every workspace."""

    def user(self, token: str) -> str | None:
        """The person that the token names; None when it is not the issuer's for us, or has ended.

        Raises Unavailable when the issuer's keys cannot be had.
        """


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
