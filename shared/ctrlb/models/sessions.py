"""The wire of the session store."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, FailFast, Field
from pydantic_core import from_json

from ctrlb.models.fields import (
    MAX_COMMAND_CHARS,
    MAX_RECORDS,
    MAX_RESOURCE_CHARS,
    MAX_SEQ,
    MAX_TERM_CHARS,
    MAX_TIMESTAMP_US,
    MIN_TIMESTAMP_US,
    Answer,
    DatasetRequest,
    Id,
    Name,
    OptionalId,
    Request,
    Whole,
    without_nul,
)


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


def _at_most_max_records(records: Any) -> Any:
    if isinstance(records, list) and len(records) > MAX_RECORDS:
        raise ValueError(f"an upload has at most {MAX_RECORDS} rows, not {len(records):,}; send several")
    return records


class Record(Request):
    """One content block of a session. Columns that are not named here are kept, too."""

    model_config = ConfigDict(extra="allow")

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
    cwd: Annotated[str, Field(max_length=MAX_RESOURCE_CHARS), AfterValidator(without_nul)] = ""
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

    records: Annotated[
        list[Record],
        FailFast(),  # the first fault is what is said; millions of others are not worth finding
        BeforeValidator(_at_most_max_records),
        Field(json_schema_extra={"maxItems": MAX_RECORDS}),
    ]


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
    """A row as it was uploaded; its texts cut at 4,000 characters."""

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
