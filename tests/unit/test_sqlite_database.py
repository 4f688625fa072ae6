"""One SQLite file that many threads share: what was answered is there for all of them."""

import contextlib
import functools
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlb.adapters import sqlite_database, sqlite_readers
from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.domain.errors import Unavailable
from tests.unit.sqlite_numbers import PATIENCE_S, SCHEMA, adding, numbers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "numbers.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(path, SCHEMA)
    yield opened
    opened.close()


def test_a_write_returns_what_its_job_returned_and_is_read_by_every_thread(database: SqliteDatabase) -> None:
    seen: list[list[int]] = []
    assert numbers(database) == []
    assert database.write(adding(7)) == 7
    thread = threading.Thread(target=lambda: seen.append(numbers(database)))
    thread.start()
    thread.join()
    assert [*seen, numbers(database)] == [[7], [7]]


def test_a_job_that_raises_leaves_no_trace_and_its_error_is_the_callers(database: SqliteDatabase) -> None:
    def job(connection: sqlite3.Connection) -> None:
        adding(1)(connection)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        database.write(job)
    database.write(adding(2))
    with pytest.raises(sqlite3.IntegrityError):
        database.write(adding(2))
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        database.write(lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)"))
    assert numbers(database) == [2]


def test_threads_that_race_for_numbers_each_get_a_true_answer(database: SqliteDatabase) -> None:
    won: list[int] = []

    def race() -> None:
        for number in range(150):
            try:
                won.append(database.write(adding(number)))
            except sqlite3.IntegrityError:
                continue

    threads = [threading.Thread(target=race) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == numbers(database) == list(range(150))


def test_reading_connections_refuse_to_write(database: SqliteDatabase) -> None:
    with pytest.raises(Unavailable, match="readonly"):
        database.select("INSERT INTO numbers (number) VALUES (1)")


def test_threads_that_read_one_after_the_other_share_a_connection(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0
    connect = database._connect

    def count(cache_kib: int) -> sqlite3.Connection:
        nonlocal opened
        opened += 1
        return connect(cache_kib)

    monkeypatch.setattr(database, "_connect", count)
    for _ in range(20):
        thread = threading.Thread(target=numbers, args=(database,))
        thread.start()
        thread.join()
    assert opened == 1


def test_queries_of_one_moment_do_not_see_what_is_written_meanwhile(database: SqliteDatabase) -> None:
    with database.one_moment() as select:
        assert select("SELECT count(*) FROM numbers") == [(0,)]
        database.write(adding(7))
        assert numbers(database) == [7]
        assert select("SELECT count(*) FROM numbers") == [(0,)]
    assert numbers(database) == [7]


def test_threads_that_read_at_once_never_share_a_connection(database: SqliteDatabase) -> None:
    database.write(adding(7))
    reading, start = list[list[int]](), threading.Barrier(16)

    def read() -> None:
        start.wait(PATIENCE_S)
        for _ in range(200):
            reading.append(numbers(database))

    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reading == [[7]] * 3_200
    assert len(database._readers._idle) <= sqlite_readers.MAX_READERS


ENDLESS = "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted) SELECT max(n) FROM counted"


def test_a_query_whose_time_is_up_is_ended_and_its_connection_serves_the_next(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers(database)
    monkeypatch.setattr(sqlite_database, "ATTEND_EVERY_S", 0.005)
    monkeypatch.setattr(sqlite_readers, "READ_BUDGET_S", 0.01)
    with pytest.raises(Unavailable, match="reading takes longer than"):
        database.select(ENDLESS)
    with pytest.raises(Unavailable, match="ask for less"), database.one_moment() as select:
        select(ENDLESS)
    monkeypatch.setattr(sqlite_readers, "READ_BUDGET_S", PATIENCE_S)
    with database.one_moment() as select:
        assert select("SELECT count(*) FROM numbers") == [(0,)]
    assert len(database._readers._idle) == 1


def test_who_waits_for_a_connection_too_long_is_told_so(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as all_lent:
        for _ in range(sqlite_readers.MAX_READERS):
            all_lent.enter_context(database.one_moment())
        monkeypatch.setattr(sqlite_readers, "READ_BUDGET_S", 0.01)
        with pytest.raises(Unavailable, match="reading takes longer than"):
            numbers(database)
    monkeypatch.setattr(sqlite_readers, "READ_BUDGET_S", PATIENCE_S)
    assert numbers(database) == []


def test_queries_call_the_functions_that_were_added(database: SqliteDatabase) -> None:
    def half(number: int) -> float:
        return number / 2

    database.add_function(half)
    assert database.select("SELECT half(7)") == [(3.5,)]


def test_closing_folds_the_log_in_though_threads_have_read(path: Path) -> None:
    database = SqliteDatabase(path, SCHEMA)
    have_read, closed = threading.Barrier(4), threading.Event()

    def read() -> None:
        numbers(database)
        have_read.wait(PATIENCE_S)
        assert closed.wait(PATIENCE_S)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    have_read.wait(PATIENCE_S)
    database.write(adding(1))
    database.close()
    closed.set()
    for thread in threads:
        thread.join()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    reopened = SqliteDatabase(path, SCHEMA)
    assert numbers(reopened) == [1]
    reopened.close()


def test_reads_join_the_files_that_are_attached(tmp_path: Path, database: SqliteDatabase, path: Path) -> None:
    joined = SqliteDatabase(tmp_path / "other.db", "CREATE TABLE names (name TEXT)", attach={"first": path})
    database.write(adding(1))
    joined.write(lambda connection: connection.execute("INSERT INTO names VALUES ('one')"))
    assert joined.select("SELECT name, number FROM names, first.numbers") == [("one", 1)]
    joined.close()


def test_the_log_stays_small_though_writes_never_pause(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_database, "MAX_LOG_PAGES", 50)
    monkeypatch.setattr(sqlite_database, "ATTEND_EVERY_S", 0.005)
    database = SqliteDatabase(path, SCHEMA)
    text = "x" * 20_000

    def add(number: int, connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (?, ?)", (number, text))

    def write(first: int) -> None:
        for number in range(first, first + 400):
            database.write(functools.partial(add, number))

    threads = [threading.Thread(target=write, args=(first,)) for first in range(0, 1_600, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbers(database)) == 1_600
    written_bytes = 1_600 * len(text)
    assert path.with_name(path.name + "-wal").stat().st_size < written_bytes / 4
    database.close()
