"""Finds values that stand apart from the name of the secret: `name: DB_PASSWORD` and `value: …` below, or in a table
of the name's own, as `"password": {"type": "string", "value": "…"}`.

Lines may be numbered, quoted, found by grep or in a diff, and divided by the two characters backslash and n.
"""

from __future__ import annotations

import re

from ctrlb_agent.redacting.secret_literals import literal_span
from ctrlb_agent.redacting.secret_names import BOUND, LINE, QUOTED, TOKEN, is_secret, kind_of

MAX_BETWEEN = 4
"""So many other members may stand between a name and its value."""

_QUOTE = r"(?:\\{0,15}[\"'])?"
_BLANKS = r"(?:[ \t]|\\{1,15}t){0,60}"
_NAMES = tuple(
    re.compile(rf"{by}{_QUOTE}[ \t]{{0,9}}[:=][ \t]{{0,9}}{_QUOTE}(?P<name>[A-Za-z_/][\w./-]{{2,80}}){_QUOTE}")
    for by in ("ame", "ey(?<=[kK]ey)")
)
"""`name:` and `key:`, each of which begins with letters that are found fast."""
_GAP = re.compile(
    r"[ \t]{0,60}[{,]?[ \t]{0,60}(?:\r?\n|\\{1,15}n){1,60}(?:[\w./-]{1,80}[:-][0-9]{1,6}[:-])?"
    rf"{_BLANKS}(?:[0-9]{{1,6}}[\t→:|]|[0-9]{{1,6}}\\{{1,15}}t)?{_BLANKS}[>+-]?{_BLANKS}"
    r"|[ \t]{0,60}[{,][ \t]{0,60}"
)
"""The end of a member and what stands before the next one."""
_VALUE_KEY = re.compile(rf"{_QUOTE}(?:[vV]alue|stringValue|default){_QUOTE}[ \t]{{0,9}}[:=][ \t]{{0,9}}(?=[^\s{{])")
_OTHER = re.compile(
    rf"{_QUOTE}(?!name|key)[A-Za-z][\w-]{{0,40}}{_QUOTE}[ \t]{{0,9}}[:=][ \t]{{0,9}}"
    r"(?:\\{0,15}[\"'][^\"'\\\n]{0,100}\\{0,15}[\"']|[^\s,{}\[\]\"'\\]{1,100})"
)

_MARKED = re.compile(
    rf"(?:name|key)={_QUOTE}([\w.:-]{{3,80}}){_QUOTE}(?: [^<>\n]{{0,80}})?>\s{{0,40}}(?:<value>)?([^<>\s]{{1,500}})</"
)
_MARKED_APART = re.compile(
    r"<(?:name|key)>([\w.:-]{3,80})</(?:name|key)>"
    r"\s{0,60}<(?:value|string)>([^<>\s]{1,500})</"
)
_SET = re.compile(
    r"(?:ENV|setenv|setx|set(?:[ \t]{1,4}-[gUx]{1,3}){1,3}|onfig set(?:[ \t]{1,4}--[\w-]{1,30}){0,3})"
    r"[ \t]{1,9}((?://|[A-Za-z_])[\w./:-]{2,100})[ \t]{1,9}\\{0,15}[\"']?([^\s\"'`\\;]{1,500})"
)
_TWO_PARTS = (
    ("</", _MARKED),
    ("</", _MARKED_APART),
    *((word, _SET) for word in ("ENV ", "setenv ", "setx ", "set -", "onfig set ")),
)
"""A text without which the pattern cannot match, and one whose groups are a name and its value."""
_INSERTED = re.compile(
    r"(?:nsert|NSERT)[ \t]{1,4}(?i:into)[ \t]{1,4}[^\s()]{1,100}[ \t]{0,4}\(([^()]{1,1000})\)\s{0,40}(?i:values)"
)
_ROW = re.compile(r"(?:\s|\\{1,15}n){0,40},?(?:\s|\\{1,15}n){0,40}\(([^()]{1,4000})\)")
_CELL = re.compile(r"[ \t]{0,20}(?:\\{0,15}'([^'\\\n]{0,1000})\\{0,15}'|[^',()]{0,200})[ \t]{0,20}(?:,|\Z)")
_MAX_ROWS = 1000


def spans_of_marked(text: str) -> list[tuple[int, int]]:
    """The values of elements that have their name as an attribute, or before them; and of `ENV NAME value`."""
    spans = []
    for word, pattern in _TWO_PARTS:
        for found in pattern.finditer(text) if word in text else ():
            kind = kind_of(found[1].rpartition(":")[2])
            if kind and is_secret(kind, found[2], BOUND if pattern is _SET else QUOTED):
                spans.append(found.span(2))
    return spans


def spans_of_rows(text: str) -> list[tuple[int, int]]:
    """What SQL puts into columns that are named as secrets: `INSERT INTO users (name, password) VALUES (…)`."""
    spans = []
    for found in _INSERTED.finditer(text) if "nsert" in text or "NSERT" in text else ():
        kinds = [kind_of(column.strip("\"'`\\ \t\r\n")) for column in found[1].split(",")]
        at = found.end()
        for _ in range(_MAX_ROWS if any(kinds) else 0):
            row = _ROW.match(text, at)
            if row is None:
                break
            cells = [_CELL.match(text, row.start(1), row.end(1))]
            while cells[-1] and cells[-1].end() < row.end(1) and len(cells) < len(kinds):
                cells.append(_CELL.match(text, cells[-1].end(), row.end(1)))
            for kind, cell in zip(kinds, cells):
                if kind and cell and cell[1] and is_secret(kind, cell[1], QUOTED):
                    spans.append(cell.span(1))
            at = row.end()
    return spans


def spans_of_pairs(text: str) -> list[tuple[int, int]]:
    """The values of entries that say their name, and then their value."""
    spans = []
    for found in (found for pattern in _NAMES for found in pattern.finditer(text)):
        kind = _kind(text, found)
        start = value_below(text, found.end()) if kind else None
        written = BOUND if found["name"].isupper() else LINE
        span = literal_span(text, start, kind, written) if kind and start else None
        spans += [span] if span else []
    return spans


def value_below(text: str, at: int) -> int | None:
    """Where the value of a member `value` or `default` begins, which is among the next few."""
    for _ in range(MAX_BETWEEN):
        gap = _GAP.match(text, at)
        if gap is None:
            return None
        key = _VALUE_KEY.match(text, gap.end())
        if key:
            return key.end()
        other = _OTHER.match(text, gap.end())
        if other is None:
            return None
        at = other.end()
    return None


def _kind(text: str, found: re.Match[str]) -> str | None:
    name = found["name"]
    if text.startswith("ame", found.start()):
        is_of_azure = text.endswith("keyN", 0, found.start()) and name in ("key1", "key2")
        return TOKEN if is_of_azure else kind_of(name)
    return kind_of(name) if name == name.upper() else None
