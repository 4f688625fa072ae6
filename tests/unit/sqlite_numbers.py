"""A file of numbers for the tests on SqliteDatabase, and writes that are made to share a transaction."""

import sqlite3
import threading
import time
from collections.abc import Callable

from ctrlb.adapters.sqlite_database import SqliteDatabase

SCHEMA = """
CREATE TABLE IF NOT EXISTS numbers (number INTEGER PRIMARY KEY, text TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS parts (whole INTEGER REFERENCES numbers (number) DEFERRABLE INITIALLY DEFERRED);
"""
PATIENCE_S = 120


def adding(number: int) -> Callable[[sqlite3.Connection], int]:
    def job(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO numbers (number) VALUES (?)", (number,))
        return number

    return job


def numbers(database: SqliteDatabase) -> list[int]:
    return [number for (number,) in database.select("SELECT number FROM numbers ORDER BY number")]


def outcomes_together(
    database: SqliteDatabase, jobs: list[Callable[[sqlite3.Connection], int]]
) -> list[int | BaseException]:
    """What came of jobs that share one transaction: they gather while the one before them is not let end."""
    entered, gathered = threading.Event(), threading.Event()
    outcomes: dict[int, int | BaseException] = {}

    def first(_: sqlite3.Connection) -> None:
        entered.set()
        assert gathered.wait(PATIENCE_S)

    def attempt(index: int) -> None:
        try:
            outcomes[index] = database.write(jobs[index])
        except BaseException as error:
            outcomes[index] = error

    threads = [threading.Thread(target=database.write, args=(first,))]
    threads += [threading.Thread(target=attempt, args=(index,)) for index in range(len(jobs))]
    threads[0].start()
    assert entered.wait(PATIENCE_S)
    for waiting, thread in enumerate(threads[1:], start=1):
        thread.start()
        wait_for_writes(database, waiting)
    gathered.set()
    for thread in threads:
        thread.join()
    return [outcomes[index] for index in range(len(jobs))]


def wait_for_writes(database: SqliteDatabase, count: int) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while len(database._waiting) != count:
        assert time.monotonic() < give_up_s
        threading.Event().wait(0.001)
