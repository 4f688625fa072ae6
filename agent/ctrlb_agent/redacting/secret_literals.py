"""Where a value ends that begins at a given place, in quotes or without, and whether it is a secret."""

from __future__ import annotations

import re

from ctrlb_agent.redacting.secret_names import BOUND, LOOSE, QUOTED, is_secret

MAX_VALUE_CHARS = 8192
AFTER_WORDS = ".:!?*_"
OPENING = re.compile(
    r"(?:(?:String::from|SecretString::new|Some|Buffer\.from)\()?(@?\$?|[rRbBuUfFL]{1,2})(\\{0,15})(\"\"\"|'''|[\"'`])"
)
"""What a string may have around it and before it in some language, backslashes, and the quote that begins it."""
VALUE = re.compile(r"[^\s\"'`\\,;&|<>(){}\[\]]{1,16384}")


def quoted_span(text: str, opening: re.Match[str], kind: str, *, is_variable: bool = False) -> tuple[int, int] | None:
    prefix, slashes, quote = opening.groups()
    end = _closing(text, opening.end(), slashes, quote)
    if end is None:
        return None
    value = text[opening.end() : end]
    if ("f" in prefix.lower() or "$" in prefix) and "{" in value:
        return None
    secret = is_secret(kind, value, QUOTED) or (is_variable and value.isalpha() and is_secret(kind, value, BOUND))
    return (opening.end(), end) if secret else None


def _closing(text: str, start: int, slashes: str, quote: str) -> int | None:
    """Where the string ends that began before `start`. One that the text's end cuts off ends there."""
    limit = min(len(text), start + MAX_VALUE_CHARS)
    at = start
    while True:
        at = text.find(quote, at, limit)
        if at < 0:
            cut = limit == len(text) and "\n" not in text[start:limit]
            return limit if cut and limit > start else None
        run = _backslashes_before(text, at, start)
        if (run % 2 == 0) if not slashes else (run == len(slashes)):
            end = at - len(slashes)
            return end if len(quote) > 1 or "\n" not in text[start:end] else None
        at += len(quote)


def _backslashes_before(text: str, at: int, start: int) -> int:
    first = at
    while first > start and text[first - 1] == "\\":
        first -= 1
    return at - first


def span_if(value: re.Match[str] | None, kind: str, written: str) -> tuple[int, int] | None:
    """Where the value is, of which the match may be the beginning only."""
    if value is None or not is_secret(kind, value[0].rstrip(AFTER_WORDS) if written == LOOSE else value[0], written):
        return None
    whole = value.re.match(value.string, value.start())
    return whole.span() if whole else None


def literal_span(text: str, start: int, kind: str, written: str = BOUND) -> tuple[int, int] | None:
    """The value of a flag or of a pair's name, at `start`, which is a literal or a reference."""
    opening = OPENING.match(text, start)
    if opening:
        return quoted_span(text, opening, kind)
    value = VALUE.match(text, start)
    if value is None or (value[0].isupper() and value[0].replace("_", "").isalpha()):
        return None
    return span_if(value, kind, written)
