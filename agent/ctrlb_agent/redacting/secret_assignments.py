"""Finds the values that are given to names of secrets, in settings files, source code, commands, URLs and markup.

A text may be the inside of a string of another text, several times over, so quotes may have backslashes before them
and a line may end with the two characters backslash and n.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctrlb_agent.redacting.secret_formats import replaced
from ctrlb_agent.redacting.secret_literals import AFTER_WORDS, OPENING, VALUE, literal_span, quoted_span, span_if
from ctrlb_agent.redacting.secret_names import (
    BOUND,
    KEY,
    LINE,
    LOOSE,
    MAX_JUDGED_CHARS,
    TOKEN,
    UNQUOTED_REFERENCE,
    kind_of,
)
from ctrlb_agent.redacting.secret_pairs import spans_of_marked, spans_of_pairs, spans_of_rows, value_below

_MAX_NAME_CHARS = 80
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

_NAMED = re.compile(
    r"(?:k(?:ey(?<=[\w.\- ]key)|en(?<=token))|c(?:ret(?<=secret)|redential)|p(?:ass(?:word|wd|phrase|code|key)?|wd?)"
    r"|_(?:auth|pat)(?![a-z]))"
    r"[\w.\-]{0,40}(?P<close>\\{0,15}[\"'`]?(?:\[?[0-9]{0,4}\])?)"
    r"(?:(?P<typed>(?:[ \t]{0,9}\??:[ \t]{0,9}[a-z_&'][\w\[\]<>.|?, ]{0,40}|[ \t]string[ \t]{0,4})"
    r"=[ \t]{0,9}(?=[rbuf]{0,2}\\{0,15}[\"'`]))"
    r"|(?P<op>[ \t]{0,20}(?:=>|[:?+]=|={1,3}|!={1,2}|::?)[ \t]{0,20}|>|[ \t](?:is|was)[ \t])"
    r"|(?P<listed>,[ \t]{0,9}(?=\\{0,15}[\"'])|[ \t]{1,9}value[ \t]{0,9}=[ \t]{0,9}(?=\\{0,15}[\"']))"
    r"|(?P<called>\([ \t]{0,4}(?=\\{0,15}[\"']))"
    r"|(?P<otherwise>[ \t]{0,4}\)?[ \t]{1,4}(?:\|\||\?\?|or|\?:)[ \t]{1,9}(?=\\{0,15}[\"'`]))"
    r"|(?P<apart>[ \t]{1,9}(?=@?\\{0,15}[\"']))|(?P<nested>[ \t]{1,9}(?=\{))"
    r"|(?P<column>[ \t]{0,60}[|│][ \t]{0,9}`?|[ \t]{2,60}|\t|\\{1,15}t))"
)
"""In lower case: a word that may name a secret, the rest of the name, a closing quote, and what gives it a value.

