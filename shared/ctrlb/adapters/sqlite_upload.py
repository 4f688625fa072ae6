"""An upload of session rows to SQLite: prepared before the file's only writer is taken, then written at once.

Rows, their index and what the Runs page is derived from change in one transaction, so none is ever ahead of
another. Uploads are often sent again: a row that is there as it is costs one look.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from ctrlb.adapters.sqlite_index import Entry, Ids, add_entries, create_index, entry_of, remove_entries
from ctrlb.adapters.sqlite_run_writes import RunWrites
from ctrlb.adapters.sqlite_session_rows import SLIM_FIELDS, STORED_ROWS, TEXT_FIELDS, session_row
from ctrlb.domain.rows import NO_TIME_US, Dataset, Edit, SessionRow
from ctrlb.domain.run_rules import edits_of
from ctrlb.ports import SessionTaken

_slim_values = attrgetter(*SLIM_FIELDS)
_text_values = attrgetter(*TEXT_FIELDS)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


_ADD_ROW = f"""
INSERT INTO session_rows (id, text, session, written_us, {", ".join(SLIM_FIELDS)})
VALUES ({_marks(4 + len(SLIM_FIELDS))})
"""
_NEXT_TEXT = "SELECT coalesce(max(number), 0) + 1 FROM session_texts"
_ADD_TEXTS = f"INSERT INTO session_texts (number, {', '.join(TEXT_FIELDS)}) VALUES ({_marks(1 + len(TEXT_FIELDS))})"
_REMOVE_ROW = "DELETE FROM session_rows WHERE id = ?"
_REMOVE_TEXTS = "DELETE FROM session_texts WHERE number = ?"
_ADD_DATASET = "INSERT INTO datasets (workspace, name) VALUES (?, ?) RETURNING id"
_ADD_SESSION = "INSERT INTO sessions (dataset, session_id, owner) VALUES (?, ?, ?) RETURNING id"
_NOTE_DISPLACED = "UPDATE datasets SET displaced = max(displaced, ?) WHERE id = ?"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A row with what is derived from it."""

    row: SessionRow
    entry: Entry
    edits: list[Edit]
    timed: bool
    """Whether it was sent with its time; else it has that of its arrival."""

    def after(self, stored: SessionRow | None) -> "_Prepared":
        """The row as it is to replace what is stored: one that was sent without a time keeps the stored one."""
        if self.timed or stored is None or stored.ts_us == self.row.ts_us:
            return self
        edits = [replace(edit, ts_us=stored.ts_us) for edit in self.edits]
        return replace(self, row=replace(self.row, ts_us=stored.ts_us), edits=edits)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A row as it was stored, and where."""

    id: int
    text: int
    row: SessionRow


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
        self._rows = [self._prepared(row) for row in rows]

    def write(self, connection: sqlite3.Connection) -> int:
        """Write all rows and return the dataset's number, or raise SessionTaken; then the caller undoes all of it."""
        dataset = self._dataset_id(connection)
        names = dict.fromkeys(prepared.row.session_id for prepared in self._rows)
        sessions = {name: self._session(connection, dataset, name) for name in names}
        fresh, replaced = self._unlike_stored(connection, sessions)
        self._remove(connection, dataset, replaced)
        self._add(connection, dataset, sessions, fresh)
        numbers = {name: session.id for name, session in sessions.items()}
        RunWrites(connection, self._dataset, self._user, numbers).replace(
            [stored.row for stored in replaced],
            [prepared.row for prepared in fresh],
            ((prepared.row.run_id, edit) for prepared in fresh for edit in prepared.edits),
        )
        return dataset

    def _prepared(self, row: SessionRow) -> _Prepared:
        timed = row.ts_us != NO_TIME_US
        row = row if timed else replace(row, ts_us=self._written_us)
        return _Prepared(row, entry_of(row, self._user), edits_of(row, self._user), timed)

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
    ) -> tuple[list[_Prepared], list[_Stored]]:
        """The rows that are not stored, or otherwise; and what is stored of them."""
        rows = [prepared.row for prepared in self._rows if not sessions[prepared.row.session_id].is_new]
        wanted = json.dumps([(sessions[row.session_id].id, row.seq, row.block_idx) for row in rows])
        found = connection.execute(STORED_ROWS, {"wanted": wanted})
        all_stored = [_Stored(row_id, text, session_row(values)) for row_id, text, *values in found]
        stored = {one.row.identity: one.row for one in all_stored}
        all_rows = [prepared.after(stored.get(prepared.row.identity)) for prepared in self._rows]
        fresh = [prepared for prepared in all_rows if stored.get(prepared.row.identity) != prepared.row]
        changed = {prepared.row.identity for prepared in fresh}
        return fresh, [one for one in all_stored if one.row.identity in changed]

    def _remove(self, connection: sqlite3.Connection, dataset: int, replaced: Sequence[_Stored]) -> None:
        connection.executemany(_REMOVE_ROW, ((stored.id,) for stored in replaced))
        connection.executemany(_REMOVE_TEXTS, ((stored.text,) for stored in replaced))
        remove_entries(connection, dataset, [(stored.id, entry_of(stored.row, self._user)) for stored in replaced])

    def _add(
        self,
        connection: sqlite3.Connection,
        dataset: int,
        sessions: dict[str, _Session],
        fresh: Sequence[_Prepared],
    ) -> None:
        ids = Ids(connection, (prepared.row.ts_us for prepared in fresh))
        rows = [(ids.take(prepared.row.ts_us), prepared) for prepared in fresh]
        [(first_text,)] = connection.execute(_NEXT_TEXT)
        texts = range(first_text, first_text + len(rows))
        connection.executemany(
            _ADD_TEXTS, ((text, *_text_values(prepared.row)) for text, (_, prepared) in zip(texts, rows, strict=True))
        )
        connection.executemany(
            _ADD_ROW,
            (
                (row_id, text, sessions[prepared.row.session_id].id, self._written_us, *_slim_values(prepared.row))
                for text, (row_id, prepared) in zip(texts, rows, strict=True)
            ),
        )
        add_entries(connection, dataset, [(row_id, prepared.entry) for row_id, prepared in rows])
        if ids.displaced:
            connection.execute(_NOTE_DISPLACED, (ids.displaced, dataset))
