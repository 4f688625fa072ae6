"""What could not be sent waits here: files of one request each, in the order in which they were written.

An entry is a line of JSON (which server and dataset it is for, its number of rows, how often the server failed on it)
and the request's gzip body. A transcript's cursor moves past rows only when the server, or the disk, has them.

What the server fails on goes behind all others, waits longer each time, and is set aside after two weeks.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent import state
from ctrlb_agent.json_values import object_in
from ctrlb_agent.uploading.files import NotAFile, opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctrlb_agent.settings import Settings

MAX_BYTES = 64 << 20
"""Of all entries together. Beyond it nothing is taken, and the rows stay in their transcripts."""
MAX_BODY_BYTES = 8 << 20
"""Of one entry after decompression; what claims to be more is broken."""
MAX_SET_ASIDE = 32
KEPT_FOR_OTHERS_S = 90 * 86_400
"""How long the entries of a server that is no longer set up are kept."""
KEPT_WHEN_FAILING_S = 14 * 86_400
"""How long an entry is tried that the server fails on."""
FAILURES_WITHOUT_WAIT = 4
FIRST_WAIT_S = 60.0
MAX_WAIT_S = 6 * 3_600.0
"""How long such an entry waits after more failures than that, and at most: so it is tried some 70 times."""
LOCK_WAIT_S = 5.0
ENDING = ".batch"
_NAME = re.compile(r"[0-9]{1,18}\.batch")


class Broken(Exception):
    """The entry's file is not what was written. The text says how."""


class Entry(NamedTuple):
    """A request that waits."""

    file: str
    rows: int
    body: bytes
    """Its JSON."""
    failures: int
    """How often the server failed on it, or may have."""
    not_before_s: float
    """When it is to be tried again, since the epoch."""
    put_s: float
    """When its rows came here first, since the epoch."""

    @property
    def is_due(self) -> bool:
        """Whether it is to be tried now."""
        wait_s = self.not_before_s - time.time()
        return not 0 < wait_s <= MAX_WAIT_S or self.is_old

    @property
    def is_old(self) -> bool:
        """Whether the server, if it fails on it, has done so for two weeks."""
        return time.time() - self.put_s > KEPT_WHEN_FAILING_S


def put(settings: Settings, body: bytes, rows: int, failures: int = 0) -> bool:
    """Keep the request, so that it survives this process and the machine's end; False when the spool is full.

    Raises OSError when the disk refuses, and state.Busy when others kept the spool for 5 s.
    """
    return _put(settings, body, rows, failures, MAX_BYTES) is not None


def replace(entry: Entry, settings: Settings, parts: Sequence[tuple[bytes, int, int]]) -> list[str]:
    """Put requests (body, rows, failures) behind all others in the place of the entry; returns their files.

    They are as old as the entry. Raises what `put` does.
    """
    files = []
    for body, rows, failures in parts:
        file = _put(settings, body, rows, failures, MAX_BYTES + MAX_BODY_BYTES)
        if file is None:
            raise OSError(errno.EDQUOT, "the spool is full", entry.file)
        os.utime(file, (entry.put_s, entry.put_s))
        files.append(file)
    os.unlink(entry.file)
    return files


def _put(settings: Settings, body: bytes, rows: int, failures: int, most_bytes: int) -> str | None:
    more = failures - FAILURES_WITHOUT_WAIT
    wait_s = min(FIRST_WAIT_S * 2 ** min(more, 20), MAX_WAIT_S) if more > 0 else 0.0
    about: dict[str, object] = {"url": settings.url, "dataset": settings.dataset, "rows": rows}
    if failures:
        about.update(failures=failures, not_before_s=time.time() + wait_s)
    content = json.dumps(about).encode() + b"\n" + gzip.compress(body, 6)
    with state.locked(state.path("spool", "write.lock"), LOCK_WAIT_S):
        names = _names()
        if size_bytes() + len(content) > most_bytes:
            return None
        number = _number(names[-1]) + 1 if names else 1
        file = _file(f"{number:012}{ENDING}")
        state.write_bytes(file, content)
        _make_durable(file)
    return file


def size_bytes() -> int:
    """How much waits, for whatever server."""
    return sum(_size(_file(name)) for name in _names())


def waiting(settings: Settings) -> list[str]:
    """The files of the entries for this server and dataset, oldest first. Removes what others left for too long."""
    found = []
    for name in _names():
        file = _file(name)
        try:
            if _is_for(file, settings):
                found.append(file)
            elif _age_s(file) > KEPT_FOR_OTHERS_S:
                os.unlink(file)
                state.log(f"spool: removed {name}, which waited 90 days for a server that is no longer set up")
        except Broken as broken:
            set_aside(file, str(broken))
        except (IsADirectoryError, NotAFile) as other:
            set_aside(file, str(other.strerror))
        except OSError:  # another process has just sent it
            continue
    return found


def read(file: str) -> Entry:
    """The entry. Raises Broken, and OSError when it is gone."""
    with opened(file) as stream:
        about = _about(stream.readline())
        compressed = stream.read()
        put_s = os.fstat(stream.fileno()).st_mtime
    try:
        inflater = zlib.decompressobj(wbits=31)
        body = inflater.decompress(compressed, MAX_BODY_BYTES)
    except zlib.error as error:
        raise Broken(f"cannot be decompressed ({error})") from None
    if not inflater.eof:
        raise Broken("ends too early, or is longer than any request")
    rows, failures = int(number_in(about, "rows")), int(number_in(about, "failures"))
    return Entry(file, rows, body, failures, number_in(about, "not_before_s"), put_s)


def set_aside(file: str, reason: str) -> None:
    """Move the entry out of the way of the others, and keep the last few such."""
    name = os.path.basename(file)
    state.log(f"spool: set {name} aside: {reason}")
    kept = state.path("spool", "broken", name)
    folder = os.path.dirname(kept)
    with suppress(OSError):  # another process has done it
        os.replace(file, kept)
    for old in sorted(os.listdir(folder))[:-MAX_SET_ASIDE]:
        with suppress(OSError):  # a folder that somebody put there
            os.unlink(os.path.join(folder, old))


def number_in(about: Mapping[str, object], name: str) -> float:
    """The number, 0.0 for none that could be a count or a time."""
    value = about.get(name)
    return float(value) if isinstance(value, (int, float)) and 0 <= value < 1e12 else 0.0


def _names() -> list[str]:
    folder = os.path.dirname(_file("any"))
    return sorted((name for name in os.listdir(folder) if _NAME.fullmatch(name)), key=_number)


def _number(name: str) -> int:
    return int(name.partition(".")[0])


def _file(name: str) -> str:
    return state.path("spool", name)


def _is_for(file: str, settings: Settings) -> bool:
    with opened(file) as stream:
        about = _about(stream.readline(1 << 16))
    return (about.get("url"), about.get("dataset")) == (settings.url, settings.dataset)


def _about(line: bytes) -> dict[str, object]:
    about = object_in(line)
    if about is None:
        raise Broken("does not begin with what it is")
    return about


def _size(file: str) -> int:
    try:
        return os.path.getsize(file)
    except OSError:  # sent meanwhile
        return 0


def _age_s(file: str) -> float:
    return time.time() - os.path.getmtime(file)


def _make_durable(file: str) -> None:
    """Have the disk keep it through a loss of power."""
    for name in (file, os.path.dirname(file)):
        number = os.open(name, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
