"""One SQLite file when jobs, callers and disks fail: nobody is told success for what is not there."""

import signal
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctrlb.adapters import sqlite_database
from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.domain.errors import Unavailable
from tests.unit.sqlite_numbers import PATIENCE_S, SCHEMA, adding, numbers, outcomes_together, wait_for_writes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "numbers.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(path, SCHEMA)
    yield opened
    opened.close()


def test_a_job_that_fails_takes_nothing_from_those_committed_with_it(database: SqliteDatabase) -> None:
    def failing(connection: sqlite3.Connection) -> int:
        adding(100)(connection)
        raise KeyError("mine")

    outcomes = outcomes_together(database, [adding(1), failing, adding(2), adding(1), adding(3)])
    assert [type(outcome) for outcome in outcomes] == [int, KeyError, int, sqlite3.IntegrityError, int]
    assert numbers(database) == [1, 2, 3]


@pytest.mark.parametrize("statement", ["ROLLBACK", "COMMIT"])
def test_when_a_job_ruins_the_transaction_nobody_in_it_is_told_success(
    database: SqliteDatabase, statement: str
) -> None:
    def ruin(connection: sqlite3.Connection) -> int:
        connection.execute(statement)
        return 0

    outcomes = outcomes_together(database, [adding(1), ruin, adding(2)])
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert database.write(adding(3)) == 3
    assert 3 in numbers(database)
    assert 2 not in numbers(database)


def test_when_the_commit_fails_nobody_in_it_is_told_success(database: SqliteDatabase) -> None:
    database._writer.execute("PRAGMA foreign_keys=ON")

    def breaking(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO parts VALUES (404)")  # deferred: only COMMIT finds it
        return 0

    outcomes = outcomes_together(database, [adding(1), breaking, adding(2)])
    assert [str(outcome) for outcome in outcomes] == [
        "the store could not be written (FOREIGN KEY constraint failed); send the same again later"
    ] * 3
    assert numbers(database) == []
    assert database.write(adding(3)) == 3
    assert numbers(database) == [3]


def test_a_job_that_is_interrupted_fails_those_with_it_and_the_next_write_works(database: SqliteDatabase) -> None:
    def interrupted(connection: sqlite3.Connection) -> int:
        adding(2)(connection)
        raise KeyboardInterrupt

    # The first of those that wait leads, and it is on its thread that the interrupt arrives.
    outcomes = outcomes_together(database, [interrupted, adding(1)])
    assert [type(outcome) for outcome in outcomes] == [KeyboardInterrupt, Unavailable]
    assert numbers(database) == []
    assert database.write(adding(3)) == 3


def test_a_caller_interrupted_while_it_waits_takes_its_write_back_and_leaves_the_queue_whole(
    database: SqliteDatabase,
) -> None:
    entered, interrupted = threading.Event(), threading.Event()

    def interrupt_the_waiting_main_thread(_: sqlite3.Connection) -> None:
        entered.set()
        wait_for_writes(database, 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert interrupted.wait(PATIENCE_S)

    leader = threading.Thread(target=database.write, args=(interrupt_the_waiting_main_thread,))
    leader.start()
    assert entered.wait(PATIENCE_S)
    with pytest.raises(KeyboardInterrupt):
        database.write(adding(1))
    interrupted.set()
    leader.join()
    assert database.write(adding(2)) == 2
    assert numbers(database) == [2]


def test_a_file_that_another_holds_too_long_is_unavailable_and_then_works(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_TIMEOUT_MS", 1)
    database = SqliteDatabase(path, SCHEMA)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="database is locked"):
        database.write(adding(1))
    assert numbers(database) == []
    other.execute("ROLLBACK")
    other.close()
    assert database.write(adding(2)) == 2
    assert numbers(database) == [2]
    database.close()


def test_a_full_disk_is_unavailable_and_what_was_there_stays(database: SqliteDatabase) -> None:
    database.write(adding(1))
    (pages,) = database._writer.execute("PRAGMA page_count").fetchone()
    database._writer.execute(f"PRAGMA max_page_count={pages}")

    def filling(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO numbers VALUES (2, ?)", ("x" * 100_000,))
        return 2

    outcomes = outcomes_together(database, [adding(3), filling])
    assert isinstance(outcomes[1], Unavailable)
    assert "full" in str(outcomes[1])
    kept = [1, *(outcome for outcome in outcomes if isinstance(outcome, int))]
    assert numbers(database) == kept
    database._writer.execute("PRAGMA max_page_count=1000000")
    assert database.write(adding(4)) == 4


def test_a_file_that_is_no_database_any_more_is_unavailable_to_readers(path: Path, database: SqliteDatabase) -> None:
    database.write(adding(1))
    database._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(b"no database" * 1_000)
    with pytest.raises(Unavailable, match="could not be read"):
        numbers(database)


def test_a_write_after_the_end_is_refused_not_lost(path: Path) -> None:
    database = SqliteDatabase(path, SCHEMA)
    database.close()
    with pytest.raises(Unavailable, match="closed"):
        database.write(adding(1))


def test_a_new_file_that_a_rival_switches_at_the_same_moment_is_opened_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = sqlite3.connect(path, isolation_level=None)
    rival.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite_database, "BUSY_TIMEOUT_MS", 1)
    # Not time.sleep itself, which threads of other tests are in.
    monkeypatch.setattr(sqlite_database, "time", SimpleNamespace(sleep=lambda _: rival.execute("ROLLBACK")))
    database = SqliteDatabase(path, SCHEMA)
    rival.close()
    assert database.write(adding(1)) == 1
    database.close()
