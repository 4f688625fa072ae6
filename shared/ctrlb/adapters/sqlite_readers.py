"""The connections to a SQLite file that queries read on: each lent to one caller at a time, and not for long."""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ctrlb.domain.errors import Unavailable

MAX_READERS = 8
"""Queries under way at once; more wait. They are short, and every connection takes memory."""
READ_BUDGET_S = 5.0
"""How long a caller may wait for a connection and read on it, in all: no query keeps the others out for longer."""


class Readers:
    """As many connections as ever read at once, which is far fewer than there are threads."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._idle: deque[sqlite3.Connection] = deque()
        self._turn = threading.BoundedSemaphore(MAX_READERS)
        self._lent_until_s: dict[sqlite3.Connection, float] = {}
        self._lent_lock = threading.Lock()
        """Held while a connection is interrupted, so that it is not lent to another at that moment."""

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """A connection, whose transaction, if one is begun, ends with the block. Raises Unavailable when time is up."""
        until_s = time.monotonic() + READ_BUDGET_S
        if not self._turn.acquire(timeout=READ_BUDGET_S):
            raise _too_long()
        try:
            reader = self._take()
            with self._lent_lock:
                self._lent_until_s[reader] = until_s
            try:
                yield reader
            finally:
                self._take_back(reader)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise _too_long() from error
            raise
        finally:
            self._turn.release()

    def stop_late(self) -> None:
        """Interrupt the queries whose time is up; to be called again and again, for a caller may have several."""
        with self._lent_lock:
            for reader, until_s in self._lent_until_s.items():
                if time.monotonic() > until_s:
                    reader.interrupt()

    def close(self) -> None:
        """Close them all. None may be lent."""
        for reader in self._idle:
            reader.close()

    def _take(self) -> sqlite3.Connection:
        """The one used last, whose cache is warm, or a new one if all are busy."""
        with suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    def _take_back(self, reader: sqlite3.Connection) -> None:
        with self._lent_lock:
            del self._lent_until_s[reader]
        if reader.in_transaction:
            reader.execute("ROLLBACK")
        self._idle.append(reader)


def _too_long() -> Unavailable:
    return Unavailable(f"reading takes longer than {READ_BUDGET_S:.0f} seconds; ask for less, or again later")
