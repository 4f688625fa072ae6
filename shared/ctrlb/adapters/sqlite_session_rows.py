"""How a session row lies in SQLite: the tables, and a stored row read back.

What is long stands in a table of its own, so that queries over many rows read little. A row's id is made in
`sqlite_index` and says about when the row was; texts are numbered as they come, for so they are written fastest.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ctrlb.domain.rows import SessionRow

SESSIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS datasets (
    id INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    displaced INTEGER NOT NULL DEFAULT 0, -- the most units of time between a row's id and its time
    UNIQUE (workspace, name)
);
CREATE TABLE IF NOT EXISTS sessions (
    id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    UNIQUE (dataset, session_id)
);
CREATE TABLE IF NOT EXISTS session_rows (
    id INTEGER PRIMARY KEY,
    text INTEGER NOT NULL,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    block_idx INTEGER NOT NULL,
    ts_us INTEGER NOT NULL,
    written_us INTEGER NOT NULL,
    host TEXT NOT NULL,
    harness TEXT NOT NULL,
    parent_session TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    role TEXT NOT NULL,
    block_type TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    tool_use_id TEXT NOT NULL,
    body_len INTEGER NOT NULL,
    is_error INTEGER NOT NULL,
    is_summary INTEGER NOT NULL,
    cwd TEXT NOT NULL,
    git_branch TEXT NOT NULL,
    cost_usd REAL NOT NULL,
    input_tokens REAL NOT NULL,
    output_tokens REAL NOT NULL,
    user_name TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS session_row_identities ON session_rows (session, seq, block_idx);
CREATE TABLE IF NOT EXISTS session_texts (
    number INTEGER PRIMARY KEY,
    command TEXT NOT NULL,
    paths TEXT NOT NULL,
    extra TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS session_commands (
    dataset INTEGER NOT NULL,
    id INTEGER NOT NULL,
    folded TEXT NOT NULL,
    PRIMARY KEY (dataset, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_activity (
    workspace TEXT NOT NULL,
    dataset TEXT NOT NULL,
    run_id TEXT NOT NULL,
    user TEXT NOT NULL,
    agent TEXT NOT NULL,
    session_id TEXT NOT NULL,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    last_block_type TEXT NOT NULL,
    PRIMARY KEY (workspace, dataset, run_id, user, agent, session_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS edits (
    workspace TEXT NOT NULL,
    dataset TEXT NOT NULL,
    run_id TEXT NOT NULL,
    ts_us INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    block_idx INTEGER NOT NULL,
    key TEXT NOT NULL,
    user TEXT NOT NULL,
    agent TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (workspace, dataset, run_id, ts_us, session_id, seq, block_idx, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failed_calls ( -- told by the result that lies at seq and block_idx
    session INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    tool_use_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    block_idx INTEGER NOT NULL,
    PRIMARY KEY (session, run_id, tool_use_id, seq, block_idx)
) WITHOUT ROWID;
"""

_FIELDS = tuple(field.name for field in fields(SessionRow))
TEXT_FIELDS = ("command", "paths", "extra", "body")
SLIM_FIELDS = tuple(name for name in _FIELDS if name not in (*TEXT_FIELDS, "session_id"))
_TEXTS = tuple(_FIELDS.index(name) for name in TEXT_FIELDS)
_FLAGS = slice(_FIELDS.index("is_error"), _FIELDS.index("is_summary") + 1)


def columns(**instead: str) -> str:
    """What to select for `session_row`, in its order; `instead` gives another expression for a field."""
    tables = dict.fromkeys(TEXT_FIELDS, "session_texts") | {"session_id": "sessions"}
    return ", ".join(instead.get(name, f"{tables.get(name, 'session_rows')}.{name}") for name in _FIELDS)


# Cut as bytes, of which a character takes up to 4: for SQLite's functions on text, a NUL character is the end.
_CUT = "CASE WHEN :text_chars THEN substr(CAST(session_texts.{name} AS BLOB), 1, 4 * :text_chars) END"
CUT_COLUMNS = columns(**{name: _CUT.format(name=name) for name in TEXT_FIELDS})
"""What to select for `cut_session_row`. Texts of which nothing is wanted are not read."""
JOINED_ROWS = """
session_rows
JOIN sessions ON sessions.id = session_rows.session
JOIN session_texts ON session_texts.number = session_rows.text
"""
# One look for all: `wanted` is a JSON array of [session, seq, block_idx].
STORED_ROWS = f"""
SELECT session_rows.id, session_rows.text, {columns()} FROM json_each(:wanted) AS wanted
CROSS JOIN session_rows ON session_rows.session = wanted.value ->> 0 AND session_rows.seq = wanted.value ->> 1
    AND session_rows.block_idx = wanted.value ->> 2
JOIN sessions ON sessions.id = session_rows.session
JOIN session_texts ON session_texts.number = session_rows.text
"""


def session_row(values: Sequence[Any]) -> SessionRow:
    """The row that was stored as the values of `columns`; SQLite gives its flags as numbers."""
    return SessionRow(*values[: _FLAGS.start], *map(bool, values[_FLAGS]), *values[_FLAGS.stop :])


def cut_session_row(values: Sequence[Any], text_chars: int) -> SessionRow:
    """The row that was stored as the values of CUT_COLUMNS, with each text's first `text_chars` characters."""
    texts = {at: (values[at] or b"").decode(errors="ignore")[:text_chars] for at in _TEXTS}  # an empty one is NULL here
    return session_row([texts.get(at, value) for at, value in enumerate(values)])
