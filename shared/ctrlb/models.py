"""The wire: every request and answer, for HTTP and MCP alike.

A request's docstring is its MCP tool's description, and a field's description is the argument's, so
they speak to the agent that reads them. Defaults and limits are the contract's. A field that is null
counts as left out, and one that no model names is ignored.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import from_json

from ctrlb.domain.ids import DATASET_PATTERN, MAX_ID_CHARS, dataset_fault, id_fault
from ctrlb.domain.rows import EnforceMode, EventKind

MAX_RECORDS = 500
MAX_PATHS = 64
MAX_RESOURCE_CHARS = 4_096
MAX_NAME_CHARS = 1_024
MAX_TERM_CHARS = 1_000
MAX_COMMAND_CHARS = 10_000
MIN_TIMESTAMP_US = 946_684_800_000_000
"""2000-01-01."""
MAX_TIMESTAMP_US = 4_102_444_800_000_000
"""2100-01-01."""
MAX_SEQ = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""


def _id(value: str) -> str:
    if fault := id_fault(value):
        raise ValueError(fault)
    return value


def _optional_id(value: str) -> str:
    return value and _id(value)


def _dataset(value: str) -> str:
    if fault := dataset_fault(value):
        raise ValueError(fault)
    return value


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("may not hold a NUL character")
    return value


def _paths(value: str) -> str:
    if value and not _is_list_of_strings(value):
        raise ValueError('should be a JSON array of strings, as text, for example ["src/app.py"]')
    return value


def _is_list_of_strings(text: str) -> bool:
    try:
        paths = from_json(text)
    except (ValueError, TypeError):  # no JSON, or half of a surrogate pair in it
        return False
    return isinstance(paths, list) and all(isinstance(path, str) for path in paths)


def _whole(value: Any) -> Any:
    """Accept 1.0 for 1: clients are told to write numbers as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_ID_SCHEMA: dict[str, Any] = {"minLength": 1, "maxLength": MAX_ID_CHARS, "pattern": r"^[^/\\\u0000-\u001f\u007f]*$"}

Id = Annotated[str, AfterValidator(_id), Field(json_schema_extra=_ID_SCHEMA)]
OptionalId = Annotated[str, AfterValidator(_optional_id), Field(json_schema_extra={**_ID_SCHEMA, "minLength": 0})]
DatasetName = Annotated[str, AfterValidator(_dataset), Field(json_schema_extra={"pattern": DATASET_PATTERN})]
Name = Annotated[str, AfterValidator(_no_nul), Field(max_length=MAX_NAME_CHARS)]
Whole = Annotated[int, BeforeValidator(_whole)]


class Wire(BaseModel):
    """What all models share. Building their validators waits for their first use, for a fast start."""

    model_config = ConfigDict(frozen=True, defer_build=True, allow_inf_nan=False, populate_by_name=True)


