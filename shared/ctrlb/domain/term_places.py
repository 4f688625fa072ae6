"""Where a term stands in a text, for the snippet around it; as `words.has_term` says whether it does.

Only the part of the text where the term can be is cut into words: it begins before the first word's first letters,
and grows until the term is in it.
"""

import re
from functools import lru_cache

from ctrlb.domain.words import APART, Term, letters_apart, lower, words_in_place

MAX_PATTERN_WORDS = 16
"""A longer phrase is shown where its first words stand: the search for it stays short in any text."""
FIRST_PART_CHARS = 4_096
PARTS_GROW = 8
_SEPARATORS = (" ", "\n", "。")
"""Some of the letters that are in no word: the text can be cut there."""


def find_term(text: str, term: Term) -> tuple[int, int] | None:
    """Where a `plain` text first has the term, from and to; None when it has it nowhere."""
    first = lower(text).find(term.words[0])
    if first < 0:
        return None
    start = max(text.rfind(separator, 0, first) for separator in _SEPARATORS) + 1
    size = FIRST_PART_CHARS
    while True:
        end = min(_first_place(text, separator, first + size) for separator in _SEPARATORS)
        place = _find(text[start:end], term)
        if place is not None:
            return start + place[0], start + place[1]
        if end == len(text):
            return None
        size *= PARTS_GROW


def _first_place(text: str, separator: str, start: int) -> int:
    at = text.find(separator, start)
    return at if at >= 0 else len(text)


def _find(text: str, term: Term) -> tuple[int, int] | None:
    apart = letters_apart(text)
    found = _phrase(term.words[:MAX_PATTERN_WORDS]).search(words_in_place(apart, term.dotted))
    if found is None:
        return None
    start, end = found.start(), found.end() - 1  # in `apart`: one space comes before all words, and before the term
    return start - apart.count(APART, 0, start), end - apart.count(APART, 0, end)


@lru_cache(maxsize=64)
def _phrase(words: tuple[str, ...]) -> re.Pattern[str]:
    """The words in order; as it begins with plain text, it is searched fast."""
    return re.compile(f" {' ++'.join(map(re.escape, words))}(?= )")
