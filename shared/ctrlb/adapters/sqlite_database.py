"""One SQLite file that many threads and a few processes share safely.

Writes gather: whoever gets the lock commits everything that waits, in one transaction, so that 16 agents
pay for one flush of the disk and not for 16. `synchronous=FULL`: what was answered survives a power cut.
Checkpoints run on a thread of their own, never on the path of a request.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from ctrlb.domain.errors import Unavailable

CHECKPOINT_EVERY_S = 0.5
BUSY_TIMEOUT_MS = 5_000
"""How long a write waits for another process, such as the command line beside the server."""
READ_CACHE_KIB = 1_024
WRITE_CACHE_KIB = 16_384

T = TypeVar("T")


class _Write(Generic[T]):
    """A write that waits for its turn, then its outcome."""

    def __init__(self, job: Callable[[sqlite3.Connection], T]) -> None:
        self.job = job
        self.done = False
        self.result: T | None = None
        self.error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the job within its own savepoint: a job that raises leaves no trace of itself."""
        connection.execute("SAVEPOINT job")
        try:
            self.result = self.job(connection)
        except Exception as error:
            connection.execute("ROLLBACK TO job")
            self.error = error
        connection.execute("RELEASE job")

    def outcome(self) -> T:
        """What the job returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # set by run, which set done


class SqliteDatabase:
    """A file with its one writing connection, and a reading connection for each thread."""

    def __init__(self, path: Path, schema: str, attach: dict[str, Path] | None = None) -> None:
        """Open or create the file and run `schema`, which must be repeatable.

        `attach` names further files that reads may join, by schema name.
        """
        self._path = path
        self._attach = attach or {}
        self._threads = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._waiting: deque[_Write[Any]] = deque()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._writer = self._connect(WRITE_CACHE_KIB)
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.execute("PRAGMA synchronous=FULL")
        self._writer.execute("PRAGMA wal_autocheckpoint=0")
        self._writer.executescript(schema)
        self._checkpointer = threading.Thread(target=self._checkpoint, name=f"checkpoint {path.name}", daemon=True)
        self._checkpointer.start()

    def read(self) -> sqlite3.Connection:
        """This thread's own connection, for reads. Each statement sees every write that has returned."""
        connection: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._connect(READ_CACHE_KIB)
            connection.execute("PRAGMA query_only=ON")
            for name, path in self._attach.items():
                connection.execute(f"ATTACH DATABASE ? AS {name}", (str(path),))
            self._threads.connection = connection
            self._readers.append(connection)
        return connection

    def write(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` alone in a transaction and return its result once that is on the disk.

        What the job raises is raised here and undoes what it wrote. Raises Unavailable when the file
        cannot be written: the disk is full, or another process holds it for over BUSY_TIMEOUT_MS.
        """
        write = _Write(job)
        self._waiting.append(write)
        with self._lock:
            if not write.done:
                self._commit_all_waiting()
        return write.outcome()

    def close(self) -> None:
        """Fold the write-ahead log into the file and close. No call may be under way."""
        self._closed.set()
        self._checkpointer.join()
        for reader in self._readers:
            reader.close()
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.close()

    def _connect(self, cache_kib: int) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute(f"PRAGMA cache_size=-{cache_kib}")
        connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    def _commit_all_waiting(self) -> None:
        """Commit the writes that wait now; those that come meanwhile find the next turn."""
        writes = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for write in writes:
                write.run(self._writer)
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            for write in writes:
                write.error = Unavailable(f"the store could not write ({error}); send the same again")
        finally:
            for write in writes:
                write.done = True

    def _checkpoint(self) -> None:
        connection = self._connect(READ_CACHE_KIB)
        while not self._closed.wait(CHECKPOINT_EVERY_S):
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            except sqlite3.OperationalError:
                continue  # somebody else is at it; the next turn comes
        connection.close()