class Request(Wire):
    """What a caller asks."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and None in fields.values():
            return {name: value for name, value in fields.items() if value is not None}
        return fields


class Answer(Wire):
    """What a caller gets. Fields that are not set are left out of the answer."""


# --- what every request of a kind has -----------------------------------------------------------------


class DatasetRequest(Request):
    """A call on a sessions dataset."""

    dataset: DatasetName = Field(
        default="", validate_default=False, description="The sessions dataset; left out, the workspace's."
    )


class RunRequest(DatasetRequest):
    """A call on a run."""

    run_id: Id = Field(default="", validate_default=False, description="The run; left out, the X-CtrlB-Run header's.")


class AgentRequest(RunRequest):
    """A call of an agent of a run."""

    agent: Id = Field(
        default="",
        validate_default=False,
        description="Your agent id, unique in the run; left out, the X-CtrlB-Agent header's.",
    )


Resource = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_RESOURCE_CHARS,
        description="A file path, for example src/app.py, or a task name.",
    ),
]
Cwd = Annotated[
    str,
    Field(
        max_length=MAX_RESOURCE_CHARS,
        description="Your working directory. An absolute path under it is keyed relative to it.",
    ),
]


# --- claims ----------------------------------------------------------------------------------------------


class ClaimRequest(AgentRequest):
    """Take an exclusive claim on a file path or task name before working on it.

    Work on it only when `held` is true. A refusal is a normal answer that names the holder: pick other
    work, do not retry the same resource in a loop. Claim again to renew a claim during long work.
    """

    resource: Resource
    cwd: Cwd = ""


class ClaimAnswer(Answer):
    """The claim is yours, or who has the resource."""

    held: bool
    resource: str
    key: str = Field(description="What the claim is decided on.")
    lease_until: int | None = Field(default=None, description="When the claim ends unless renewed, µs since the epoch.")
    renewed: bool | None = Field(default=None, description="You held it already; the lease was renewed.")
    held_by: str | None = Field(default=None, description="The agent that holds it.")
    finished_by: str | None = Field(default=None, description="The agent that finished it.")
    message: str | None = None


class ReleaseRequest(AgentRequest):
    """Give a claim back, or mark it done.

    Call it when your work on the resource is over: finished=true marks it done for the rest of the run,
    finished=false hands it back for another agent.
    """

    resource: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_RESOURCE_CHARS + len("path:"),
            description="The resource as you claimed it, or the key the claim answered.",
        ),
    ]
    finished: bool = Field(
        default=True, description="true: done for good, later claims are refused. false: free for another agent."
    )
    cwd: Annotated[
        str,
        Field(max_length=MAX_RESOURCE_CHARS, description="The working directory the claim was made with, if any."),
    ] = ""


class ReleaseAnswer(Answer):
    """How many of your live holds ended: 0 when you held none, and then nothing was written."""

    released: int
    finished: bool
    resource: str
    key: str


class CheckRequest(AgentRequest):
    """Ask, before an edit, whether another agent of the run holds one of the files."""

    paths: list[Annotated[str, Field(min_length=1, max_length=MAX_RESOURCE_CHARS)]] = Field(
        max_length=MAX_PATHS, description="The files that the edit touches."
    )
    cwd: Cwd = ""


class Conflict(Answer):
    """A path that another agent holds."""

    path: str
    key: str
    held_by: str
    lease_until: int


class CheckAnswer(Answer):
    """The enforce mode, and whether it lets the edit through."""

    mode: EnforceMode
    allowed: bool
    conflicts: list[Conflict]


# --- notes and peers -----------------------------------------------------------------------------------


class PostRequest(AgentRequest):
    """Post a short note to the other agents of the run: what you are taking, or what you finished."""

    text: str = Field(min_length=1, description="The note. Cut at 2,000 characters.")


class PostAnswer(Answer):
    """The note is in the run's record."""

    ok: Literal[True]
    run_id: str
    agent: str


class PeersRequest(AgentRequest):
    """See what the other agents of the run have posted, claimed and released, newest first.

    Call it before you choose a task.
    """

    limit: Whole = Field(default=40, ge=1, le=500, description="How many events.")


class PeerEvent(Answer):
    """One thing an agent did."""

    agent: str
    kind: EventKind
    resource: str
    key: str
    text: str
    age_s: int
    ts: int


class PeersAnswer(Answer):
    """The run's newest events."""

    you: str | None
    events: list[PeerEvent]


# --- sessions ------------------------------------------------------------------------------------------


class Record(Request):
    """One content block of a session. Columns that are not named here are kept, too."""

    model_config = ConfigDict(extra="allow", populate_by_name=False)  # a column `timestamp` is the client's own

    timestamp: Whole | None = Field(
        default=None,
        alias="_timestamp",
        ge=MIN_TIMESTAMP_US,
        lt=MAX_TIMESTAMP_US,
        description="Microseconds since the epoch; left out, the time of arrival.",
    )
    session_id: Id
    seq: Whole = Field(ge=0, le=MAX_SEQ)
    block_idx: Whole = Field(default=0, ge=0, le=2**31 - 1)
    host: Name = ""
    harness: Name = ""
    parent_session: OptionalId = ""
    agent_id: OptionalId = ""
    run_id: OptionalId = ""
    agent: OptionalId = ""
    role: Name = ""
    block_type: Literal["text", "thinking", "tool_use", "tool_result", "result"] = "text"
    tool_name: Name = ""
    tool_use_id: Name = ""
    command: str = ""
    paths: Annotated[str, AfterValidator(_paths)] = Field(
        default="", description="A JSON array of the files an edit touched, as text."
    )
    body: str = ""
    is_error: bool = False
    is_summary: bool = False
    cwd: Annotated[str, AfterValidator(_no_nul), Field(max_length=MAX_RESOURCE_CHARS)] = ""
    git_branch: Name = ""
    cost_usd: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    user_name: Name = Field(default="", description="Leave it out: it is filled from the key.")


