"""Finds private keys: blocks between BEGIN and END, whole or cut off at either end, and PuTTY's.

Lines may be indented, numbered, quoted, or divided by the two characters backslash and n, however often escaped.
"""

from __future__ import annotations

import re

from ctrlb_agent.redacting.secret_formats import replaced

MAX_KEY_CHARS = 65536
"""A block's length that no private key reaches, with what escapes and indents add to it."""
MIN_LINE_CHARS = 16
MAX_LINE_CHARS = 4096
MAX_PREFIX_CHARS = 100
_MAX_LINES = 1000

_BEGIN = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_END = re.compile(
    r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- END SSH2 ENCRYPTED PRIVATE KEY ----"
)
_PUTTY = re.compile(r"Private-Lines: [0-9]{1,4}")
_LINE = re.compile(
    r"(?:[\w./-]{1,80}[:-][0-9]{1,6}[:-](?=[A-Za-z0-9+/]{16})"
    r"|\s|\\{1,15}[nrt]|[\"'`+,>|#*→]|[0-9]{1,6}[→\t:|]|\\(?=\n)|-(?=[ A-Za-z0-9+/])){0,80}"
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{0,200}|[A-Za-z0-9+/]{16,8192}={0,3})"
)
"""What divides lines, and then a line of base64, or of a header as `DEK-Info`."""
_RUN = re.compile(r"[A-Za-z0-9+/]{40}")
_LINE_END_BACK = re.compile(
    rf"(?:[^\n\\]|t\\{{1,15}}){{0,{MAX_PREFIX_CHARS}}}?(?:\n\r?[ \t]{{0,9}}|(?:[nr]\\{{1,15}}){{1,2}})"
)
"""Backwards: what stands before a line's base64, as its number, and the end of the line above."""
_BASE64_BACK = re.compile(r"={0,3}[A-Za-z0-9+/]+")


def without_private_keys(text: str) -> str:
    """The text with the inside of every private key replaced; the marks around it stay."""
    return replaced(text, _spans(text))


def may_have_private_key(text: str) -> bool:
    """Whether `without_private_keys` could change the text."""
    return "PRIVATE KEY" in text or "Private-Lines" in text


def _spans(text: str) -> list[tuple[int, int]]:
    spans = []
    ends_seen = set()
    for begin in _BEGIN.finditer(text):
        following = _BEGIN.search(text, begin.end(), begin.end() + MAX_KEY_CHARS)
        stop = following.start() if following else min(len(text), begin.end() + MAX_KEY_CHARS)
        end = _END.search(text, begin.end(), stop)
        if end:
            ends_seen.add(end.start())
            if _RUN.search(text, begin.end(), end.start()):
                spans.append((begin.end(), end.start()))
        else:
            spans.append((begin.end(), _end_of_lines(text, begin.end(), stop)))
    spans += [(mark.end(), _end_of_lines(text, mark.end(), len(text))) for mark in _PUTTY.finditer(text)]
    spans += [
        (_start_of_lines(text, end.start()), end.start()) for end in _END.finditer(text) if end.start() not in ends_seen
    ]
    return sorted(span for span in spans if span[0] < span[1])


def _end_of_lines(text: str, start: int, stop: int) -> int:
    """Where the lines of base64 end that begin at `start`; `start` when there are none."""
    at = start
    for _ in range(_MAX_LINES):
        line = _LINE.match(text, at, stop)
        if line is None:
            break
        at = line.end()
    return at


def _start_of_lines(text: str, end: int) -> int:
    """Where the lines of base64 begin that end at `end`."""
    at = end
    for _ in range(_MAX_LINES):
        begins = _line_before(text, at, 1 if at == end else MIN_LINE_CHARS)
        if begins is None:
            break
        at = begins
    return at if _RUN.search(text, at, end) else end


def _line_before(text: str, at: int, min_chars: int) -> int | None:
    """Where the base64 of the line begins after which `at` is, or the mark of a line that begins there."""
    behind = _LINE_END_BACK.match(text[max(0, at - MAX_PREFIX_CHARS - 40) : at][::-1])
    if behind is None:
        return None
    stop = at - behind.end()
    backwards = text[max(0, stop - MAX_LINE_CHARS) : stop][::-1]
    line = _BASE64_BACK.match(backwards)
    if line is None:
        return None
    start = stop - line.end()
    if start and text[start - 1] == "\\" and text[start] in "nrt":
        start += 1  # the end of the line before, in a string
    return start if stop - start >= min_chars else None
