"""How far each transcript was read, in one small file for each, so that a hook goes on where the last one ended.

Lines are appended to a transcript while it is read. Only whole lines count; the rest waits. Where the file is no longer
the one that was read (it shrank, was replaced or rewritten) reading begins again: rows that are sent twice change
nothing on the server.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import state
from ctrlb_agent.json_values import object_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctrlb_agent.settings import Settings

MAX_LINE_BYTES = 64 << 20
"""Of a longer line only its length is read."""
PIECE_BYTES = 1 << 20
PRINT_BYTES = 1_024
"""How much of the beginning, and of what was read last, tells whether it is still the same file."""
MAX_OFFSET = 1 << 50
MAX_MEMORY_LEVELS = 10
KEPT_AFTER_FILE_GONE_S = 90 * 86_400


class Cursor(NamedTuple):
    """What is on file about one transcript, for one server and dataset."""

    path: str
    """As the first that spoke of it did: its name says which session it is, also where it is a link."""
    client: str
    url: str
    dataset: str
    offset: int
    """Bytes that are dealt with, all of whole lines."""
    number: int
    """Lines in them."""
    memory: dict[str, Any]
    """What the parser remembers of them."""
    inode: int
    head: str
    tail: str


KINDS = {
    **dict.fromkeys(("path", "client", "url", "dataset", "head", "tail"), str),
    **dict.fromkeys(("offset", "number", "inode"), int),
    "memory": dict,
}


class Line(NamedTuple):
    """One whole line of a transcript."""

    number: int
    """From 1."""
    value: dict[str, Any] | None
    """None when it holds no JSON object, or is too long."""
    size: int
    """In bytes, with its end."""
    end: int
    """The offset behind it."""

    @property
    def is_too_long(self) -> bool:
        return self.size > MAX_LINE_BYTES


def file_of(path: str, settings: Settings) -> str:
    """Where the transcript's cursor is kept: by its real path, and by the server that gets its rows."""
    names = (settings.url, settings.dataset, os.path.realpath(path))
    name = _digest(b"\0".join(os.fsencode(name) for name in names))
    return state.path("cursors", f"{name}.json")


def lock_of(file: str) -> str:
    """The lock that is held while the cursor's transcript is read."""
    return f"{file}.lock"


def fresh(path: str, client: str, settings: Settings) -> Cursor:
    """The cursor of a transcript of which nothing was read."""
    return Cursor(os.path.abspath(path), client, settings.url, settings.dataset, 0, 0, {}, 0, "", "")


def load(file: str) -> Cursor | None:
    """The cursor on file; None when there is none, or none that can be understood."""
    kept = state.read_json(file)
    if kept is None or kept.keys() != set(Cursor._fields):
        return None
    cursor = Cursor(**kept)
    for name, kind in KINDS.items():
        if type(getattr(cursor, name)) is not kind:
            return None
    if "\0" in cursor.path or not 0 <= cursor.offset <= MAX_OFFSET or not 0 <= cursor.number <= MAX_OFFSET:
        return None
    return cursor if _is_within(MAX_MEMORY_LEVELS, cursor.memory) else None


def _is_within(levels: int, value: Any) -> bool:
    """Whether no more objects and lists are within each other."""
    if not isinstance(value, (dict, list)):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_within(levels - 1, one) for one in inner)


def save(file: str, cursor: Cursor) -> None:
    """Keep the cursor. Raises OSError when the disk refuses."""
    state.write_json(file, cursor._asdict())


def note(path: str, client: str, settings: Settings) -> None:
    """Have a cursor for the transcript, so that it is remembered even when nothing gets uploaded now.

    The file need not be there yet. Raises OSError when the disk refuses.
    """
    file = file_of(path, settings)
    if os.path.exists(file):
        return
    try:
        with state.locked(lock_of(file), 0):
            if not os.path.exists(file):
                save(file, fresh(path, client, settings))
    except state.Busy:  # somebody reads it at this moment
        return


def resumed(stream: IO[bytes], kept: Cursor) -> Cursor:
    """The cursor, if the file still begins and goes on as it did when it was kept; else one at its beginning."""
    start = kept._replace(offset=0, number=0, memory={}, head="", tail="", inode=0)
    about = os.fstat(stream.fileno())
    if about.st_size < kept.offset or about.st_ino != kept.inode:
        return start
    return kept if (kept.head, kept.tail) == _prints(stream, kept.offset) else start


def moved(stream: IO[bytes], cursor: Cursor, offset: int, number: int, memory: dict[str, Any]) -> Cursor:
    """The cursor at another place of the file, with what will tell whether it is still that file."""
    head, tail = _prints(stream, offset)
    inode = os.fstat(stream.fileno()).st_ino
    return cursor._replace(offset=offset, number=number, memory=memory, inode=inode, head=head, tail=tail)


def lines(stream: IO[bytes], offset: int, number: int) -> Iterator[Line]:
    """The whole lines behind the offset, of which `number` are before it; ends at one that has no end yet.

    Bytes that are no UTF-8 are replaced. Never holds more than one line, nor more than MAX_LINE_BYTES of it.
    """
    stream.seek(offset)
    while True:
        content, size = _next_line(stream)
        if not size:
            return
        number += 1
        offset += size
        yield Line(number, object_in(content) if size <= MAX_LINE_BYTES else None, size, offset)


def _next_line(stream: IO[bytes]) -> tuple[bytes, int]:
    """The next line and its length: of a longer one than MAX_LINE_BYTES the length alone, 0 for one without an end."""
    content = stream.readline(MAX_LINE_BYTES + 1)
    size = len(content)
    last = content
    while last and not last.endswith(b"\n"):  # too long, or its end may be written at this moment
        last = stream.readline(PIECE_BYTES)
        size += len(last)
        content = content + last if size <= MAX_LINE_BYTES else b""
    return (content, size) if last else (b"", 0)


def has_unread(cursor: Cursor) -> bool:
    """Whether the transcript is longer than what was read, or became another file."""
    try:
        about = os.stat(cursor.path)
    except OSError:
        return False
    return about.st_size != cursor.offset or about.st_ino != cursor.inode


def unfinished(settings: Settings) -> list[Cursor]:
    """The known transcripts of which something was not uploaded to this server, the longest untouched first.

    Forgets what is known of files that have been gone for 90 days.
    """
    folder = os.path.dirname(state.path("cursors", "any"))
    found = []
    for name in os.listdir(folder):
        file = os.path.join(folder, name)
        cursor = load(file) if name.endswith(".json") else None
        if cursor is None:
            continue
        if not os.path.exists(cursor.path):
            _forget_if_old(file)
        elif (cursor.url, cursor.dataset) == (settings.url, settings.dataset) and has_unread(cursor):
            found.append((os.path.getmtime(cursor.path), cursor))
    return [cursor for _, cursor in sorted(found, key=lambda one: one[0])]


def _forget_if_old(file: str) -> None:
    try:
        if time.time() - os.path.getmtime(file) < KEPT_AFTER_FILE_GONE_S:
            return
        with state.locked(lock_of(file), 0):
            os.unlink(file)
            os.unlink(lock_of(file))
    except (OSError, state.Busy):  # the next start tries again
        return


def _prints(stream: IO[bytes], offset: int) -> tuple[str, str]:
    """What tells the file from others: the beginning, and the end, of what is before the offset."""
    length = min(PRINT_BYTES, offset)
    number = stream.fileno()
    return _digest(os.pread(number, length, 0)), _digest(os.pread(number, length, offset - length))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
