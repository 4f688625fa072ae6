"""TOML read statement by statement, so that a file can be changed without touching what somebody else wrote in it.

Python 3.9 and 3.10 have no TOML reader, and no reader keeps places. This one knows what Codex knows: TOML 1.0, and
of 1.1 the inline tables on several lines. It reads values but does not judge every rule about them; Codex does.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

MAX_DEPTH = 64
BOM = "\ufeff"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPACES = re.compile(r"[ \t]*")
_TO_LINE_END = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_BETWEEN_VALUES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"\d{4}-\d\d-\d\d \d\d:[\d:.]+(?:[Zz]|[+-]\d\d:\d\d)?|[A-Za-z0-9_+.:-]+")
_WHOLE = re.compile(r"[+-]?(?:\d[\d_]*)")
_PREFIXED = re.compile(r"0[xob][0-9A-Fa-f_]+")
_FRACTION = re.compile(r"[+-]?(?:inf|nan|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d[\d_]*)?)")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[ \t]*\r?\n[ \t\r\n]*|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}
_STRINGS = (
    ('"""', re.compile(r'"""(?:\r?\n)?((?:[^"\\]|\\.|"(?!""))*"{0,2}?)"""(?!")', re.DOTALL)),
    ("'''", re.compile(r"'''(?:\r?\n)?((?:[^']|'(?!''))*'{0,2}?)'''(?!')", re.DOTALL)),
    ('"', re.compile(r'"((?:[^"\\\r\n]|\\[^\r\n])*)"')),
    ("'", re.compile(r"'([^'\r\n]*)'")),
)


class BrokenToml(Exception):
    """The text is no TOML. `line` counts from 1; `reason` is for a person."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class Statement(NamedTuple):
    """One statement with its whole lines: the texts of all statements, joined, are the file."""

    kind: str  # "table", "array" (of tables), "key", "comment" or "blank"
    path: tuple[str, ...]  # of a header or key as written: a key's is relative to its table
    value: Any  # of a key
    text: str
    line: int


class Moment(NamedTuple):
    """A date or time, as written. It is equal to no string."""

    text: str


def statements_of(text: str) -> list[Statement]:
    """All statements in order. Raises BrokenToml."""
    found = []
    at = line = 0
    while at < len(text):
        statement = _Reader(text, line + 1).statement(at)
        found.append(statement)
        at += len(statement.text)
        line += statement.text.count("\n")
    return found


def quoted(text: str) -> str:
    """The text as a TOML string in double quotes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


class _Reader:
    """Reads one statement, which begins at `line`."""

    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.line = line
        self.start = 0

    def statement(self, start: int) -> Statement:
        text, line = self.text, self.line
        self.start = start
        at = self._skip(_SPACES, start + 1 if start == 0 and text.startswith(BOM) else start)
        path: tuple[str, ...] = ()
        value = None
        if text.startswith("[", at):
            closing = "]]" if text.startswith("[[", at) else "]"
            path, at = self._path(at + len(closing))
            kind = "array" if closing == "]]" else "table"
            at = self._after(closing, at)
        elif text[at : at + 1] in ("", "#", "\n") or text.startswith("\r\n", at):
            kind = "comment" if text[at : at + 1] == "#" else "blank"
        else:
            kind = "key"
            path, at = self._path(at)
            at = self._skip(_SPACES, self._after("=", at))
            value, at = self._value(at, 0)
        end = _TO_LINE_END.match(text, at)
        if end is None:
            raise self._broken(at, "something stands here that should be on a line of its own")
        return Statement(kind, path, value, text[start : end.end()], line)

    def _broken(self, at: int, reason: str) -> BrokenToml:
        return BrokenToml(self.line + self.text.count("\n", self.start, at), reason)

    def _skip(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self.text, at)
        return match.end() if match else at

    def _after(self, sign: str, at: int) -> int:
        if not self.text.startswith(sign, at):
            raise self._broken(at, f"a {sign} is missing")
        return at + len(sign)

    def _path(self, at: int) -> tuple[tuple[str, ...], int]:
        parts = []
        while True:
            at = self._skip(_SPACES, at)
            if self.text[at : at + 1] in ('"', "'"):
                part, at = self._string(at, several_lines=False)
            else:
                match = _BARE_KEY.match(self.text, at)
                if match is None:
                    raise self._broken(at, "a name is missing")
                part, at = match.group(), match.end()
            parts.append(part)
            at = self._skip(_SPACES, at)
            if not self.text.startswith(".", at):
                return tuple(parts), at
            at += 1

    def _string(self, at: int, *, several_lines: bool) -> tuple[str, int]:
        for quote, pattern in _STRINGS if several_lines else _STRINGS[2:]:
            if self.text.startswith(quote, at):
                match = pattern.match(self.text, at)
                if match is None:
                    raise self._broken(at, f"a string that begins with {quote} does not end")
                body = match.group(1)
                return (self._unescaped(body, at) if quote[0] == '"' else body), match.end()
        raise self._broken(at, "a string is missing")

    def _unescaped(self, body: str, at: int) -> str:
        def character(match: re.Match[str]) -> str:
            code = match.group(1)
            if code[0] in "uUx" and len(code) > 1:
                number = int(code[1:], 16)
                if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
                    raise self._broken(at, f"\\{code} is no character")
                return chr(number)
            if code.strip() == "":
                return ""  # a line's end after a backslash, and the space that follows
            if code not in _ESCAPED:
                raise self._broken(at, f"\\{code} means nothing in a string")
            return _ESCAPED[code]

        return _ESCAPE.sub(character, body) if "\\" in body else body

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise self._broken(at, f"values stand in each other more than {MAX_DEPTH} deep")
        first = self.text[at : at + 1]
        if first in ('"', "'"):
            return self._string(at, several_lines=True)
        if first == "[":
            return self._array(at + 1, depth)
        if first == "{":
            return self._inline_table(at + 1, depth)
        match = _SCALAR.match(self.text, at)
        value = None if match is None else _scalar_or_none(match.group())
        if match is None or value is None:
            raise self._broken(at, "this is no value")
        return value, match.end()

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            at = self._skip(_BETWEEN_VALUES, at)
            if self.text.startswith("]", at):
                return items, at + 1
            item, at = self._value(at, depth + 1)
            items.append(item)
            at = self._skip(_BETWEEN_VALUES, at)
            if not self.text.startswith("]", at):
                at = self._after(",", at)

    def _inline_table(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        table: dict[str, Any] = {}
        while True:
            at = self._skip(_BETWEEN_VALUES, at)
            if self.text.startswith("}", at):
                return table, at + 1
            path, at = self._path(at)
            key_at = at
            at = self._skip(_SPACES, self._after("=", at))
            value, at = self._value(at, depth + 1)
            within = table
            for part in path[:-1]:
                within = within.setdefault(part, {})
                if not isinstance(within, dict):
                    raise self._broken(key_at, f"{part} is a value already")
            if path[-1] in within:
                raise self._broken(key_at, f"{path[-1]} is there twice")
            within[path[-1]] = value
            at = self._skip(_BETWEEN_VALUES, at)
            if not self.text.startswith("}", at):
                at = self._after(",", at)


def _scalar_or_none(text: str) -> object | None:
    try:
        return _scalar(text)
    except ValueError:  # no digits of that base, or more of them than Python reads
        return None


def _scalar(text: str) -> object | None:
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    if _PREFIXED.fullmatch(text):
        return int(text.replace("_", ""), 0)
    if _FRACTION.fullmatch(text):
        return float(text.replace("_", ""))
    return Moment(text) if _MOMENT.match(text) else None
