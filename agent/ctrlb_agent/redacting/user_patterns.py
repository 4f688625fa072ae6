"""What a user wants redacted beside the known secrets: the regular expressions in `~/.ctrlb-agent/redact.txt`.

One a line, in Python's syntax; lines that begin with `#` and empty ones are left out. All that a pattern matches is
replaced, or only its group named `secret`, if it has one. A text is given to the patterns in pieces, cut at the end of
a line where there is one. A pattern that takes longer than `LIMIT_S` for a piece is not used again in this process,
and the log says which line it is in. The limit is kept by a timer of the process's main thread: call from there.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from ctrlb_agent import state
from ctrlb_agent.redacting.secret_formats import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_PATTERNS = 200
MAX_PATTERN_CHARS = 2000
PIECE_CHARS = 16384
"""A match that crosses the border of two pieces is not found."""
LIMIT_S = 0.5


class _TookTooLong(Exception):
    """A pattern did not come to an end within the limit."""


class OwnPattern:
    """A user's pattern, and the line that it is in, from 1."""

    def __init__(self, line: int, expression: re.Pattern[str]) -> None:
        self.line = line
        self.expression = expression
        self.slow = False


def read_patterns() -> tuple[OwnPattern, ...]:
    """The patterns in the user's file, of which there may be none. The log says, once, which lines are no patterns."""
    try:
        file = state.path("redact.txt")
        status = os.stat(file)
        return _patterns_of(file, status.st_mtime_ns, status.st_size)
    except OSError:
        return ()


@lru_cache(maxsize=4)
def _patterns_of(file: str, changed_ns: int, size: int) -> tuple[OwnPattern, ...]:
    """The patterns of a file as it was at a time. What was too slow is remembered until the file changes."""
    with open(file, encoding="utf-8-sig", errors="replace") as stream:
        lines = [line.strip() for line in stream.read(MAX_PATTERNS * MAX_PATTERN_CHARS).splitlines()]
    patterns: list[OwnPattern] = []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        expression = _compiled(line) if len(patterns) < MAX_PATTERNS and len(line) <= MAX_PATTERN_CHARS else None
        if expression:
            patterns.append(OwnPattern(number, expression))
        else:
            state.log(f"redact.txt, line {number}: no regular expression, or over a limit; it is not used")
    return tuple(patterns)


def without_own(text: str, patterns: Sequence[OwnPattern]) -> str:
    """The text with what the patterns match replaced. What was replaced before stays as it is."""
    for pattern in patterns:
        if not pattern.slow:
            text = "".join(_piece_without(piece, pattern) for piece in _pieces(text))
    return text


def _compiled(line: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(line)
    except (re.error, RecursionError, OverflowError, ValueError):
        return None


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = text.rfind("\n", start, start + PIECE_CHARS) + 1 or start + PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def _piece_without(piece: str, pattern: OwnPattern) -> str:
    if pattern.slow:
        return piece
    try:
        spans = _limited_spans(piece, pattern.expression)
    except _TookTooLong:
        pattern.slow = True
        state.log(f"redact.txt, line {pattern.line}: took more than {LIMIT_S} s for a text; it is not used any more")
        return piece
    parts, done = [], 0
    for start, end in spans:
        start, end = _widened(piece, start, end)
        if start >= done and piece[start:end] != REDACTED:
            parts += [piece[done:start], REDACTED]
            done = end
    return "".join([*parts, piece[done:]])


def _limited_spans(piece: str, expression: re.Pattern[str]) -> list[tuple[int, int]]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return _spans(piece, expression)
    running = True

    def stop(*_: object) -> None:
        if running:
            raise _TookTooLong

    handler = signal.signal(signal.SIGALRM, stop)
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        spans = _spans(piece, expression)
        running = False
        return spans
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, left_s, every_s)
        signal.signal(signal.SIGALRM, handler)


def _spans(piece: str, expression: re.Pattern[str]) -> list[tuple[int, int]]:
    group = "secret" if "secret" in expression.groupindex else 0
    spans = [found.span(group) for found in expression.finditer(piece)]
    return [span for span in spans if span[0] < span[1]]


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """The span, with all of a mark that it begins or ends within."""
    length = len(REDACTED)
    first = text.rfind(REDACTED, max(0, start - length + 1), start + length)
    if 0 <= first < start:
        start = first
    last = text.rfind(REDACTED, max(0, end - length + 1), end + length - 1)
    if 0 <= last < end:
        end = max(end, last + length)
    return start, end
