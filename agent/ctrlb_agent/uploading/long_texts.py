"""Texts that are longer than a request: cut before they are redacted, since redaction can take seconds for a megabyte.

A secret that the cut divides might not be known by its beginning alone. So the text is cut a little too late, between
two words where it can be, and what is before the cut is dropped once it is redacted.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ctrlb_agent.transcripts.rows import as_json
from ctrlb_agent.uploading.batches import CUT_MARK, CUT_TEXTS, MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

DROPPED_CHARS = 4_096
MAX_CHARS = MAX_BYTES + DROPPED_CHARS
WORD_CHARS = 65_536
"""How far before its end a text is cut between words rather than within one."""
HERE = "\n[ctrlb-agent cuts here]"
_AS_WRITTEN = re.compile(r"(?:\n|\\n)\[ctrlb-agent cuts here\]")
_BETWEEN_WORDS = re.compile(r"\s\S*\Z")


def redacted_row(columns: dict[str, Any], redact: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """The row, redacted. Of a text that no request holds the end is left out, and the text says so."""
    long = {name: columns[name] for name in CUT_TEXTS if len(columns.get(name) or "") > MAX_CHARS}
    found = redact({**columns, **{name: shortened(text) for name, text in long.items()}})
    return {**found, **{name: _without_end(found[name], len(text)) for name, text in long.items()}}


def shortened(text: str) -> str:
    """The first MAX_CHARS or fewer of the text, with HERE behind them. JSON stays JSON, with the same first strings."""
    if text.lstrip(" \t\r\n")[:1] in ("{", "[", '"'):
        try:
            return as_json(_Shortened().value(json.loads(text)))
        except (ValueError, RecursionError):
            pass
    return _cut(text, MAX_CHARS)


class _Shortened:
    """The beginning of a value of JSON."""

    def __init__(self) -> None:
        self._left = MAX_CHARS

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(name): self.value(inner) for name, inner in value.items() if self._left > 0}
        if isinstance(value, list):
            return [self.value(inner) for inner in value if self._left > 0]
        self._left -= 1
        return value

    def _text(self, text: str) -> str:
        left, self._left = self._left, self._left - len(text) - 1
        return text if len(text) <= left else _cut(text, max(0, left))


def _cut(text: str, most: int) -> str:
    between = _BETWEEN_WORDS.search(text, max(0, most - WORD_CHARS), most)
    return text[: between.start() if between else most] + HERE


def _without_end(redacted: str, length: int) -> str:
    """The redacted text without what is close to the cut, and a mark of how much of `length` is missing."""
    cuts = list(_AS_WRITTEN.finditer(redacted))
    kept = min(cuts[-1].start() if cuts else len(redacted), MAX_CHARS) - DROPPED_CHARS
    text = redacted[: max(0, kept)]
    return text + CUT_MARK.format(f"{length - len(text):,}")
