"""The folder in which the agents' side keeps its state: small JSON files, locks and a log.

It is `~/.ctrlb-agent`, or what `CTRLB_AGENT_HOME` names. Nobody but its user may read it, for it can hold a key, and
parts of sessions that wait to be sent.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ctrlb_agent.json_values import object_in

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LOG_BYTES = 1 << 20
LOCK_POLL_S = 0.02


class Busy(Exception):
    """Another process kept the lock for the whole time that one was ready to wait."""


def folder() -> str:
    """The folder's absolute path, whether or not it is there. Raises OSError when that cannot be told.

    A relative one is decided on once, also for the processes that this one starts: they work in other folders.
    """
    named = os.environ.get("CTRLB_AGENT_HOME") or os.path.join(os.path.expanduser("~"), ".ctrlb-agent")
    if not os.path.isabs(named):
        named = os.environ["CTRLB_AGENT_HOME"] = os.path.abspath(named)
    return named


def home() -> str:
    """The folder's path. It is made, with mode 0700, when it is not there, and gets that when others may write to it.

    Raises OSError when it cannot be made, or is another user's, who would decide what runs and where sessions go.
    """
    return _made(folder())


def path(*parts: str) -> str:
    """A path below the folder, whose parents are made, and are its user's alone, as `home` is. Raises OSError."""
    whole = os.path.join(home(), *parts)
    if len(parts) > 1 or "/" in parts[0]:
        _made(os.path.dirname(whole))
    return whole


def is_own(file: str) -> bool:
    """Whether the file is there and its owner is this user, or the system's administrator."""
    try:
        return os.stat(file).st_uid in (os.geteuid(), 0)
    except OSError:
        return False


def read_json(file: str) -> dict[str, Any] | None:
    """The object in the file, or None when there is no such file or no object in it."""
    try:
        with open(file, "rb") as stream:
            return object_in(stream.read())
    except OSError:
        return None


def write_json(file: str, value: dict[str, Any]) -> None:
    """Replace the file with the object in one step: a reader, or a crash, finds the old or the new one whole.

    Raises OSError when the disk refuses.
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        content = written.encode()
    except UnicodeEncodeError:  # a path that is no UTF-8
        content = json.dumps(value).encode()
    write_bytes(file, content)


def write_bytes(file: str, content: bytes) -> None:
    """Replace the file in one step, readable by its user only. Raises OSError when the disk refuses."""
    import tempfile

    number, written = tempfile.mkstemp(prefix=os.path.basename(file) + ".", suffix=".new", dir=os.path.dirname(file))
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(content)
        os.replace(written, file)
    except BaseException:
        os.unlink(written)
        raise


def keep_python() -> None:
    """Write down which Python this is, for `ctrlb-hook`: the program itself, since a link to it may go.

    Raises OSError when the disk refuses.
    """
    write_bytes(path("python"), os.fsencode(os.path.realpath(sys.executable)) + b"\n")


@contextmanager
def locked(file: str, wait_s: float) -> Iterator[None]:
    """Hold the lock file's lock, which ends with the process however it ends. Raises Busy after `wait_s`."""
    import fcntl

    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        give_up_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= give_up_s:
                    raise Busy(file) from None
            time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(number)


def log(line: str) -> None:
    """Add a line to `agent.log`, which keeps its last mebibyte or two. Never raises: a log is no reason to fail.

    Callers write no text of a session, no key and no header.
    """
    try:
        file = path("agent.log")
        if os.path.exists(file) and os.path.getsize(file) > MAX_LOG_BYTES:
            os.replace(file, file + ".1")
        written = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(line.split())}\n"
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(number, written.encode("utf-8", "replace"))
        finally:
            os.close(number)
    except OSError:
        return


def _made(parent: str) -> str:
    try:
        found = os.stat(parent)
    except FileNotFoundError:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        found = os.stat(parent)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{parent} is no folder")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{parent} belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        if found.st_mode & stat.S_ISVTX:
            raise PermissionError(f"{parent} is a folder for everybody's files")  # such as /tmp, which is to stay so
        os.chmod(parent, 0o700)
    return parent
