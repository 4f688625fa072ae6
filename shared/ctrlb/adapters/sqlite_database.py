"""One SQLite file that many threads and a few processes share safely.

Writes gather: the first that waits commits everything that waits, in one transaction, so that 16 agents
pay for one flush of the disk and not for 16. Then it wakes each of them, and the next one leads. (If all
had to pass one lock to learn that they are done, the slowest would wait twice as long.)
`synchronous=FULL`: what was answered survives a power cut.
A thread of its own makes the checkpoints, never the path of a request, and ends queries whose time is up; another
makes the writes that nobody waits for.
"""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from ctrlb.adapters.sqlite_behind import WritesBehind
from ctrlb.adapters.sqlite_readers import Readers
from ctrlb.domain.errors import Unavailable

ATTEND_EVERY_S = 0.5
BUSY_TIMEOUT_MS = 5_000
"""How long a write waits for another process, such as the command line beside the server."""
WAL_ATTEMPTS = 500
WAL_RETRY_AFTER_S = 0.01
READ_CACHE_KIB = 256
"""For each connection that reads. The system keeps the file's pages, too: four times as much made nothing faster."""
WRITE_CACHE_KIB = 16_384
MAX_LOG_PAGES = 8_192
"""32 MiB: how long the write-ahead log may grow while writes never pause, before they are made to."""

T = TypeVar("T")
Parameters: TypeAlias = Sequence[object] | dict[str, object]


class Select(Protocol):
    """A query's rows, all of them."""

    def __call__(self, statement: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]: ...