class UploadRecordsRequest(DatasetRequest):
    """Store content blocks of sessions, one row per block, at most 500 a call.

    A row is known by its session, seq and block_idx: the same row sent again changes nothing, and sent
    with another body takes the place of the first.
    """

    records: list[Record]


class UploadRecordsAnswer(Answer):
    """How many rows were received; all of them are stored."""

    accepted: int


class SearchSessionsRequest(DatasetRequest):
    """Search what past and current sessions said, ran and got back: whole words, case-insensitive.

    Covers messages, thinking, tool calls with their shell commands, and tool results, of subagents too.
    Use it to learn whether a problem was met before; then read on with fetch_records or next_actions.
    """

    term: str = Field(
        max_length=MAX_TERM_CHARS,
        description="A word or phrase. It needs a word of 3 to 50 letters, digits, . or +.",
    )
    session_id: OptionalId = Field(default="", description="Search one session.")
    tool: Name = Field(default="", description="Only rows of this tool, for example Bash.")
    order: Literal["newest", "oldest"] = "newest"
    one_per_session: bool = Field(default=False, description="Keep the first hit of each session.")
    limit: Whole = Field(default=10, ge=1, le=25)
    offset: Whole = Field(default=0, ge=0, description="Skip this many hits.")


class Hit(Answer):
    """A row that has the term, with 300 characters around it."""

    session_id: str
    parent_session: str
    seq: int
    role: str
    block_type: str
    tool_name: str
    is_error: bool
    snippet: str


class SearchSessionsAnswer(Answer):
    """One page of hits."""

    total: int
    offset: int
    capped_at: int | None = Field(description="Where counting stopped; null when total is exact.")
    hits: list[Hit]


class FindCommandRequest(DatasetRequest):
    """Find every past tool call whose command contains the text, newest first.

    Runs of white space count as one space. Pass a session_id and seq to next_actions to see what
    happened after it.
    """

    command: str = Field(min_length=1, max_length=MAX_COMMAND_CHARS, description="The command text.")
    limit: Whole = Field(default=10, ge=1, le=25)
    offset: Whole = Field(default=0, ge=0, description="Skip this many occurrences.")


class Occurrence(Answer):
    """A tool call."""

    session_id: str
    seq: int
    tool_name: str
    command: str


class FindCommandAnswer(Answer):
    """One page of tool calls."""

    total: int
    offset: int
    occurrences: list[Occurrence]


class NextActionsRequest(DatasetRequest):
    """See what happened after one tool call: its result, then the next tool calls and their results."""

    session_id: Id = Field(description="The session of the tool call.")
    seq: Whole = Field(ge=0, le=MAX_SEQ, description="The tool call.")
    k: Whole = Field(default=3, ge=1, le=8, description="Tool calls to follow.")
    tool: Name = Field(default="", description="Only this tool's calls, for example Bash.")


class ActionEvent(Answer):
    """A tool call or the result of one."""

    seq: int
    kind: Literal["call", "result"]
    tool_name: str
    is_error: bool
    text: str


class NextActionsAnswer(Answer):
    """What followed, in order."""

    session_id: str
    seq: int
    events: list[ActionEvent]
    skipped_text_records: int


class FetchRecordsRequest(DatasetRequest):
    """Read the rows of one session from seq_from to seq_to, in order, at most 50."""

    session_id: Id
    seq_from: Whole = Field(ge=0, le=MAX_SEQ)
    seq_to: Whole = Field(ge=0, le=MAX_SEQ)


class SessionRecord(Answer):
    """A row as it was uploaded; the body cut at 4,000 characters."""

    ts: int
    seq: int
    block_idx: int
    role: str
    block_type: str
    tool_name: str
    tool_use_id: str
    command: str
    paths: str
    is_error: bool
    body_len: int = Field(description="The full length of the body in characters.")
    body: str


class FetchRecordsAnswer(Answer):
    """The rows, in order."""

    session_id: str
    rows: list[SessionRecord]


# --- runs ----------------------------------------------------------------------------------------------

RunStatus = Literal["live", "done"]


class ListRunsRequest(DatasetRequest):
    """List the runs that you have a row in, newest started first."""

    status: Literal["live", "done", "all"] = "all"
    cursor: Annotated[str, Field(max_length=1_000)] = Field(default="", description="next_cursor of the page before.")
    limit: Whole = Field(default=50, ge=1, le=200)


class RunListItem(Answer):
    """A run in the list."""

    run_id: str
    status: RunStatus
    started: int
    last: int
    agents: int
    events: int
    held: int


