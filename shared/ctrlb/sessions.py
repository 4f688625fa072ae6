"""The memory: what every session said, ran and got back, row by row, and the search over it."""

import json
from typing import Any

from ctrlb.domain.access import Caller
from ctrlb.domain.errors import Forbidden, Invalid, NotFound, Unavailable
from ctrlb.domain.rows import NO_TIME_US, Dataset, SessionRow
from ctrlb.domain.session_rules import actions_after
from ctrlb.domain.session_text import (
    MAX_COUNTED,
    command_snippet,
    fold,
    searchable_text,
    snippet,
    whole_paths,
)
from ctrlb.domain.words import parse_term
from ctrlb.models import (
    MAX_SEQ,
    MAX_TIMESTAMP_US,
    MIN_TIMESTAMP_US,
    ActionEvent,
    FetchRecordsAnswer,
    FetchRecordsRequest,
    FindCommandAnswer,
    FindCommandRequest,
    Hit,
    NextActionsAnswer,
    NextActionsRequest,
    Occurrence,
    Record,
    SearchSessionsAnswer,
    SearchSessionsRequest,
    SessionRecord,
    UploadRecordsAnswer,
    UploadRecordsRequest,
)
from ctrlb.ports import Ports, SessionTaken

FETCH_ROWS = 50
SHOWN_TEXT_CHARS = 4_000
"""Of each text of a row."""
ACTION_TEXT_CHARS = 2_000
SHOWN_NAME_CHARS = 80
READ_AHEAD_ROWS = 1_000
"""How far next_actions looks for the calls it was asked for."""


def upload_records(request: UploadRecordsRequest, caller: Caller, ports: Ports) -> UploadRecordsAnswer:
    """Store the rows, all of them or none. Of two rows with one identity the last one stands."""
    dataset = caller.dataset_to_write(request.dataset)
    now_us = ports.clock.now_us()
    if not MIN_TIMESTAMP_US <= now_us < MAX_TIMESTAMP_US:
        raise Unavailable("the server's clock is not set, so nothing was written; set it, then send the same again")
    rows = [_row(index, record, caller.user) for index, record in enumerate(request.records)]
    latest = {row.identity: row for row in rows}
    try:
        ports.sessions.write(dataset, caller.user, list(latest.values()), now_us)
    except SessionTaken as taken:
        index = next(index for index, row in enumerate(rows) if row.session_id == taken.session_id)
        raise Forbidden(
            f"row {index}: session_id {taken.session_id} belongs to another user; nothing was written"
        ) from None
    return UploadRecordsAnswer(accepted=len(rows))


def search_sessions(request: SearchSessionsRequest, caller: Caller, ports: Ports) -> SearchSessionsAnswer:
    """The rows that have the term's words in order, next to each other, each with a snippet."""
    dataset = caller.dataset_to_read(request.dataset)
    term = parse_term(request.term)
    _check_page(request.offset, request.limit)
    found = ports.index.search(
        dataset,
        term,
        user=caller.seen_user,
        session_id=request.session_id or None,
        tool=request.tool or None,
        order=request.order,
        one_per_session=request.one_per_session,
        offset=request.offset,
        limit=request.limit,
    )
    hits = [
        Hit(
            session_id=row.session_id,
            parent_session=row.parent_session,
            seq=row.seq,
            role=row.role,
            block_type=row.block_type,
            tool_name=row.tool_name,
            is_error=row.is_error,
            snippet=snippet(searchable_text(row.command, row.body), term),
        )
        for row in found.rows
    ]
    capped_at = MAX_COUNTED if found.total > MAX_COUNTED else None
    return SearchSessionsAnswer(
        total=min(found.total, MAX_COUNTED), offset=request.offset, capped_at=capped_at, hits=hits
    )


def find_command(request: FindCommandRequest, caller: Caller, ports: Ports) -> FindCommandAnswer:
    """The tool calls whose command contains the text, runs of white space being one space."""
    dataset = caller.dataset_to_read(request.dataset)
    text = fold(request.command)
    if not text:
        raise Invalid("command: should hold more than white space")
    _check_page(request.offset, request.limit)
    found = ports.index.commands(dataset, text, user=caller.seen_user, offset=request.offset, limit=request.limit)
    occurrences = [
        Occurrence(
            session_id=row.session_id,
            seq=row.seq,
            tool_name=row.tool_name,
            command=command_snippet(row.command, text, SHOWN_TEXT_CHARS),
        )
        for row in found.rows
    ]
    return FindCommandAnswer(total=min(found.total, MAX_COUNTED), offset=request.offset, occurrences=occurrences)


