"""The adapters of SessionStore and SessionIndex, and the plainest model of what both promise."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_sessions import SESSIONS_SCHEMA, SqliteSessions
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.session_text import cut_texts, fold, searchable_text
from ctrlb.domain.words import Term, has_term, words_of
from ctrlb.ports import Found, Order, SessionIndex, SessionStore, SessionTaken
from tests.aws.stores import dynamodb_sessions


@dataclass(frozen=True)
class SessionStores:
    """A store and the index over what is written to it."""

    store: SessionStore
    index: SessionIndex


SessionOpening: TypeAlias = Callable[[Path], contextlib.AbstractContextManager[SessionStores]]
StoreOpening: TypeAlias = Callable[[Path], contextlib.AbstractContextManager[SessionStore]]


@contextlib.contextmanager
def sqlite_sessions(folder: Path) -> Iterator[SessionStores]:
    """Both in the folder's file, closed as a server closes it."""
    database = SqliteDatabase(folder / "sessions.db", SESSIONS_SCHEMA)
    sessions = SqliteSessions(database)
    try:
        yield SessionStores(sessions, sessions)
    finally:
        database.close()


@contextlib.contextmanager
def sqlite_store(folder: Path) -> Iterator[SessionStore]:
    """The store alone, in the folder's file."""
    with sqlite_sessions(folder) as stores:
        yield stores.store


STORE_ADAPTERS: dict[str, StoreOpening] = {
    "sqlite": sqlite_store,
    "dynamodb": dynamodb_sessions,
    "moto": dynamodb_sessions,
}


@dataclass
class SessionModel:
    """Both ports, by reading through everything."""

    owners: dict[tuple[Dataset, str], str] = field(default_factory=dict)
    stored: dict[Dataset, dict[tuple[str, int, int], SessionRow]] = field(default_factory=dict)

    def write(self, dataset: Dataset, user: str, rows: Sequence[SessionRow], written_us: int) -> None:
        for row in rows:
            if self.owners.get((dataset, row.session_id), user) != user:
                raise SessionTaken(row.session_id)
        stored = self.stored.setdefault(dataset, {})
        for row in rows:
            self.owners[dataset, row.session_id] = user
            before = stored.get(row.identity)
            given_us = row.ts_us or (before.ts_us if before else written_us)
            stored[row.identity] = replace(row, ts_us=given_us)

    def owner(self, dataset: Dataset, session_id: str) -> str | None:
        return self.owners.get((dataset, session_id))

    def rows(
        self, dataset: Dataset, session_id: str, seq_from: int, seq_to: int, limit: int, text_chars: int
    ) -> list[SessionRow]:
        found = [row for row in self._all(dataset) if row.session_id == session_id and seq_from <= row.seq <= seq_to]
        found.sort(key=attrgetter("seq", "block_idx"))
        return [cut_texts(row, text_chars) for row in found[:limit]]

    def rows_at(
        self, dataset: Dataset, session_id: str, places: Sequence[tuple[int, int]], text_chars: int
    ) -> list[SessionRow]:
        rows = self.stored.get(dataset, {})
        found = [rows[session_id, *place] for place in places if (session_id, *place) in rows]
        return [cut_texts(row, text_chars) for row in found]

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
        hits = [
            row
            for row in self._all(dataset)
            if has_term(words_of(searchable_text(row.command, row.body)), term)
            and user in (None, self.owners[dataset, row.session_id])
            and session_id in (None, row.session_id)
            and tool in (None, row.tool_name)
        ]
        hits.sort(key=attrgetter("ts_us", "session_id", "seq", "block_idx"), reverse=order == "newest")
        if one_per_session:
            firsts: dict[str, SessionRow] = {}
            for row in hits:
                firsts.setdefault(row.session_id, row)
            hits = list(firsts.values())
        return Found(len(hits), hits[offset : offset + limit])

    def commands(self, dataset: Dataset, text: str, *, user: str | None, offset: int, limit: int) -> Found:
        hits = [
            replace(row, body="")
            for row in self._all(dataset)
            if row.block_type == "tool_use"
            and text in fold(row.command)
            and user in (None, self.owners[dataset, row.session_id])
        ]
        hits.sort(key=attrgetter("ts_us", "session_id", "seq", "block_idx"), reverse=True)
        return Found(len(hits), hits[offset : offset + limit])

    def _all(self, dataset: Dataset) -> list[SessionRow]:
        return list(self.stored.get(dataset, {}).values())
