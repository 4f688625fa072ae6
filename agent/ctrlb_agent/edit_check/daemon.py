"""The background process: it keeps connections warm, so that the hook before an edit need neither open one nor import.

One for each user and version. It listens on a socket in the state folder that only its user can reach, serves each
hook in a thread of its own, and ends by itself: when nobody has asked for a quarter of an hour, when the socket is no
longer its own, or when a hook has kept it for far too long. The next hook starts another.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent import hook, state
from ctrlb_agent.complaints import complain
from ctrlb_agent.connection import Connection, remaining_s
from ctrlb_agent.edit_check import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IDLE_S = 900.0
WATCH_S = 30.0  # how often it looks whether its socket is still its own
OVERDUE_S = 10.0  # a hook waits a tenth of that
READ_S = 1.0
MARGIN_S = 0.05  # of the hook's time, in which the answer gets back to it
MAX_JOBS = 32
BACKLOG = 128
MAX_HEAD_BYTES = 1 << 20
MAX_KEPT = 8  # connections that nobody uses at the moment
KEPT_S = 240.0  # what is between drops a silent connection, often after some 5 minutes
LOCAL_PEERCRED = 1  # of macOS and the BSDs
OPEN_FILES = 4_096


class Message(NamedTuple):
    """What a hook sends, as `hook.message` writes it."""

    client: str
    left_s: float
    environ: Mapping[bytes, bytes]
    data: bytes


class Connections:
    """Connections that are lent to one hook at a time, and kept for the next with the same URL and key."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, Connection]] = []  # the longest unused first
        self._lock = threading.Lock()

    @contextmanager
    def lend(self, url: str, key: str) -> Iterator[Connection]:
        """A connection that is no other's as long as the context lasts."""
        connection = self._take(url, key)
        yield connection  # after an error it is not kept
        self._keep(connection)

    def _take(self, url: str, key: str) -> Connection:
        with self._lock:
            while self._kept and time.monotonic() - self._kept[0][0] > KEPT_S:
                self._kept.pop(0)[1].close()
            for place in range(len(self._kept) - 1, -1, -1):
                connection = self._kept[place][1]
                if (connection.url, connection.key) == (url, key):
                    del self._kept[place]
                    return connection
        return Connection(url, key)

    def _keep(self, connection: Connection) -> None:
        with self._lock:
            self._kept.append((time.monotonic(), connection))
            if len(self._kept) > MAX_KEPT:
                self._kept.pop(0)[1].close()


class Daemon:
    """Hooks that are served, each in a thread, until there is a reason to end."""

    def __init__(self, listener: socket.socket, idle_s: float) -> None:
        self._listener = listener
        self._own = os.stat(hook.SOCKET).st_ino
        self._idle_s = idle_s
        self._last_s = time.monotonic()
        self._jobs: dict[object, float] = {}
        self._connections = Connections()

    def serve(self) -> None:
        """Serve until there is a reason to end."""
        while not self._is_over():
            self._listener.settimeout(1.0 if self._jobs else max(0.01, min(WATCH_S, self._idle_left_s())))
            try:
                connection, _ = self._listener.accept()
            except socket.timeout:
                continue
            self._last_s = time.monotonic()
            if is_our_user(connection) and len(self._jobs) < MAX_JOBS:
                job = object()
                self._jobs[job] = self._last_s
                threading.Thread(target=self._serve_one, args=(job, connection), daemon=True).start()
            else:
                _refuse(connection)

    def _serve_one(self, job: object, connection: socket.socket) -> None:
        try:
            with connection:
                self._talk(connection)
        except OSError:
            pass  # the hook has gone
        except Exception as error:
            complain(f"daemon: {type(error).__name__}: {error}")
        finally:
            self._jobs.pop(job, None)

    def _talk(self, connection: socket.socket) -> None:
        message = read_message(connection)
        if message is None:
            return
        if connection_variables(message.environ) != connection_variables(os.environb):
            connection.sendall(hook.DECLINED)  # it would take another way to the server than the hook was told
            return
        connection.sendall(hook.ACK)
        give_up_s = time.monotonic() + message.left_s - MARGIN_S
        environ = {os.fsdecode(name): os.fsdecode(value) for name, value in message.environ.items()}
        answer = check.answer(message.client, message.data, environ, give_up_s, self._connections.lend)
        connection.sendall(b"%d\n%s" % (len(answer), answer))

    def _is_over(self) -> bool:
        if any(time.monotonic() - since_s > OVERDUE_S for since_s in list(self._jobs.values())):
            complain("daemon: ended, for a request got stuck")
            return True
        return self._idle_left_s() <= 0 or not _is_file(hook.SOCKET, self._own)

    def _idle_left_s(self) -> float:
        return self._last_s + self._idle_s - time.monotonic()