It begins in the midst of the word, at letters that are rare, which makes it fast.
"""
_FLAG = re.compile(r"--(?<![\w-]--)([A-Za-z][\w-]{2,60})[ \t]{1,9}(?=[^\s-])")
_WIDE_VALUE = re.compile(r"[^\s\"'`\\]{1,16384}")
_LINE_ENDS = re.compile(r"[ \t]{0,200}(?:[ \t](?:#|//|--)[^\n]{0,500})?(?:\r?\n|\Z|\\{1,15}[nr])")
_LINE_BEGINS = re.compile(
    r"(?:[\w./-]{1,80}[:-][0-9]{1,6}[:-])?[ \t]{0,60}(?:[0-9]{1,6}[\t→:|][ \t]*)?[>+-]?[ \t]*"
    r"(?:(?:-|\*|#+|//|export|set|ENV|ARG|env)[ \t]+)?"
)
_MAX_LINE_BEGINS = 120
_ROW_BEGINS = re.compile(_LINE_BEGINS.pattern + r"(?:[|│][ \t]*`?)?")
_ROW_ENDS = ("password", "passwd", "passphrase", "pwd", "pass", "key", "token", "secret", "credential")
_CELL = re.compile(r"[^\s\"'`\\|│]{1,16384}")
_CELL_ENDS = re.compile(r"`?[ \t]{0,60}[|│]")
_CONSTANT = re.compile(r"[A-Z]{2,40}_[A-Z_]{2,40}[\"'\\]")
"""The next name in a list of names."""
_SOUGHT = re.compile(r"[^\n\"']{0,200}[\"'][ \t]{1,4}(?:not )?in[ \t]")
"""The rest of a string that is looked for, as in `token or "a" in token`."""
_SHORT_HASH = re.compile(r"[0-9a-f]{7,12}")
_APART_BEGINS = re.compile(_LINE_BEGINS.pattern + r"(?:#[ \t]{0,4}define[ \t]{1,9}|[^\n]{0,80}[{;][ \t]{0,4}:?|:)?")
_SPOKEN_OF = ("token", "tokens", "secret", "secrets", "key", "keys", "credential", "credentials", "pass")
_NEW_LINE = re.compile(r"\n|\\{1,15}[nr]")
_SETTER = re.compile(r"(?:[sS]et|[wW]ith)_?[A-Z\w]|\.(?:password|token|secret|apiKey|api_key|secretKey|secret_key)\Z")
"""`setPassword("…")`, and `.password("…")` of a chain of calls."""
_SETS = re.compile(r"(?:[sS]et(?:Item|Header|RequestHeader|Property)?|[aA]ddHeader|[hH]eader)\(\\{0,15}[\"']\Z")
_FOLDED = re.compile(rf"[|>][+-]?[ \t]{{0,9}}(?:\r?\n|\\{{1,15}}n)(?:{_LINE_BEGINS.pattern})")
_CONTEXT = re.compile(r"[\w.-]{0,80}-[0-9]{1,6}-(?=[A-Za-z_])")
"""What grep puts before a line beside one that it found, as far as a name's letters go."""
_SETTINGS_BEFORE = re.compile(r"[A-Za-z_]{2,30}=[^\s,;()]{1,60}[ \t]\Z")


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
        or ("alue" in text and bool(spans_of_pairs(text)))
        or bool(spans_of_marked(text) or spans_of_rows(text))
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
    for flag in _FLAG.finditer(text) if "--" in text else ():
        kind = kind_of(flag[1])
        span = literal_span(text, flag.end(), kind) if kind else None
        spans += [span] if span else []
    if "alue" in text:
        spans += spans_of_pairs(text)
    spans += [*spans_of_marked(text), *spans_of_rows(text)]
    return replaced(text, spans)


