"""An upload of session rows to SQLite: prepared before the file's only writer is taken, then written at once.

Rows, their index and what the Runs page is derived from change in one transaction, so none is ever ahead of
another. Uploads are often sent again: a row that is there as it is costs one look.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from ctrlb.adapters.sqlite_index import Entry, Ids, add_entries, create_index, entry_of, remove_entries
from ctrlb.adapters.sqlite_session_rows import SLIM_FIELDS, STORED_ROW, TEXT_FIELDS, session_row
from ctrlb.domain.rows import AgentActivity, Dataset, Edit, SessionRow
from ctrlb.domain.run_rules import activities, edits_of
from ctrlb.ports import SessionTaken

_slim_values = attrgetter(*SLIM_FIELDS)
_text_values = attrgetter(*TEXT_FIELDS)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


_ADD_ROW = f"""
INSERT INTO session_rows (id, session, written_us, {", ".join(SLIM_FIELDS)}) VALUES ({_marks(3 + len(SLIM_FIELDS))})
"""
_ADD_TEXTS = f"INSERT INTO session_texts (id, {', '.join(TEXT_FIELDS)}) VALUES ({_marks(1 + len(TEXT_FIELDS))})"
_REMOVE_ROW = ("DELETE FROM session_rows WHERE id = ?", "DELETE FROM session_texts WHERE id = ?")
_ADD_DATASET = "INSERT INTO datasets (workspace, name) VALUES (?, ?) RETURNING id"
_ADD_SESSION = "INSERT INTO sessions (dataset, session_id, owner) VALUES (?, ?, ?) RETURNING id"
_MERGE_ACTIVITY = """
INSERT INTO run_activity (workspace, dataset, run_id, user, agent, session_id, first_us, last_us, last_block_type)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    first_us = min(first_us, excluded.first_us),
    last_us = max(last_us, excluded.last_us),
    -- Of two last rows in one microsecond a `result` counts (it sorts first): the outcome of resends is the same.
    last_block_type = CASE
        WHEN excluded.last_us > last_us THEN excluded.last_block_type
        WHEN excluded.last_us < last_us THEN last_block_type
        ELSE min(last_block_type, excluded.last_block_type)
    END
"""
_ADD_EDIT = f"""
INSERT OR REPLACE INTO edits
    (workspace, dataset, run_id, user, agent, key, path, ts_us, session_id, seq, block_idx) VALUES ({_marks(11)})
"""
_REMOVE_EDITS = """
DELETE FROM edits WHERE workspace = ? AND dataset = ? AND run_id = ?
    AND ts_us = ? AND session_id = ? AND seq = ? AND block_idx = ?
"""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A row with what is derived from it."""

    row: SessionRow
    entry: Entry
    edits: list[Edit]


@dataclass(frozen=True, slots=True)
class _Session:
    id: int
    is_new: bool
    """Made by this upload, so that none of its rows are there yet."""


