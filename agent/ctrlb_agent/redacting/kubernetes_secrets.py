"""Finds what a Secret of Kubernetes holds: all values under `data` and `stringData`, whatever their names say.

The manifest may be YAML, or JSON that is not parsed; be numbered, quoted, in a diff or found by grep; have its lines
divided by the two characters backslash and n; and begin or end in the midst. One whose `kind` is not there is known by
what follows `apiVersion: v1`: a `data` whose values are all base64.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from ctrlb_agent.redacting.secret_formats import REDACTED
from ctrlb_agent.redacting.secret_names import UNQUOTED_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MANIFEST_CHARS = 65536
"""So far before and behind its kind, a manifest is looked at; and to the end of the line there."""

_SIGN = re.compile(
    r"kind(?P<json>\\{0,15}\")?[ \t]{0,4}:[ \t]{0,4}\\{0,15}[\"']?Secret(?![\w-])|apiVersion: v1(?=[\s\\])"
)
_NUMBERED = re.compile(
    r"(?:[\w./-]{1,80}[:-](?=[0-9]{1,6}[:-]))?(?:[0-9]{1,6}[:-])?(?:[ \t]{0,8}[0-9]{1,6}(?:[→|]|\t|\\{1,15}t))?"
)
"""What tools put before a line."""
_NEW_LINE = re.compile(r"\r?\n")
_ESCAPED_NEW_LINE = re.compile(r"(?:\\{1,15}r)?\\{1,15}n|\r?\n")
_ENTRY = re.compile(r"(?P<quote>[\"']?)(?P<key>[\w./-]{1,253})(?P=quote):(?:[ \t]{1,40}|(?=\\)|\Z)")
_VALUE = re.compile(r"\\{0,15}\"([^\"\\]+)|\\{0,15}'([^'\\]+)|([^\"'\\\s][^\"\\\r]*)")
_NO_VALUE = re.compile(r"[|>][+-]?[0-9]?\Z|\{\}\Z|null\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
_JSON_DATA = re.compile(r"\"(?:data|stringData)\\{0,15}\"[ \t]{0,4}:[ \t]{0,4}\{")
_JSON_MEMBER = re.compile(
    r"(?:\s|\\{1,15}[nrt]|,){0,60}\\{0,15}\"[\w.-]{1,253}\\{0,15}\"[ \t]{0,4}:[ \t]{0,4}\\{0,15}\""
    r"([^\"\\]*)\\{0,15}\""
)


def may_have_manifest(text: str) -> bool:
    """Whether `spans_of_manifests` could find anything."""
    return ("Secret" in text and "kind" in text) or "apiVersion: v1" in text


def spans_of_manifests(text: str) -> list[tuple[int, int]]:
    """Where the values are."""
    spans: list[tuple[int, int]] = []
    done = 0
    found = _SIGN.search(text)
    while found:
        if found["json"]:
            start, done = max(done, found.start() - MAX_MANIFEST_CHARS), found.end() + MAX_MANIFEST_CHARS
            spans += _spans_of_json(text, start, min(done, len(text)))
        else:
            manifest = _Manifest(text, done, found)
            spans += manifest.spans()
            done = max(manifest.end, found.end())
        found = _SIGN.search(text, done)
    return spans


def _spans_of_json(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    spans = []
    for data in _JSON_DATA.finditer(text, start, stop):
        member = _JSON_MEMBER.match(text, data.end(), stop)
        while member:
            spans.append(member.span(1))
            member = _JSON_MEMBER.match(text, member.end(), stop)
    return [span for span in spans if _is_value(text[span[0] : span[1]])]


class _Line:
    """A line without what tools put before it, and where it stands in the text."""

    def __init__(self, at: int, indent: int, is_item: bool, content: str) -> None:
        self.at = at
        self.indent = indent
        """So many columns before the content; the hyphen of a list's item is two of them."""
        self.is_item = is_item
        self.content = content


