"""Writes that nobody waits for: made one step after the other, among the writes that somebody does wait for."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctrlb.adapters.sqlite_database import SqliteDatabase
from tests.unit.sqlite_numbers import PATIENCE_S, SCHEMA, adding, numbers, wait_for_writes

Step = Callable[[sqlite3.Connection], bool]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "numbers.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(path, SCHEMA)
    yield opened
    opened.close()


def steps(first: int, last: int, done: threading.Event) -> Step:
    """Work that adds a number with each step."""
    left = iter(range(first, last + 1))

    def step(connection: sqlite3.Connection) -> bool:
        number = adding(next(left))(connection)
        if number == last:
            done.set()
        return number != last

    return step


def finish(database: SqliteDatabase, done: threading.Event) -> None:
    """Wait until the work is done, and its last step committed."""
    assert done.wait(PATIENCE_S)
    database.write(lambda _: None)


def test_a_write_that_comes_during_a_step_is_made_before_the_next_step(database: SqliteDatabase) -> None:
    entered, may_end, done = threading.Event(), threading.Event(), threading.Event()
    made: list[str] = []

    def step(_: sqlite3.Connection) -> bool:
        made.append("step")
        entered.set()
        assert may_end.wait(PATIENCE_S)
        if len(made) < 3:
            return True
        done.set()
        return False

    database.behind.add("steps", step)
    assert entered.wait(PATIENCE_S)
    write = threading.Thread(target=database.write, args=(lambda _: made.append("write"),))
    write.start()
    wait_for_writes(database, 1)
    may_end.set()
    write.join(PATIENCE_S)
    assert done.wait(PATIENCE_S)
    assert made == ["step", "write", "step"]


def test_work_that_fails_is_given_up_and_what_is_asked_for_later_is_done(database: SqliteDatabase) -> None:
    database.write(adding(1))
    failed, done = threading.Event(), threading.Event()

    def failing(connection: sqlite3.Connection) -> bool:
        adding(2)(connection)
        failed.set()
        adding(1)(connection)
        return True

    database.behind.add("failing", failing)
    assert failed.wait(PATIENCE_S)
    database.behind.add("good", steps(3, 4, done))
    finish(database, done)
    assert numbers(database) == [1, 3, 4]


def test_closing_waits_for_the_step_under_way_and_takes_no_other(path: Path) -> None:
    database = SqliteDatabase(path, SCHEMA)
    entered = threading.Event()

    def endless(connection: sqlite3.Connection) -> bool:
        [(count,)] = connection.execute("SELECT count(*) FROM numbers")
        adding(count)(connection)
        entered.set()
        return True

    database.behind.add("endless", endless)
    assert entered.wait(PATIENCE_S)
    database.close()
    database.behind.add("late", endless)
    opened = SqliteDatabase(path, SCHEMA)
    found = numbers(opened)
    opened.close()
    assert found == list(range(len(found)))
    assert found
