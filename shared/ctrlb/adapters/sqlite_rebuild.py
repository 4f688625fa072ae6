"""A dataset's search index in SQLite made anew from its stored rows, in one transaction."""

import sqlite3
from collections.abc import Callable

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_index import add_entries, create_index, entry_of, merge_segments
from ctrlb.adapters.sqlite_session_rows import JOINED_ROWS, columns, session_row
from ctrlb.domain.errors import NotFound
from ctrlb.domain.rows import Dataset

BATCH_ROWS = 500
TELL_EVERY_ROWS = 10_000

_DROP = (
    "DROP TABLE words_{dataset}",
    "DROP TABLE commands_{dataset}",
    "DELETE FROM session_commands WHERE dataset = {dataset}",
)
_DATASET = "SELECT id FROM datasets WHERE workspace = ? AND name = ?"
_ROWS = f"""
SELECT session_rows.id, sessions.owner, {columns()} FROM {JOINED_ROWS}
WHERE sessions.dataset = ? ORDER BY session_rows.id
"""


class SqliteRebuild:
    """The port SearchRebuild on one file, which it keeps from being written meanwhile."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def run(self, dataset: Dataset, tell: Callable[[str], None]) -> None:
        """See SearchRebuild.run. Raises NotFound when the dataset has no rows."""
        count = self._database.write(lambda connection: _rebuilt(connection, dataset, tell))
        tell(f"{count:,} rows are in the new index, which is searched from now on")


def _rebuilt(connection: sqlite3.Connection, dataset: Dataset, tell: Callable[[str], None]) -> int:
    found = connection.execute(_DATASET, (dataset.workspace, dataset.name)).fetchone()
    if found is None:
        raise NotFound(f"nothing was uploaded to a dataset {dataset.name}")
    [number] = found
    for statement in _DROP:
        connection.execute(statement.format(dataset=number))
    create_index(connection, number)
    count = 0
    rows = connection.execute(_ROWS, (number,))
    while batch := rows.fetchmany(BATCH_ROWS):
        entries = [(row_id, entry_of(session_row(values), owner)) for row_id, owner, *values in batch]
        add_entries(connection, number, entries)
        count += len(batch)
        if count % TELL_EVERY_ROWS == 0:
            tell(f"{count:,} rows read")
    while merge_segments(connection, number):
        continue
    return count
