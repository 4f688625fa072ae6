"""The search index in SQLite stays quick and small however long a row and what is looked for in it are."""

import resource
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_index import create_index, merge_segments
from ctrlb.adapters.sqlite_sessions import SESSIONS_SCHEMA, SqliteSessions
from ctrlb.domain.words import parse_term
from ctrlb.ports import Found
from tests.contract.session_adapters import SessionStores, sqlite_sessions
from tests.contract.session_rows import DATASET, NOW_US, ran, said
from tests.contract.test_session_index import EVERY_HIT
from tests.cpu_time import cpu_s
from tests.unit.sqlite_numbers import PATIENCE_S

MEBIBYTE = 1024 * 1024


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[SessionStores]:
    with sqlite_sessions(tmp_path) as opened:
        yield opened


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def commands(stores: SessionStores, text: str) -> Found:
    return stores.index.commands(DATASET, text, user=None, offset=0, limit=10)


@pytest.mark.parametrize("text", ["a" * 10_000, "ab" * 5_000], ids=["one letter", "two letters"])
def test_a_long_text_is_found_in_a_long_command_at_once_and_in_little_memory(stores: SessionStores, text: str) -> None:
    command = text[:2] * (MEBIBYTE // 2)
    stores.store.write(DATASET, "ann", [ran("s1", 1, command)], NOW_US)
    start, before_mb = time.process_time(), peak_mb()
    assert commands(stores, text).total == 1
    assert commands(stores, text + "c").total == 0
    assert time.process_time() - start < cpu_s(1)
    assert peak_mb() - before_mb < 50


def test_a_long_phrase_is_found_in_a_long_body_at_once_and_in_little_memory(stores: SessionStores) -> None:
    stores.store.write(DATASET, "ann", [said("s1", 1, "aaa " * (MEBIBYTE // 2))], NOW_US)
    start, before_mb = time.process_time(), peak_mb()
    for last, total in (("aaa", 1), ("end", 0)):
        assert stores.index.search(DATASET, parse_term("aaa " * 248 + last), **EVERY_HIT).total == total
    assert time.process_time() - start < cpu_s(1)
    assert peak_mb() - before_mb < 150


def segments(database: SqliteDatabase) -> int:
    [(count,)] = database.select("SELECT count(DISTINCT segid) FROM words_1_idx")
    return int(count)


def test_what_uploads_add_to_the_index_is_merged_behind_them(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "sessions.db", SESSIONS_SCHEMA)
    sessions = SqliteSessions(database)
    for seq in range(31):  # at 32 an upload would merge them itself
        sessions.write(DATASET, "ann", [said("s1", seq, f"word{seq} and another")], NOW_US)
    give_up_s = time.monotonic() + PATIENCE_S
    while segments(database) > 16:
        assert time.monotonic() < give_up_s
        threading.Event().wait(0.001)
    assert sessions.search(DATASET, parse_term("another"), **EVERY_HIT).total == 31
    database.close()


def test_the_index_of_an_earlier_version_is_merged_behind_uploads_too(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "sessions.db", SESSIONS_SCHEMA)

    def made_earlier(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO datasets (workspace, name) VALUES (?, ?)", (DATASET.workspace, DATASET.name))
        create_index(connection, 1)
        for option, value in (("automerge", 16), ("usermerge", 4)):
            connection.execute("INSERT INTO words_1 (words_1, rank) VALUES (?, ?)", (option, value))

    def merged(connection: sqlite3.Connection) -> dict[str, int]:
        merge_segments(connection, 1)
        return dict(connection.execute("SELECT k, v FROM words_1_config").fetchall())

    database.write(made_earlier)
    assert database.write(merged).items() >= {"automerge": 0, "usermerge": 16, "crisismerge": 32}.items()
    database.close()
