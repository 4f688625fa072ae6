"""The facts that the stores keep. All are immutable; a change is a new row.

Times are whole microseconds since the epoch. An empty string stands for "none", as on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ClaimKind: TypeAlias = Literal["HOLD", "RELEASE", "DONE"]
EventKind: TypeAlias = Literal["NOTE", "HOLD", "RELEASE", "DONE", "REFUSED", "CHECK"]
EnforceMode: TypeAlias = Literal["off", "advisory", "enforce"]
GrantAccess: TypeAlias = Literal["read", "write"]
Permission: TypeAlias = Literal[
    "mcp.use", "sessions.write", "relay.write", "relay.read_all", "relay.manage", "members.manage"
]


NO_TIME_US = 0


@dataclass(frozen=True, slots=True)
class Dataset:
    """A workspace's sessions dataset: the scope of every session and, through it, of every run."""

    workspace: str
    name: str


@dataclass(frozen=True, slots=True)
class Run:
    """The address of a run: all agents that use the same run id in one dataset."""

    dataset: Dataset
    run_id: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a claim: the same agent name under another user's key is another agent."""

    user: str
    agent: str


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One numbered row of a resource's record in a run, carrying the state that it leads to.

    The last row and the present time are the whole state of the claim. `number` starts at 0 and grows
    by one: it orders the record and serves as the fencing number of a hold.
    """

    number: int
    kind: ClaimKind
    key: str
    resource: str
    holder: Holder
    ts_us: int
    lease_until_us: int
    """When the hold ends unless renewed; 0 in a RELEASE or DONE."""
    request_id: str
    """Names the call that wrote the row, so a write whose answer was lost is recognised."""


@dataclass(frozen=True, slots=True)
class Event:
    """What `peers` lists: a note, a refusal, an edit check's conflict, or a row of a claim record."""

    kind: EventKind
    holder: Holder
    ts_us: int
    resource: str = ""
    key: str = ""
    text: str = ""
    lease_until_us: int = 0
    """When a HOLD ends unless renewed; 0 in every other kind."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One content block of a session. Its identity: dataset, session_id, seq, block_idx."""

    ts_us: int
    """NO_TIME_US in a row that is to be written, and was sent without a time."""
    session_id: str
    seq: int
    block_idx: int = 0
    host: str = ""
    harness: str = ""
    parent_session: str = ""
    agent_id: str = ""
    run_id: str = ""
    agent: str = ""
    role: str = ""
    block_type: str = "text"
    tool_name: str = ""
    tool_use_id: str = ""
    command: str = ""
    paths: str = ""
    """A JSON array of strings, as text; empty for none."""
    body: str = ""
    """The block's text. A read may ask for its first characters only; `body_len` is always the whole."""
    body_len: int = 0
    """Length of the whole body in characters."""
    is_error: bool = False
    is_summary: bool = False
    cwd: str = ""
    git_branch: str = ""
    cost_usd: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    user_name: str = ""
    extra: str = ""
    """The columns that the contract does not name, as one JSON object; empty for none."""

    @property
    def identity(self) -> tuple[str, int, int]:
        """What makes two rows of a dataset the same row."""
        return (self.session_id, self.seq, self.block_idx)


COUNTED_AGENTS = 1_000
"""So many agents of a run are counted: all of a team's, and no more than the head of a run can hold."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What the list of runs shows of one run. Up to a second old."""

    run_id: str
    started_us: int
    last_us: int
    agents: int
    """COUNTED_AGENTS when there are that many or more."""
    events: int
    held: int
    """Resources held at the time of the read."""


@dataclass(frozen=True, slots=True)
class AgentActivity:
    """When an agent of a run wrote its first and last row, of whatever kind."""

    holder: Holder
    first_us: int
    last_us: int
    last_block_type: str
    """The block_type of the last row if that is a session row, else empty."""
    session_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """One path that a tool call of a run touched, keyed as claims are."""

    holder: Holder
    key: str
    path: str
    ts_us: int
    session_id: str
    seq: int
    block_idx: int


@dataclass(frozen=True, slots=True)
class Settings:
    """A workspace's Relay settings, with the contract's defaults."""

    enforce: EnforceMode = "advisory"
    lease_seconds: int = 600
    wait_ms: int = 20
    silent_after_seconds: int = 120
    sessions_dataset: str = "agent_sessions"
    write_tools: bool = True


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person may do in a dataset beside the workspace's own; to write includes to read."""

    dataset: str
    """A dataset's name, or how names begin with `*` behind it."""
    access: GrantAccess


@dataclass(frozen=True, slots=True)
class Role:
    """A role that a workspace has defined, beside the built-in ones."""

    workspace: str
    name: str
    permissions: frozenset[Permission]
    changed_us: int
    """When it was last defined; of each role the times only grow, so they tell its versions apart."""


@dataclass(frozen=True, slots=True)
class Member:
    """A person of a workspace and what they may do."""

    workspace: str
    user: str
    role: str
    active: bool = True
    grants: tuple[Grant, ...] = ()
    changed_us: int = 0
    """When role, grants or status last changed, 0 while they are as at first; of each person the times only grow."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a change was decided by: it may be made while all of this is as it was read."""

    by: Member
    """Who makes the change."""
    roles: Mapping[str, Role | None] = field(default_factory=dict)
    """The roles of the workspace's own that were looked at, by name; None for one that is not defined."""


@dataclass(frozen=True, slots=True)
class Key:
    """A person's MCP key as it is stored: of the secret, only the hash."""

    workspace: str
    key_id: str
    user: str
    name: str
    secret_sha256: str
    created_us: int
    expires_us: int | None
    revoked_us: int | None = None
    last_used_us: int | None = None

    def is_live(self, now_us: int) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or self.expires_us > now_us)


@dataclass(frozen=True, slots=True)
class IngestCredential:
    """What lets a service send OpenTelemetry logs to one dataset, and nothing else; of the secret, only the hash."""

    workspace: str
    credential_id: str
    dataset: str
    name: str
    created_by: str
    secret_sha256: str
    created_us: int
    revoked_us: int | None = None


@dataclass(frozen=True, slots=True)
class SignIn:
    """A person's session, or the one-time code that opens one; of either, only the hash is kept."""

    token_sha256: str
    workspace: str
    user: str
    expires_us: int


@dataclass(frozen=True, slots=True)
class Audit:
    """Who changed what: one row for each change of settings, keys, people, roles and ingest credentials."""

    workspace: str
    ts_us: int
    user: str
    """Who changed it; empty for the command line."""
    action: str
    before: str
    """What was there, as a JSON object; empty for nothing."""
    after: str
    name: str = ""
    """What tells it from others of the same microsecond; the store gives it."""
