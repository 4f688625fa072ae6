"""A change of config.toml as a person may see it: a diff that hides the values of headers, and other secrets."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from ctrlb_agent.redacting.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN = "[hidden]"

_NAME = r"(?:http_headers|headers|env)"
_TABLE = re.compile(r"[ \t]*\[{1,2}([^\]\n]*)\]")
_SECRETIVE_TABLE = re.compile(rf"(?:^|[.\s\"'])['\"]?{_NAME}['\"]?(?:[.\s]|$)")
_KEY = re.compile(rf"(?:^|[{{,.\s\"']){_NAME}['\"]?[ \t]*(?:\.[^=\n]*)?=")
_VALUE = re.compile(r"(=[ \t]*)(\"(?:[^\"\\\n]|\\.)*(?:\"|$)|'[^'\n]*(?:'|$))")
_SCHEME = re.compile(r"(?i)\b(bearer|basic|token)([ \t]+)[^\s\"']{6,}")


def diff(before: str, after: str, name: str) -> str:
    """What changes, as `diff -u` writes it, without the secrets of either text."""
    hidden = {**_hidden(before), **_hidden(after)}
    parts = []
    for line in difflib.unified_diff(_lines(before), _lines(after), name, f"{name} (new)"):
        sign, rest = line[:1], line[1:]
        line = sign + hidden.get(rest, rest)
        parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def line_of(text: str, number: int) -> str:
    """A line of the text, from 1, without blanks around it and without secrets; empty when there is none."""
    lines = _lines(text)
    if not 0 < number <= len(lines):
        return ""
    line = lines[number - 1]
    return _hidden(text).get(line, line).strip()


def _hidden(text: str) -> dict[str, str]:
    """The lines that have something to hide, and each as it is to be shown."""
    return {line: shown for line, shown in _shown(_lines(text)) if line != shown}


def _shown(lines: list[str]) -> Iterator[tuple[str, str]]:
    in_table = in_value = False
    for line in lines:
        table = _TABLE.match(line)
        if table and not in_value:
            in_table = bool(_SECRETIVE_TABLE.search(table[1]))
        key = _KEY.search(line)
        if in_value or (in_table and not table):
            shown = _without_values(line)
        elif key:
            shown = line[: key.end() - 1] + _VALUE.sub(rf'\1"{HIDDEN}"', line[key.end() - 1 :])
        else:
            shown = line
        if in_value:
            in_value = "}" not in line
        elif key:
            in_value = "{" in line[key.end() :] and "}" not in line[key.end() :]
        yield line, redact(_SCHEME.sub(rf"\1\2{HIDDEN}", shown))


def _without_values(line: str) -> str:
    """A line of a table of headers. One that is no key and value, as a line of a long string, is hidden whole."""
    bare = line.strip()
    if not bare or bare[0] == "#" or bare in ("{", "}", "},"):
        return line
    shown = _VALUE.sub(rf'\1"{HIDDEN}"', line)
    return shown if shown != line else HIDDEN + line[len(line.rstrip("\r\n")) :]


def _lines(text: str) -> list[str]:
    """The lines with their ends. `splitlines` would also break them at characters that end no line of TOML."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])
