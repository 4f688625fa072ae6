"""The session rows and the search over them in one SQLite file: the ports SessionStore and SessionIndex.

`sqlite_session_rows` has the tables, `sqlite_upload` what a write does, `sqlite_index` what is searched, and
`sqlite_search` how a page of hits is found.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_index import (
    COMMAND_HITS,
    LONG_PHRASE_HITS,
    PIECE_CHARS,
    SHORT_COMMAND_HITS,
    WORD_HITS,
    command_text,
    has_phrase,
    is_long,
    match_of_command,
    match_of_term,
    merge_segments,
)
from ctrlb.adapters.sqlite_search import Search, search_page
from ctrlb.adapters.sqlite_session_rows import CUT_COLUMNS, JOINED_ROWS, SESSIONS_SCHEMA, cut_session_row
from ctrlb.adapters.sqlite_upload import Upload
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.words import Term
from ctrlb.ports import Found, Order

__all__ = ["SESSIONS_SCHEMA", "SqliteSessions"]

_OWNER = """
SELECT sessions.owner FROM sessions JOIN datasets ON datasets.id = sessions.dataset
WHERE datasets.workspace = ? AND datasets.name = ? AND sessions.session_id = ?
"""
_OF_SESSION = f"""
SELECT {CUT_COLUMNS} FROM {JOINED_ROWS}
JOIN datasets ON datasets.id = sessions.dataset
WHERE datasets.workspace = :workspace AND datasets.name = :dataset AND sessions.session_id = :session_id
"""
_ROWS = f"""
{_OF_SESSION} AND session_rows.seq BETWEEN :seq_from AND :seq_to
ORDER BY session_rows.seq, session_rows.block_idx LIMIT :limit
"""
_ROWS_AT = f"""
{_OF_SESSION} AND (session_rows.seq, session_rows.block_idx) IN (
    SELECT value ->> 0, value ->> 1 FROM json_each(:places)
)
"""


class SqliteSessions:
    """The ports SessionStore and SessionIndex on the file whose schema is SESSIONS_SCHEMA."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        database.add_function(has_phrase)

    def write(self, dataset: Dataset, user: str, rows: Sequence[SessionRow], written_us: int) -> None:
        """See SessionStore.write."""
        # Words are cut here, before the file's only writer is taken: others can write meanwhile.
        upload = Upload(dataset, user, rows, written_us)
        number = self._database.write(upload.write)
        self._database.behind.add(("merge", number), partial(merge_segments, dataset=number))

    def owner(self, dataset: Dataset, session_id: str) -> str | None:
        """See SessionStore.owner."""
        found = self._database.select(_OWNER, (dataset.workspace, dataset.name, session_id))
        return found[0][0] if found else None

    def rows(
        self, dataset: Dataset, session_id: str, seq_from: int, seq_to: int, limit: int, text_chars: int
    ) -> list[SessionRow]:
        """See SessionStore.rows."""
        bounds = {"seq_from": seq_from, "seq_to": seq_to, "limit": limit}
        return self._rows_of(_ROWS, dataset, session_id, text_chars, bounds)

    def rows_at(
        self, dataset: Dataset, session_id: str, places: Sequence[tuple[int, int]], text_chars: int
    ) -> list[SessionRow]:
        """See SessionStore.rows_at."""
        return self._rows_of(_ROWS_AT, dataset, session_id, text_chars, {"places": json.dumps(places)})

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
        """See SessionIndex.search."""
        search = Search(
            LONG_PHRASE_HITS if is_long(term) else WORD_HITS,
            match_of_term(term, session_id, user, tool),
            text=" ".join(term.words),
            order=order,
            one_per_session=one_per_session,
            with_bodies=True,
        )
        return search_page(self._database, dataset, search, offset, limit)

    def commands(self, dataset: Dataset, text: str, *, user: str | None, offset: int, limit: int) -> Found:
        """See SessionIndex.commands."""
        text = command_text(text)
        if len(text) < PIECE_CHARS:
            search = Search(SHORT_COMMAND_HITS, "", text, user)
        else:
            search = Search(COMMAND_HITS, match_of_command(text), text, user)
        return search_page(self._database, dataset, search, offset, limit)

    def _rows_of(
        self, query: str, dataset: Dataset, session_id: str, text_chars: int, asked: Mapping[str, int | str]
    ) -> list[SessionRow]:
        session = {"workspace": dataset.workspace, "dataset": dataset.name, "session_id": session_id}
        found = self._database.select(query, {**session, **asked, "text_chars": text_chars})
        return [cut_session_row(values, text_chars) for values in found]