def _span(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    named = _named(text, found)
    kind = kind_of(named.name)
    if kind is None:
        return None
    if found["column"]:
        return _column_span(text, found, named, kind)
    opening = OPENING.match(text, found.end())
    if opening:
        if found["apart"] and not _is_apart(text, named):
            return None
        if found["listed"] and found["listed"][0] == "," and not _is_listed(text, named):
            return None
        if found["called"] and not _SETTER.match(named.name.rpartition(".")[2] if named.name[0] != "." else named.name):
            return None
        if not named.closed and _is_closing(text, named.starts, opening):
            return None
        compared = named.operator in ("==", "===", "!=", "!==", "+=")
        if found["otherwise"] and _SOUGHT.match(text, opening.end()):
            return None
        if compared and kind == TOKEN:
            kind = KEY
        if found["listed"] and _CONSTANT.match(text, opening.end()):
            return None
        return quoted_span(text, opening, kind, is_variable=_is_variable(named))
    folded = _FOLDED.match(text, found.end()) if named.operator == ":" else None
    if folded:
        return literal_span(text, folded.end(), kind, LINE)
    if named.operator in (":", "=") or (found["nested"] and named.closed):
        below = value_below(text, found.end())
        if below:
            return literal_span(text, below, kind, LINE)
    if named.operator in ("", "==", "===", "!=", "!==", "+=", "::"):
        return None
    return _unquoted_span(text, found.end(), named, kind)


def _named(text: str, found: re.Match[str]) -> Named:
    stop = found.start("close")
    left = text[max(0, found.start() - _MAX_NAME_CHARS) : found.start()]
    starts = found.start() - (len(left) - len(left.rstrip(_NAME_CHARS)))
    context = _CONTEXT.match(text, starts, found.start())
    starts = context.end() if context else starts
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


def _is_closing(text: str, starts: int, opening: re.Match[str]) -> bool:
    """Whether the quote ends a string that the name is in, as a prompt: `input("Password: ")`."""
    if text[opening.end() : opening.end() + 1] not in _AFTER_STRINGS:
        return False
    before = text[max(0, starts - 300) : starts]
    line = before[before.rfind("\n") + 1 :]
    return len(re.findall(rf"(?<!\\){re.escape(opening[2] + opening[3])}", line)) % 2 == 1


def _unquoted_span(text: str, start: int, named: Named, kind: str) -> tuple[int, int] | None:
    if named.operator == ">":
        value = VALUE.match(text, start)
        marked = named.before == "<" and value and text.startswith("</", value.end())
        return span_if(value, kind, BOUND) if marked else None
    if UNQUOTED_REFERENCE.match(text, start):
        return None
    line_begins = _begins_line(text, named.starts)
    stop = start + MAX_JUDGED_CHARS
    wide = _WIDE_VALUE.match(text, start, stop)
    if wide and line_begins and _LINE_ENDS.match(text, wide.end()) and wide[0][-1] not in ",;{":
        if named.spaced and named.operator == "=" and wide[0].isalpha():
            return None
        return span_if(wide, kind, BOUND if _is_setting(named) or _is_variable(named) else LINE)
    if wide and line_begins and _is_variable(named):
        return span_if(wide, kind, BOUND)
    value = VALUE.match(text, start, stop)
    if value is None:
        return None
    if _is_variable(named) or _is_bound(text, named, value.end()):
        return span_if(value, kind, BOUND)
    if text[value.end() : value.end() + 1] in ("(", "[", "{", "<") and value.end() < len(text):
        return None
    span = span_if(value, kind, LOOSE)
    return (start, start + len(text[start : span[1]].rstrip(AFTER_WORDS))) if span else None


def _is_variable(named: Named) -> bool:
    """`NAME=`, as in the shell, where no code has spaces."""
    return named.operator == "=" and not named.spaced and named.name.upper() == named.name and len(named.name) > 2


def _is_setting(named: Named) -> bool:
    """A name that no variable could have: with dots, or with hyphens as a header."""
    dotted = "." in named.name and not named.name.startswith(("self.", "this."))
    return named.operator in ("=", ":") and ((dotted and not named.spaced) or "-" in named.name)


def _is_listed(text: str, named: Named) -> bool:
    """`"--token", "x"` or `"API_KEY", "x"`: an argument, or a variable, and then its value; or `.set("token", "x")`."""
    if not named.closed:
        return False
    is_of_call = bool(_SETS.search(text[max(0, named.starts - 40) : named.starts]))
    return named.name.startswith("--") or named.name.upper() == named.name or is_of_call


def _column_span(text: str, found: re.Match[str], named: Named, kind: str) -> tuple[int, int] | None:
    """The value in a table, alone in the column beside the name's, which is the first."""
    left = _line_before(text, named.starts)
    if left is None or not _ROW_BEGINS.fullmatch(left) or not named.name.lower().rstrip("s").endswith(_ROW_ENDS):
        return None
    value = _CELL.match(text, found.end(), found.end() + MAX_JUDGED_CHARS)
    ended = _CELL_ENDS if found["column"].strip(" \t`") in ("|", "│") else _LINE_ENDS
    if value is None or not ended.match(text, value.end()) or _SHORT_HASH.fullmatch(value[0]):
        return None
    return span_if(value, kind, LOOSE)


def _is_apart(text: str, named: Named) -> bool:
    """`#define API_KEY "…"`, `password '…'`: what only follows a name at a line's beginning."""
    left = _line_before(text, named.starts)
    if left is None or not _APART_BEGINS.fullmatch(left) or named.closed:
        return False
    return "define" in left or named.before == ":" or named.name.lower() not in _SPOKEN_OF


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
    line = _line_before(text, at)
    return line is not None and _LINE_BEGINS.fullmatch(line) is not None


def _line_before(text: str, at: int) -> str | None:
    """What stands in the line before the place; None when that is long."""
    line = _NEW_LINE.split(text[max(0, at - _MAX_LINE_BEGINS) : at])[-1]
    return line if len(line) < _MAX_LINE_BEGINS or at <= _MAX_LINE_BEGINS else None