class Upload:
    """The rows of one upload, with all that can be worked out without the store."""

    def __init__(self, dataset: Dataset, user: str, rows: Sequence[SessionRow], written_us: int) -> None:
        self._dataset = dataset
        self._user = user
        self._written_us = written_us
        self._rows = [_Prepared(row, entry_of(row, user), edits_of(row, user)) for row in rows]
        self._activities = activities(rows, user)

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all rows, or raise SessionTaken. The transaction around it undoes what came before."""
        dataset = self._dataset_id(connection)
        names = dict.fromkeys(prepared.row.session_id for prepared in self._rows)
        sessions = {name: self._session(connection, dataset, name) for name in names}
        fresh, changed = self._unlike_stored(connection, sessions)
        ids = Ids(connection)
        for prepared, old_id, old_row in changed:
            self._remove(connection, dataset, old_id, old_row)
            fresh.append(prepared)
        self._add(connection, dataset, sessions, [(ids.take(prepared.row.ts_us), prepared) for prepared in fresh])
        connection.execute(
            "UPDATE datasets SET displaced = ?1 WHERE id = ?2 AND displaced < ?1", (ids.displaced, dataset)
        )
        self._derive_for_runs(connection, fresh)

    def _dataset_id(self, connection: sqlite3.Connection) -> int:
        name = (self._dataset.workspace, self._dataset.name)
        found = connection.execute("SELECT id FROM datasets WHERE workspace = ? AND name = ?", name).fetchone()
        if found is None:
            [found] = connection.execute(_ADD_DATASET, name).fetchall()
            create_index(connection, found[0])
        dataset: int = found[0]
        return dataset

    def _session(self, connection: sqlite3.Connection, dataset: int, name: str) -> _Session:
        query = "SELECT id, owner FROM sessions WHERE dataset = ? AND session_id = ?"
        found = connection.execute(query, (dataset, name)).fetchone()
        if found is None:
            [(session,)] = connection.execute(_ADD_SESSION, (dataset, name, self._user)).fetchall()
            return _Session(session, is_new=True)
        session, owner = found
        if owner != self._user:
            raise SessionTaken(name)
        return _Session(session, is_new=False)

    def _unlike_stored(
        self, connection: sqlite3.Connection, sessions: dict[str, _Session]
    ) -> tuple[list[_Prepared], list[tuple[_Prepared, int, SessionRow]]]:
        """The rows that are not stored yet, and those that are stored otherwise, with what is stored."""
        fresh, changed = [], []
        for prepared in self._rows:
            row = prepared.row
            session = sessions[row.session_id]
            identity = (session.id, row.seq, row.block_idx)
            stored = None if session.is_new else connection.execute(STORED_ROW, identity).fetchone()
            if stored is None:
                fresh.append(prepared)
            elif (old_row := session_row(stored[1:])) != row:
                changed.append((prepared, stored[0], old_row))
        return fresh, changed

    def _remove(self, connection: sqlite3.Connection, dataset: int, row_id: int, row: SessionRow) -> None:
        for statement in _REMOVE_ROW:
            connection.execute(statement, (row_id,))
        remove_entries(connection, dataset, [(row_id, entry_of(row, self._user))])
        place = (row.run_id, row.ts_us, *row.identity)
        connection.execute(_REMOVE_EDITS, (self._dataset.workspace, self._dataset.name, *place))

    def _add(
        self,
        connection: sqlite3.Connection,
        dataset: int,
        sessions: dict[str, _Session],
        rows: Sequence[tuple[int, _Prepared]],
    ) -> None:
        connection.executemany(
            _ADD_ROW,
            (
                (row_id, sessions[prepared.row.session_id].id, self._written_us, *_slim_values(prepared.row))
                for row_id, prepared in rows
            ),
        )
        connection.executemany(_ADD_TEXTS, ((row_id, *_text_values(prepared.row)) for row_id, prepared in rows))
        add_entries(connection, dataset, [(row_id, prepared.entry) for row_id, prepared in rows])

    def _derive_for_runs(self, connection: sqlite3.Connection, written: Sequence[_Prepared]) -> None:
        dataset = (self._dataset.workspace, self._dataset.name)
        connection.executemany(
            _MERGE_ACTIVITY, ((*dataset, run_id, *_activity_values(activity)) for run_id, activity in self._activities)
        )
        connection.executemany(
            _ADD_EDIT,
            ((*dataset, prepared.row.run_id, *_edit_values(edit)) for prepared in written for edit in prepared.edits),
        )


def _activity_values(activity: AgentActivity) -> tuple[object, ...]:
    [session_id] = activity.session_ids
    times = (activity.first_us, activity.last_us)
    return (activity.holder.user, activity.holder.agent, session_id, *times, activity.last_block_type)


def _edit_values(edit: Edit) -> tuple[object, ...]:
    place = (edit.ts_us, edit.session_id, edit.seq, edit.block_idx)
    return (edit.holder.user, edit.holder.agent, edit.key, edit.path, *place)
