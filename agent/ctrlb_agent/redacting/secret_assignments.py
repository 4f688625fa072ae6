"""Finds the values that are given to names of secrets, in settings files, source code, commands, URLs and markup.

A text may be the inside of a string of another text, several times over, so quotes may have backslashes before them
and a line may end with the two characters backslash and n.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctrlb_agent.redacting.secret_formats import replaced
from ctrlb_agent.redacting.secret_names import (
    BOUND,
    KEY,
    LINE,
    LOOSE,
    MAX_JUDGED_CHARS,
    QUOTED,
    TOKEN,
    UNQUOTED_REFERENCE,
    is_secret,
    kind_of,
)

MAX_VALUE_CHARS = 8192
_MAX_NAME_CHARS = 80
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

_NAMED = re.compile(
    r"(?:k(?:ey(?<=[\w.\- ]key)|en(?<=token))|c(?:ret(?<=secret)|redential)|p(?:ass(?:word|wd|phrase|code|key)?|wd)"
    r"|_(?:auth|pat)(?![a-z]))"
    r"[\w.\-]{0,40}(?P<close>\\{0,15}[\"'`]?\]?)"
    r"(?:(?P<typed>[ \t]{0,9}\??:[ \t]{0,9}[a-z_&'][\w\[\]<>.|?, ]{0,40}=[ \t]{0,9}(?=[rbuf]{0,2}\\{0,15}[\"'`]))"
    r"|(?P<op>[ \t]{0,20}(?:=>|[:?+]=|={1,3}|!={1,2}|::?)[ \t]{0,20}|>|[ \t](?:is|was)[ \t])"
    r"|(?P<listed>,[ \t]{0,9}(?=\\{0,15}[\"'])|[ \t]{1,9}value[ \t]{0,9}=[ \t]{0,9}(?=\\{0,15}[\"'])))"
)
"""In lower case: a word that may name a secret, the rest of the name, a closing quote, and what gives it a value.

It begins in the midst of the word, at letters that are rare, which makes it fast.
"""
_FLAG = re.compile(r"--(?<![\w-]--)([A-Za-z][\w-]{2,60})[ \t]{1,9}(?=[^\s-])")
_PAIR = re.compile(
    r"ame(?:\\{0,15}[\"'])?[ \t]{0,9}[:=][ \t]{0,9}(?:\\{0,15}[\"'])?([A-Za-z_][\w.-]{2,60})(?:\\{0,15}[\"'])?,?"
    r"(?:\s|\\{1,15}n){1,60}(?:\\{0,15}[\"'])?[vV]alue(?:\\{0,15}[\"'])?[ \t]{0,9}[:=][ \t]{0,9}"
)
"""An entry of a list of variables: `name: DB_PASSWORD` and then `value: `."""
_OPENING = re.compile(r"([rRbBuUfF]{0,2})(\\{0,15})(\"\"\"|'''|[\"'`])")
_VALUE = re.compile(r"[^\s\"'`\\,;&|<>(){}\[\]]{1,16384}")
_WIDE_VALUE = re.compile(r"[^\s\"'`\\]{1,16384}")
_LINE_ENDS = re.compile(r"[ \t]{0,200}(?:[ \t](?:#|//|--)[^\n]{0,500})?(?:\r?\n|\Z|\\{1,15}[nr])")
_LINE_BEGINS = re.compile(
    r"(?:[\w./-]{1,80}[:-][0-9]{1,6}[:-])?[ \t]{0,60}(?:[0-9]{1,6}[\t→:|][ \t]*)?[>+-]?[ \t]*"
    r"(?:(?:-|\*|#+|//|export|set|ENV|ARG|env)[ \t]+)?"
)
_MAX_LINE_BEGINS = 120
_NEW_LINE = re.compile(r"\n|\\{1,15}[nr]")
_SETTINGS_BEFORE = re.compile(r"[A-Za-z_]{2,30}=[^\s,;()]{1,60}[ \t]\Z")


_AFTER_WORDS = ".:!?*_"
_AFTER_STRINGS = ") ,;]}+.:%"


class Named(NamedTuple):
    """A name that is given a value in a text, and where."""

    name: str
    starts: int
    before: str
    """The character before the name, or nothing."""
    operator: str
    """What stands between it and a value without quotes; empty where there is none."""
    spaced: bool
    closed: bool
    """Whether the name was in quotes."""


def lowered(text: str) -> str:
    """The text in lower case, in which every character is where it was."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.replace("\u0130", "i").lower()


