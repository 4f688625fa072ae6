"""Which transcript of Claude Code a forked session's transcript began with."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent.json_values import object_in, text_of
from ctrlb_agent.transcripts.rows import number_of, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES = 200
"""Transcripts of a project that are searched for the parent, those that were written last first."""
MAX_SEARCHED_BYTES = 512 << 20
MAX_LINES = 500_000
MAX_LINE_BYTES = 8 << 20
"""Of a longer line no message is looked for."""
MAX_HEAD_LINES = 1_000
"""Within which a transcript has its first message."""


class Fork(NamedTuple):
    """What a forked session has from its parent."""

    parent: str
    copied_lines: int
    """The number of the last line that was copied; before it there are no messages of the fork's own."""
    cost_usd: float
    """What the parent had spent: the fork's totals go on from it."""


class _Shared(NamedTuple):
    messages: int
    fork: Fork


def parent_of(path: str) -> Fork | None:
    """The fork that the transcript is, or None if it is none: the session that most of its first messages are from.

    Of two files with the same messages that one is the fork whose own lines are the younger. Raises OSError when the
    file or its folder cannot be read.
    """
    messages = [uuid for _, uuid, _ in _lines(path, MAX_HEAD_LINES) if uuid]
    if not messages:
        return None
    best: _Shared | None = None
    for other in _files_with(path, messages[0].encode("utf-8", "replace")):
        found = _shared(path, other)
        if found and (best is None or found.messages > best.messages):
            best = found
    return best.fork if best else None


def session_named_in(path: str) -> str:
    """The session id that the first lines of the file name, or an empty text."""
    try:
        named = (text_of(line.get("sessionId")) for _, _, line in _lines(path, MAX_HEAD_LINES))
        return next(filter(None, named), "")
    except OSError:
        return ""


def _files_with(path: str, uuid: bytes) -> Iterator[str]:
    """The other sessions' transcripts in the folder that hold the uuid."""
    folder = os.path.dirname(os.path.abspath(path))
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(".jsonl") or entry.name.startswith("agent-"):
                continue
            with suppress(OSError):  # gone, or a link to itself, or into a folder that is closed to this user
                if entry.is_file():
                    about = entry.stat()
                    found.append((about.st_mtime, about.st_size, entry.path))
    searched_bytes = 0
    for _, size, other in sorted(found, reverse=True)[:MAX_FILES]:
        searched_bytes += size
        if searched_bytes > MAX_SEARCHED_BYTES:
            return
        if size and not os.path.samefile(other, path) and _holds(other, uuid):
            yield other


def _holds(path: str, text: bytes) -> bool:
    import mmap

    try:
        with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text) >= 0
    except (OSError, ValueError):  # gone, or empty
        return False


def _shared(path: str, other: str) -> _Shared | None:
    """What the transcript has from the other one; None when nothing, or when it is the other way around."""
    theirs = {uuid for _, uuid, _ in _lines(other, MAX_LINES) if uuid}
    copied: set[str] = set()
    copied_lines = 0
    for number, uuid, _ in _lines(path, MAX_LINES):
        if uuid in theirs:
            copied.add(uuid)
            copied_lines = number
        elif uuid:
            break
    if not copied or _age(path, copied) <= _age(other, copied):
        return None
    parent = os.path.basename(other)[: -len(".jsonl")]
    return _Shared(len(copied), Fork(parent, copied_lines, _spent_usd(other, copied)))


def _age(path: str, copied: set[str]) -> tuple[bool, int, str]:
    """Orders files by their first line with a time that is no message of both; one without such a line comes last."""
    for _, uuid, line in _lines(path, MAX_LINES):
        if uuid not in copied and line.get("type") in _TIMED:
            moment = time_us(line.get("timestamp"))
            if moment is not None:
                return False, moment, path
    return True, 0, path


def _spent_usd(path: str, copied: set[str]) -> float:
    """The session's total at the message after the last copied one."""
    spent_usd = total_usd = 0.0
    is_behind = False
    for _, uuid, line in _lines(path, MAX_LINES):
        if line.get("type") == "cost-state":
            total_usd = number_of(line.get("totalCostUSD"))
        elif uuid in copied:
            is_behind = True
        elif uuid and is_behind:
            spent_usd, is_behind = total_usd, False
    return total_usd if is_behind else spent_usd


_MESSAGES = ("user", "assistant")
_TIMED = (*_MESSAGES, "queue-operation", "api-request")
"""Kinds of lines that a fork does not copy, and messages."""


def _lines(path: str, most: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The file's first objects: the line's number, its uuid if it is a message (else an empty text), and the object."""
    with open(path, "rb") as stream:
        for number in range(1, most + 1):
            content = _whole_line(stream)
            if not content:
                return
            line = object_in(content)
            if line is not None:
                yield number, text_of(line.get("uuid")) if line.get("type") in _MESSAGES else "", line


def _whole_line(stream: IO[bytes]) -> bytes:
    """The next line; of one that is too long its beginning, which is no JSON; nothing at the end of the file."""
    content = stream.readline(MAX_LINE_BYTES)
    last = content
    while len(last) == MAX_LINE_BYTES and not last.endswith(b"\n"):
        last = stream.readline(MAX_LINE_BYTES)
    return content