def main() -> None:
    """Become the background process, unless there is one, and end with it."""
    leave_the_hook()
    try:
        os.chdir(state.home())
        with state.locked(os.fsdecode(hook.LOCK), 0):
            os.utime(hook.LOCK)
            idle_s = float(os.environ.get("CTRLB_AGENT_IDLE_S") or IDLE_S)
            with listening() as listener:
                Daemon(listener, idle_s).serve()
    except state.Busy:
        pass  # there is one already
    except Exception as error:
        complain(f"daemon: {type(error).__name__}: {error}")
    os._exit(0)  # a thread that is stuck is not waited for


def leave_the_hook() -> None:
    """Give up what came from the hook that started this: its session, its files, and its pipes to the client."""
    with suppress(OSError):
        os.setsid()  # it may be out of it already
    os.closerange(3, OPEN_FILES)
    os.umask(0o077)


@contextmanager
def listening() -> Iterator[socket.socket]:
    """The socket of this folder, for whoever holds the lock. It is never there without somebody listening to it."""
    for name in os.listdir(b"."):
        if name.startswith(hook.SOCKET + b"."):
            os.unlink(name)  # of one that died here
    made = hook.SOCKET + b".%d" % os.getpid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(made)
        os.chmod(made, 0o600)
        listener.listen(BACKLOG)
        os.rename(made, hook.SOCKET)
        own = os.stat(hook.SOCKET).st_ino
        try:
            yield listener
        finally:
            if _is_file(hook.SOCKET, own):
                os.unlink(hook.SOCKET)


def read_message(connection: socket.socket) -> Message | None:
    """The hook's message, or None when it is none or is too long. Raises OSError when it has not come in READ_S."""
    give_up_s = time.monotonic() + READ_S
    received = b""
    while b"\0\0" not in received:
        if len(received) > MAX_HEAD_BYTES:
            return None
        received += _chunk(connection, give_up_s)
    head, _, data = received.partition(b"\0\0")
    try:
        client, left, length, *variables = head.split(b"\0")
        left_s, size = float(left), int(length)
    except ValueError:
        return None
    if not 0 <= size <= hook.MAX_MESSAGE_BYTES:
        return None
    while len(data) < size:
        data += _chunk(connection, give_up_s)
    environ = {name: value for name, _, value in (variable.partition(b"=") for variable in variables)}
    return Message(client.decode("utf-8", "replace"), min(left_s, hook.TOTAL_S), environ, data[:size])


def _chunk(connection: socket.socket, give_up_s: float) -> bytes:
    connection.settimeout(remaining_s(give_up_s))
    chunk = connection.recv(hook.CHUNK_BYTES)
    if not chunk:
        raise ConnectionError("the hook has gone")
    return chunk


def connection_variables(environ: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Those of the variables that decide how a server is reached."""
    return {name: value for name, value in environ.items() if name.upper() in hook.OF_CONNECTIONS}


def is_our_user(connection: socket.socket) -> bool:
    """Whether the process at the other end is of the user that this one runs as, where the system tells."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        elif sys.platform == "darwin":
            _, user = struct.unpack("2I", connection.getsockopt(0, LOCAL_PEERCRED, 76)[:8])
        else:
            return True  # the folder's mode keeps the others out
    except OSError:
        return False
    return bool(user == os.geteuid())


def _refuse(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.settimeout(0)
        connection.sendall(hook.DECLINED)


def _is_file(name: bytes, inode: int) -> bool:
    try:
        return os.stat(name).st_ino == inode
    except OSError:
        return False
