"""The adapter of SessionIndex that has no store of its own: what is written elsewhere is indexed by it."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_sessions import SESSIONS_SCHEMA, SqliteSessions
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import session_document
from tests.contract.session_adapters import SessionStores
from tests.opensearch.index import IndexOnNode


class IndexedSessions(SqliteSessions):
    """A store whose rows are in the index, too, when a write returns."""

    def __init__(self, database: SqliteDatabase, index: IndexOnNode) -> None:
        super().__init__(database)
        self._index = index

    def write(self, dataset: Dataset, user: str, rows: Sequence[SessionRow], written_us: int) -> None:
        """See SessionStore.write. The version only has to grow."""
        super().write(dataset, user, rows, written_us)
        self._index.add(session_document(dataset, user, row, time.time_ns()) for row in rows)


@contextlib.contextmanager
def opensearch_sessions(url: str, folder: Path) -> Iterator[SessionStores]:
    """An index on the node at `url`, empty if the folder is."""
    file = folder / "sessions.db"
    index = IndexOnNode(url)
    if not file.exists():
        index.remove_all()
    database = SqliteDatabase(file, SESSIONS_SCHEMA)
    try:
        yield SessionStores(IndexedSessions(database, index), index.sessions)
    finally:
        database.close()