class _Write(Generic[T]):
    """A write that waits for its turn, then its outcome."""

    def __init__(self, job: Callable[[sqlite3.Connection], T]) -> None:
        self._job = job
        self._result: T | None = None
        self._raised: Exception | None = None
        self._committed = False
        self._failure: sqlite3.Error | None = None
        self.done = False
        self.turn = threading.Lock()
        """Held until the write is done, or is to lead the next transaction."""
        self.turn.acquire()

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the job within its own savepoint: a job that raises leaves no trace of itself."""
        connection.execute("SAVEPOINT job")
        try:
            self._result = self._job(connection)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not connection.in_transaction:
                raise  # SQLite itself gave up the whole transaction: the disk is full, say
            connection.execute("ROLLBACK TO job")
            self._raised = error
        connection.execute("RELEASE job")

    def settle(self, committed: bool, failure: sqlite3.Error | None) -> None:
        """Note how the transaction of the job ended, and wake its caller."""
        self._committed, self._failure, self.done = committed, failure, True
        self.turn.release()

    def outcome(self) -> T:
        """What the job returned, or raise what it raised, or Unavailable when the store failed."""
        if not self._committed:
            raise _unavailable("written", self._failure) from self._failure
        if isinstance(self._raised, sqlite3.Error) and _is_outage(self._raised):
            raise _unavailable("written", self._raised) from self._raised
        if self._raised is not None:
            raise self._raised
        return self._result  # type: ignore[return-value]  # set by run, or it raised


class SqliteDatabase:
    """A file with its one writing connection, and reading connections that are shared out."""

    def __init__(self, path: Path, schema: str, attach: dict[str, Path] | None = None) -> None:
        """Open or create the file and run `schema`, which must be repeatable.

        `attach` names further files that reads may join, by schema name. They must exist by the first read.
        Raises Unavailable when the file is no database, or cannot be written.
        """
        self._path = path
        self._attach = attach or {}
        self._functions: list[Callable[..., float | str | None]] = []
        self._readers = Readers(self._connect_reader)
        self._waiting: deque[_Write[Any]] = deque()
        self._leader: _Write[Any] | None = None
        self._queue_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._closed = threading.Event()
        self.behind = WritesBehind(self.write)
        """Takes writes that may come after the answer, or never."""
        try:
            self._writer = self._connect(WRITE_CACHE_KIB)
            _switch_to_wal(self._writer)
            self._writer.execute("PRAGMA synchronous=FULL")
            self._writer.execute("PRAGMA fullfsync=ON")  # macOS: a plain fsync leaves it in the drive's cache
            self._writer.execute("PRAGMA wal_autocheckpoint=0")
            self._writer.executescript(f"BEGIN IMMEDIATE; {schema}; COMMIT")
        except sqlite3.Error as error:
            raise Unavailable(f"{path} cannot be opened ({error})") from error
        self._attendant = threading.Thread(target=self._attend, name=f"attend {path.name}", daemon=True)
        self._attendant.start()

    def add_function(self, function: Callable[..., float | str | None]) -> None:
        """Let queries call the function by its name. No query may have run yet."""
        self._functions.append(function)

    def select(self, statement: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, over every write that has returned.

        Raises Unavailable when it cannot be read, or not in READ_BUDGET_S.
        """
        with self._reader() as reader:
            return reader.execute(statement, parameters).fetchall()

    @contextmanager
    def one_moment(self) -> Iterator[Select]:
        """Queries that all see the file as it is at the first of them. No `select` may stand within."""
        with self._reader() as reader:
            reader.execute("BEGIN")
            yield lambda statement, parameters=(): reader.execute(statement, parameters).fetchall()

    def write(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` alone in a transaction and return its result once that is on the disk.

        What the job raises is raised here and undoes what it wrote. The job may run on another caller's
        thread and must not write through this database itself. Raises Unavailable when the file cannot be
        written: the disk is full, or another process holds it for over BUSY_TIMEOUT_MS.
        """
        write = _Write(job)
        with self._queue_lock:
            self._waiting.append(write)
            if self._leader is None:
                self._lead_next()
        try:
            write.turn.acquire()
            if not write.done:
                self._commit_all_waiting()
        finally:
            self._leave(write)
        return write.outcome()

    def close(self) -> None:
        """Fold the write-ahead log into the file and close. No call may be under way."""
        self.behind.close()
        self._closed.set()
        self._attendant.join()
        self._readers.close()
        with suppress(sqlite3.Error):  # the disk is full, say: the log is read at the next opening
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.close()

    def _connect(self, cache_kib: int) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute(f"PRAGMA cache_size=-{cache_kib}")
        connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._readers.lend() as reader:
                yield reader
        except sqlite3.Error as error:
            if _is_outage(error):
                raise _unavailable("read", error) from error
            raise

    def _connect_reader(self) -> sqlite3.Connection:
        reader = self._connect(READ_CACHE_KIB)
        for name, path in self._attach.items():
            reader.execute(f"ATTACH DATABASE ? AS {name}", (str(path),))
        for function in self._functions:
            reader.create_function(function.__name__, -1, function)
        reader.execute("PRAGMA query_only=ON")
        return reader

    def _lead_next(self) -> None:
        """Let the first that waits lead, if there is one. The caller holds the queue's lock."""
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.turn.release()

    def _leave(self, write: _Write[Any]) -> None:
        """Pass the lead on if it is this write's. One that was interrupted while it waited is taken back."""
        with self._queue_lock:
            if not write.done and write in self._waiting:
                self._waiting.remove(write)
            if self._leader is write:
                self._lead_next()

    def _commit_all_waiting(self) -> None:
        """Commit the writes that wait now; those that come meanwhile find the next turn."""
        with self._queue_lock:
            writes = list(self._waiting)
            self._waiting.clear()
        committed, failure = False, None
        with self._commit_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                for write in writes:
                    write.run(self._writer)
                self._writer.execute("COMMIT")
                committed = True
            except sqlite3.Error as error:
                failure = error
            finally:
                for write in writes:
                    write.settle(committed, failure)
                if not committed:
                    self._roll_back()

    def _roll_back(self) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error:
            return  # every write of it has failed already; the next one finds the transaction open and comes here

    def _attend(self) -> None:
        connection = self._connect(READ_CACHE_KIB)
        while not self._closed.wait(ATTEND_EVERY_S):
            self._readers.stop_late()
            try:
                _, log_pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if log_pages > MAX_LOG_PAGES:
                    # The log starts anew only when all of it is in the file, which steady writing prevents.
                    with self._commit_lock:
                        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            except sqlite3.Error:
                continue  # another process is at it, or the disk is full; the next turn comes
        connection.close()


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Make the file use a write-ahead log. SQLite does not wait when another process switches a new file too."""
    for attempts_left in reversed(range(WAL_ATTEMPTS)):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if not attempts_left:
                raise
            time.sleep(WAL_RETRY_AFTER_S)


def _is_outage(error: sqlite3.Error) -> bool:
    """Whether the store failed, as opposed to a constraint that did its work or a statement that is wrong."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code not in (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR)


def _unavailable(done: str, failure: sqlite3.Error | None) -> Unavailable:
    reason = f" ({failure})" if failure else ""
    return Unavailable(f"the store could not be {done}{reason}; send the same again later")