class _Manifest:
    """The lines of one manifest, of which the sign that was found is one."""

    def __init__(self, text: str, begin: int, sign: re.Match[str]) -> None:
        self._text = text
        self._is_escaped = "\n" not in text[max(0, sign.start() - 200) : sign.end() + 200]
        stop = min(len(text), sign.end() + MAX_MANIFEST_CHARS)
        start = max(begin, sign.start() - MAX_MANIFEST_CHARS)
        before = list(self._line_spans(start, sign.start()))
        head = before.pop()[0] if before else sign.start()
        lead = text[head : sign.start()]
        if self._is_escaped or head == begin:
            head += max(lead.rfind(quote) + 1 for quote in "\"'`")
            lead = text[head : sign.start()]
        self._learn(lead)
        first = self._line(head, head + len(lead) + 1)
        self._column = first.indent
        self._lines: list[_Line] = []
        self._is_cut = start == 0
        if not first.is_item:
            self._add_before(before)
        self.end = self._add_behind(head, stop)

    def _line_spans(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        at = start
        for end in (_ESCAPED_NEW_LINE if self._is_escaped else _NEW_LINE).finditer(self._text, start, stop):
            yield at, end.start()
            at = end.end()
        yield at, stop

    def _learn(self, lead: str) -> None:
        """What stands before each line, from what stands before one."""
        numbered = _NUMBERED.match(lead)
        rest = lead[numbered.end() :] if numbered else lead
        self._literal = "" if not rest.strip(" \t-+>#") else lead.rstrip(" \t-")
        rest = lead[len(self._literal) :] if self._literal else rest
        sign = rest[:1]
        is_of_diff = sign in ("+", " ") or (sign == "-" and rest[1:2] != " ")
        self._signs = "+-" if is_of_diff else sign.strip(" -\t")

    def _line(self, start: int, stop: int) -> _Line:
        text = self._text
        if self._literal and text.startswith(self._literal, start):
            start += len(self._literal)
        elif not self._literal:
            numbered = _NUMBERED.match(text, start, stop)
            start = numbered.end() if numbered else start
        begin = start
        if start < stop and self._signs and text[start] in self._signs:
            start += 1
        while start < stop and text[start] in " \t":
            start += 1
        is_item = text.startswith("- ", start, stop)
        start += 2 if is_item else 0
        return _Line(start, start - begin, is_item, text[start:stop].rstrip())

    def _add_before(self, spans: list[tuple[int, int]]) -> None:
        for start, stop in reversed(spans):
            line = self._line(start, stop)
            if self._is_bound(line):
                self._is_cut = False
                break
            self._lines.append(line)
            if line.is_item and line.indent == self._column:
                self._is_cut = False
                break
        self._lines.reverse()

    def _add_behind(self, head: int, stop: int) -> int:
        end = stop
        for start, end in self._line_spans(head, stop):
            if end == stop:
                end = self._line_end(stop)
            line = self._line(start, end)
            if start > head and (self._is_bound(line) or self._begins_next(line)):
                return start
            self._lines.append(line)
        return end

    def _line_end(self, at: int) -> int:
        """Where the line ends that goes on at this place: half a value is not to stay."""
        end = (_ESCAPED_NEW_LINE if self._is_escaped else _NEW_LINE).search(self._text, at)
        return end.start() if end else len(self._text)

    def _is_bound(self, line: _Line) -> bool:
        return bool(line.content) and (line.indent < self._column or line.content.startswith("---"))

    def _begins_next(self, line: _Line) -> bool:
        return line.is_item and line.indent == self._column

    def spans(self) -> list[tuple[int, int]]:
        """The values, if it is a Secret, or may be one."""
        kind, block, entries = "", "?", None
        spans: list[tuple[int, int]] = []
        is_first = True
        for line in self._lines:
            if not line.content or line.content.startswith("#"):
                continue
            entry = _ENTRY.match(line.content)
            if line.indent == self._column:
                block, entries = (entry["key"] if entry else ""), None
                kind = line.content[5:].strip(" \"'\\")[:7] if block == "kind" and not kind else kind
                is_first = False
            elif block in ("data", "stringData") or (is_first and self._is_cut):
                entries = line.indent if entries is None else entries
                at = entry.end() if entry and line.indent <= entries else 0
                value = _VALUE.match(line.content, at)
                first, last = value.span(value.lastindex or 0) if value else (0, 0)
                content = line.content[first:last].rstrip()
                if _is_value(content):
                    spans.append((line.at + first, line.at + first + len(content)))
        if kind.startswith("Secret"):
            return spans
        return spans if not kind and spans and not is_first and self._are_base64(spans) else []

    def _are_base64(self, spans: list[tuple[int, int]]) -> bool:
        values = [self._text[start:end] for start, end in spans]
        return all(_is_base64(value) for value in values) and any(re.search("[0-9=]", value) for value in values)


def _is_value(value: str) -> bool:
    return bool(value) and REDACTED not in value and not _NO_VALUE.match(value) and not UNQUOTED_REFERENCE.match(value)


def _is_base64(value: str) -> bool:
    if len(value) % 4 or len(value) < 8 or not _BASE64.match(value):
        return False
    try:
        return bool(base64.b64decode(value, validate=True))
    except ValueError:
        return False