def fetch_records(request: FetchRecordsRequest, caller: Caller, ports: Ports) -> FetchRecordsAnswer:
    """The rows from seq_from to seq_to, at most 50, their texts cut at 4,000 characters."""
    dataset = _dataset_of_seen_session(request.dataset, request.session_id, caller, ports)
    if request.seq_to < request.seq_from:
        raise Invalid("seq_to: should not be below seq_from")
    rows = ports.sessions.rows(
        dataset, request.session_id, request.seq_from, request.seq_to, FETCH_ROWS, SHOWN_TEXT_CHARS
    )
    return FetchRecordsAnswer(
        session_id=request.session_id,
        rows=[
            SessionRecord(
                ts=row.ts_us,
                seq=row.seq,
                block_idx=row.block_idx,
                role=row.role,
                block_type=row.block_type,
                tool_name=row.tool_name,
                tool_use_id=row.tool_use_id,
                command=row.command,
                paths=whole_paths(row.paths),
                is_error=row.is_error,
                body_len=row.body_len,
                body=row.body,
            )
            for row in rows
        ],
    )


def next_actions(request: NextActionsRequest, caller: Caller, ports: Ports) -> NextActionsAnswer:
    """The call's result, then the next calls and their results, in order."""
    dataset = _dataset_of_seen_session(request.dataset, request.session_id, caller, ports)
    rows = ports.sessions.rows(dataset, request.session_id, request.seq, MAX_SEQ, READ_AHEAD_ROWS, 0)
    actions = actions_after(rows, request.seq, request.k, request.tool)
    if actions is None:
        raise NotFound(f"seq {request.seq} of session {request.session_id} is no tool call")
    places = [(row.seq, row.block_idx) for _, row in actions.events]
    shown = ports.sessions.rows_at(dataset, request.session_id, places, ACTION_TEXT_CHARS)
    texts = {row.identity: row.command or row.body for row in shown}
    events = [
        ActionEvent(
            seq=row.seq,
            kind="call" if kind == "call" else "result",
            tool_name=row.tool_name,
            is_error=row.is_error,
            text=texts.get(row.identity, ""),
        )
        for kind, row in actions.events
    ]
    return NextActionsAnswer(
        session_id=request.session_id,
        seq=request.seq,
        events=events,
        skipped_text_records=actions.skipped_texts,
    )


def _row(index: int, record: Record, user: str) -> SessionRow:
    if record.user_name not in ("", user):
        raise Forbidden(f"row {index}: user_name names another user; leave it out, it is filled from the key")
    try:
        extra = _written(record.model_extra) if record.model_extra else ""
    except ValueError:
        name = _column_that_json_cannot_hold(record.model_extra or {})
        raise Invalid(f"row {index}: {name}: holds a number that JSON does not have, such as 1e400") from None
    columns = record.__dict__ | {"user_name": user}
    timestamp = columns.pop("timestamp")
    return SessionRow(ts_us=timestamp or NO_TIME_US, body_len=len(record.body), extra=extra, **columns)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _column_that_json_cannot_hold(columns: dict[str, Any]) -> str:
    for name, value in columns.items():
        try:
            _written(value)
        except ValueError:
            return name[:SHOWN_NAME_CHARS]
    return "a column"


def _check_page(offset: int, limit: int) -> None:
    if offset + limit > MAX_COUNTED:
        raise Invalid(f"offset: offset and limit reach at most {MAX_COUNTED:,} together; narrow the search instead")


def _dataset_of_seen_session(name: str, session_id: str, caller: Caller, ports: Ports) -> Dataset:
    """The dataset, once it is clear that the caller may see the session; another's is as if it did not exist."""
    dataset = caller.dataset_to_read(name)
    owner = ports.sessions.owner(dataset, session_id)
    if owner is None or caller.seen_user not in (None, owner):
        raise NotFound(f"there is no session {session_id} in {dataset.name} that you can see")
    return dataset
