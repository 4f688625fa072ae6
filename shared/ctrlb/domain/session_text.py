"""The text of a session row: what is searched, how commands compare, and the snippet around a hit."""

import json
import re
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

from ctrlb.domain.rows import SessionRow
from ctrlb.domain.term_places import find_term
from ctrlb.domain.words import Term, Words, plain, words_of_any

MAX_COUNTED = 10_000
"""Hits are counted exactly up to here, and pages reach no further."""
SNIPPET_CHARS = 300

_WORD = re.compile(r"\S+")
_PATH = re.compile(r'\s*[\[,]\s*"(?:[^"\\]|\\.)*"')

Json: TypeAlias = "str | bool | _Object | list[Json] | None"


def searchable_text(command: str, body: str) -> str:
    """The command and the body as they are searched, in the case they were written in.

    A JSON body is its decoded keys and values, in order. Terminal escapes are gone, controls are spaces,
    and the text is in NFC.
    """
    return plain(_together(command, body))


def searchable_words(command: str, body: str) -> Words:
    """The words of the `searchable_text`."""
    return words_of_any(_together(command, body))


def fold(command: str) -> str:
    """The command as find_command compares it: every run of white space is one space, none at the ends."""
    return " ".join(command.split())


def snippet(text: str, term: Term, size: int = SNIPPET_CHARS) -> str:
    """At most `size` characters of a `searchable_text`, with the term's first place in their middle.

    A phrase that is longer than the snippet is shown from its beginning; a text without it, from its own.
    """
    start, end = find_term(text, term) or (0, 0)
    return _around(text, start, end, size)


def command_snippet(command: str, folded: str, size: int) -> str:
    """At most `size` characters of a command, as it was written, around the first place of a folded part of it."""
    if len(command) <= size:
        return command
    whole = fold(command)
    at = max(0, whole.find(folded))
    words_before = whole.count(" ", 0, at)
    word = next(islice(_WORD.finditer(command), words_before, None))
    start = word.start() + at - (whole.rfind(" ", 0, at) + 1)
    return _around(command, start, start + len(folded), size)


def cut_texts(row: SessionRow, chars: int) -> SessionRow:
    """The row with the first `chars` characters of each of its texts."""
    return replace(
        row, command=row.command[:chars], paths=row.paths[:chars], extra=row.extra[:chars], body=row.body[:chars]
    )


def whole_paths(text: str) -> str:
    """A JSON array of strings, of which some of the end may be cut off, with those of them that are whole."""
    if not text or _is_json(text):
        return text
    end = 0
    while (found := _PATH.match(text, end)) and found.end() < len(text):
        end = found.end()
    return f"{text[:end]}]" if end else "[]"


def _together(command: str, body: str) -> str:
    text = _decoded(body)
    return f"{command}\n{text}" if command else text


def _around(text: str, start: int, end: int, size: int) -> str:
    start -= max(0, size - (end - start)) // 2
    start = max(0, min(start, len(text) - size))
    return text[start : start + size]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):  # brackets nested too deep
        return False
    return True


class _Object(tuple[tuple[str, "Json"], ...]):
    """A JSON object as its pairs, so that a key that comes twice is kept twice."""

    __slots__ = ()


_TEXTS = json.JSONDecoder(  # numbers stay as they were written
    object_pairs_hook=_Object, parse_int=str, parse_float=str, parse_constant=str
)


def _decoded(body: str) -> str:
    """The keys and values of a JSON body, a line each; a body that is not JSON as it is."""
    if body[:1] not in ("{", "[", '"'):
        return body
    try:
        value = _TEXTS.decode(body)
    except (ValueError, RecursionError):  # brackets nested too deep
        return body
    return "\n".join(_strings(value))


def _strings(value: Any) -> list[str]:
    """All keys and values of a decoded JSON text, in the order in which they stand there."""
    strings: list[str] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, _Object):
            waiting.extend(part for pair in reversed(value) for part in reversed(pair))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        else:
            strings.append(json.dumps(value))  # true, false, null
    return strings