def may_name_a_secret(text: str, lower: str) -> bool:
    """Whether `without_named` could change the text; costs one pass."""
    return (
        any(kind_of(_named(text, found).name) for found in _NAMED.finditer(lower))
        or ("--" in text and any(kind_of(found[1]) for found in _FLAG.finditer(text)))
        or ("alue" in text and any(kind_of(found[1]) for found in _PAIR.finditer(text)))
    )


def without_named(text: str) -> str:
    """The text with the values of names of secrets replaced."""
    spans = []
    done = 0
    for found in _NAMED.finditer(lowered(text)):
        span = _span(text, found) if found.start() >= done else None
        if span:
            spans.append(span)
            done = span[1]
    for word, pattern in (("--", _FLAG), ("alue", _PAIR)):
        literals = pattern.finditer(text) if word in text else ()
        spans += [span for found in literals if (span := _literal_span(text, found.end(), found[1]))]
    return replaced(text, spans)


def _span(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    named = _named(text, found)
    kind = kind_of(named.name)
    if kind is None:
        return None
    opening = _OPENING.match(text, found.end())
    if opening:
        if found["listed"] and found["listed"][0] == "," and not _is_listed(named):
            return None
        if not named.closed and _is_closing(text, named.starts, opening):
            return None
        compared = named.operator in ("==", "===", "!=", "!==", "+=")
        if compared and kind == TOKEN:
            kind = KEY
        return _quoted_span(text, opening, kind, is_variable=_is_variable(named))
    if named.operator in ("", "==", "===", "!=", "!==", "+=", "::"):
        return None
    return _unquoted_span(text, found.end(), named, kind)


def _named(text: str, found: re.Match[str]) -> Named:
    stop = found.start("close")
    left = text[max(0, found.start() - _MAX_NAME_CHARS) : found.start()]
    starts = found.start() - (len(left) - len(left.rstrip(_NAME_CHARS)))
    before = text[starts - 1] if starts else ""
    if before == "\\":
        escape = 5 if text[starts] == "u" else 1
        starts = min(starts + escape, found.start())
        before = "\n"
    written = found["op"] or ""
    operator = written.strip().replace("?=", "=")
    return Named(_whole_name(text, starts, stop), starts, before, operator, written != operator, bool(found["close"]))


def _whole_name(text: str, starts: int, stop: int) -> str:
    """The name, with the word before it where that is needed to know it: `API key`, `AWS::IAM::AccessKey`."""
    if text[max(0, starts - 2) : starts] == "::":
        return text[starts - 2 : stop]
    if text[starts:stop].lower() not in ("key", "keys"):
        return text[starts:stop]
    before = text[max(0, starts - 16) : starts].split()
    return "_".join([*before[-1:], text[starts:stop]])


def _quoted_span(text: str, opening: re.Match[str], kind: str, *, is_variable: bool = False) -> tuple[int, int] | None:
    prefix, slashes, quote = opening.groups()
    end = _closing(text, opening.end(), slashes, quote)
    if end is None:
        return None
    value = text[opening.end() : end]
    if "f" in prefix.lower() and "{" in value:
        return None
    secret = is_secret(kind, value, QUOTED) or (is_variable and value.isalpha() and is_secret(kind, value, BOUND))
    return (opening.end(), end) if secret else None


def _is_closing(text: str, starts: int, opening: re.Match[str]) -> bool:
    """Whether the quote ends a string that the name is in, as a prompt: `input("Password: ")`."""
    if text[opening.end() : opening.end() + 1] not in _AFTER_STRINGS:
        return False
    before = text[max(0, starts - 300) : starts]
    line = before[before.rfind("\n") + 1 :]
    return len(re.findall(rf"(?<!\\){re.escape(opening[2] + opening[3])}", line)) % 2 == 1


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


def _unquoted_span(text: str, start: int, named: Named, kind: str) -> tuple[int, int] | None:
    if named.operator == ">":
        value = _VALUE.match(text, start)
        marked = named.before == "<" and value and text.startswith("</", value.end())
        return _span_if(value, kind, BOUND) if marked else None
    if UNQUOTED_REFERENCE.match(text, start):
        return None
    line_begins = _begins_line(text, named.starts)
    stop = start + MAX_JUDGED_CHARS
    wide = _WIDE_VALUE.match(text, start, stop)
    if wide and line_begins and _LINE_ENDS.match(text, wide.end()) and wide[0][-1] not in ",;{":
        if named.spaced and named.operator == "=" and wide[0].isalpha():
            return None
        return _span_if(wide, kind, BOUND if _is_setting(named) or _is_variable(named) else LINE)
    if wide and line_begins and _is_variable(named):
        return _span_if(wide, kind, BOUND)
    value = _VALUE.match(text, start, stop)
    if value is None:
        return None
    if _is_variable(named) or _is_bound(text, named, value.end()):
        return _span_if(value, kind, BOUND)
    if text[value.end() : value.end() + 1] in ("(", "[", "{", "<") and value.end() < len(text):
        return None
    span = _span_if(value, kind, LOOSE)
    return (start, start + len(text[start : span[1]].rstrip(_AFTER_WORDS))) if span else None


def _span_if(value: re.Match[str] | None, kind: str, written: str) -> tuple[int, int] | None:
    """Where the value is, of which the match may be the beginning only."""
    if value is None or not is_secret(kind, value[0].rstrip(_AFTER_WORDS) if written == LOOSE else value[0], written):
        return None
    whole = value.re.match(value.string, value.start())
    return whole.span() if whole else None


def _is_variable(named: Named) -> bool:
    """`NAME=`, as in the shell, where no code has spaces."""
    return named.operator == "=" and not named.spaced and named.name.upper() == named.name and len(named.name) > 2


def _is_setting(named: Named) -> bool:
    """A name that no variable could have: with dots, or with hyphens as a header."""
    dotted = "." in named.name and not named.name.startswith(("self.", "this."))
    return named.operator in ("=", ":") and ((dotted and not named.spaced) or "-" in named.name)


def _is_listed(named: Named) -> bool:
    """`"--token", "x"` or `"API_KEY", "x"`: an argument, or a variable, and then its value."""
    return named.closed and (named.name.startswith("--") or named.name.upper() == named.name)


def _is_bound(text: str, named: Named, end: int) -> bool:
    if named.operator == ":":
        return "-" in named.name and named.name[0] != "-" and (end == len(text) or text[end] in "\"'\\\n`")
    if named.operator != "=" or named.spaced:
        return False
    if named.name.startswith("-") or named.before in ("?", "="):
        return True
    if named.before in ('"', "'"):
        return text[end : end + 1] in ("&", named.before)
    if named.before == "&":
        return text[max(0, named.starts - 2) : named.starts] != "&&"
    if named.before == ";":
        return named.name[0].isupper() or text[max(0, named.starts - 5) : named.starts] == "&amp;"
    return bool(_SETTINGS_BEFORE.search(text[max(0, named.starts - 100) : named.starts]))


def _begins_line(text: str, at: int) -> bool:
    left = text[max(0, at - _MAX_LINE_BEGINS) : at]
    line = _NEW_LINE.split(left)[-1]
    return (len(line) < _MAX_LINE_BEGINS or at <= _MAX_LINE_BEGINS) and _LINE_BEGINS.fullmatch(line) is not None


def _literal_span(text: str, start: int, name: str) -> tuple[int, int] | None:
    """The value of a flag or of a pair's name, at `start`, which is a literal or a reference."""
    kind = kind_of(name)
    if kind is None:
        return None
    opening = _OPENING.match(text, start)
    if opening:
        return _quoted_span(text, opening, kind)
    value = _VALUE.match(text, start)
    if value is None or (value[0].isupper() and value[0].replace("_", "").isalpha()):
        return None
    return _span_if(value, kind, BOUND)