class ListRunsAnswer(Answer):
    """One page of runs."""

    runs: list[RunListItem]
    next_cursor: str | None


class GetRunRequest(RunRequest):
    """Read one run: its agents, events, resources and detectors."""


class RunAgent(Answer):
    """An agent of the run."""

    agent: str
    user_name: str
    first: int
    last: int
    silent: bool
    sessions: list[str]


class RunResource(Answer):
    """What became of a claimed resource."""

    resource: str
    key: str
    state: Literal["held", "expired", "released", "done"]
    agent: str
    ts: int
    lease_until: int | None


class DetectorRow(Answer):
    """A row that proves a finding."""

    agent: str
    ts: int
    session_id: str
    seq: int | None
    block_idx: int | None


class DetectorFinding(Answer):
    """Something a person should look at."""

    detector: str
    key: str
    agents: list[str]
    message: str
    rows: list[DetectorRow]


class GetRunAnswer(Answer):
    """One run. At most 500 events and 500 resources, newest first, and how many there are."""

    run_id: str
    status: RunStatus
    started: int
    last: int
    agents: list[RunAgent]
    events: list[PeerEvent]
    events_total: int
    resources: list[RunResource]
    resources_total: int
    detectors: list[DetectorFinding]


# --- settings ------------------------------------------------------------------------------------------


class GetSettingsRequest(Request):
    """Read the workspace's Relay settings."""


class SettingsAnswer(Answer):
    """The workspace's Relay settings."""

    enforce: EnforceMode
    lease_seconds: int = Field(serialization_alias="leaseSeconds")
    wait_ms: int = Field(serialization_alias="waitMs")
    silent_after_seconds: int = Field(serialization_alias="silentAfterSeconds")
    sessions_dataset: str = Field(serialization_alias="sessionsDataset")
    write_tools: bool = Field(serialization_alias="writeTools")


class ChangeSettingsRequest(Request):
    """Change the workspace's Relay settings. What is left out stays as it is."""

    enforce: EnforceMode | None = None
    lease_seconds: Whole | None = Field(default=None, ge=60, le=86_400, alias="leaseSeconds")
    wait_ms: Whole | None = Field(default=None, ge=1, le=1_000, alias="waitMs")
    silent_after_seconds: Whole | None = Field(default=None, ge=10, le=86_400, alias="silentAfterSeconds")
    sessions_dataset: DatasetName | None = Field(default=None, alias="sessionsDataset")
    write_tools: bool | None = Field(default=None, alias="writeTools")


# --- keys and sign-in ----------------------------------------------------------------------------------


class CreateKeyRequest(Request):
    """Make a key that acts as you."""

    name: Annotated[str, AfterValidator(_no_nul), Field(min_length=1, max_length=100)]
    expires_days: Literal[30, 90, 365, 0] = Field(default=90, description="30, 90 or 365 days; 0 for never.")


class KeyInfo(Answer):
    """A key, without its secret."""

    key_id: str
    name: str
    user_name: str
    created: int
    expires: int | None
    revoked: int | None
    last_used: int | None = Field(description="When it was last used, to the hour.")


class CreateKeyAnswer(Answer):
    """The key. It is shown this once."""

    key: str
    key_id: str
    name: str
    expires: int | None


class ListKeysRequest(Request):
    """List your keys."""


class ListKeysAnswer(Answer):
    """Your keys, oldest first."""

    keys: list[KeyInfo]


class RevokeKeyRequest(Request):
    """End one of your keys."""

    key_id: Id


class RevokeKeyAnswer(Answer):
    """The key is refused from now on."""

    key_id: str
    revoked: int


class SignInRequest(Request):
    """Exchange the one-time code of the sign-in link for a person's token."""

    code: Annotated[str, Field(min_length=1, max_length=200)]


class SignInAnswer(Answer):
    """Send the token as `Authorization: Bearer`."""

    token: str
    user_name: str
    expires: int


class SignOutRequest(Request):
    """End the session of the token that this request carries."""


class SignOutAnswer(Answer):
    """The token is refused from now on."""

    ok: Literal[True]


# --- the service ---------------------------------------------------------------------------------------


class HealthRequest(Request):
    """Ask whether the service answers."""


class HealthAnswer(Answer):
    """It does."""

    ok: Literal[True]
    version: str


class OpenApiRequest(Request):
    """Read the description of the HTTP interface."""


class OpenApiAnswer(Answer):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow")

    openapi: str


class ErrorAnswer(Answer):
    """The one shape of an error."""

    error: str
    code: str | None = None
