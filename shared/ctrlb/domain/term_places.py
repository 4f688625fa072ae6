"""Where a term stands in a text, for the snippet around it; as `words.has_term` says whether it does.

One pattern that begins with the term's first letters runs over the text, so that a hit at the end of 4 MiB
is found in milliseconds; a hit's words are never cut out of the whole text.
"""

import re
from functools import cache, lru_cache
from itertools import pairwise

from ctrlb.domain.normal_form import marks
from ctrlb.domain.words import MAX_WORD, SCRIPTS_WITHOUT_SPACES, Term, letter, lower

MAX_PATTERN_WORDS = 16
"""A longer phrase is shown where its first words stand: the search for it stays short in any text."""
_ASCII_INSIDE = "[a-z0-9]"
_ASCII_APART = "[^a-z0-9]"


def find_term(text: str, term: Term) -> tuple[int, int] | None:
    """Where a `plain` text first has the term, from and to; None when it has it nowhere."""
    text = lower(text).replace("_", " ").replace("..", "  ")
    for hit in _phrase(term, text.isascii()).finditer(text):
        if not term.dotted or _starts_word(text, hit.start()):
            return hit.span()
    return None


@lru_cache(maxsize=64)
def _phrase(term: Term, in_ascii: bool) -> re.Pattern[str]:
    """The term in a lower-case text without `_` and `..`; whether a dotted word starts there is left to check."""
    inside = _ASCII_INSIDE if in_ascii else _inside()
    apart = _ASCII_APART if in_ascii else rf"[^\w{marks()}]"
    words = term.words[:MAX_PATTERN_WORDS]
    parts = [re.escape(words[0])]
    if not _is_letter(words[0]):
        # Looked for behind the word and not before it: a pattern that begins with plain text is searched fast.
        parts.append(f"(?<!{inside}{parts[0]})")
    for left, right in pairwise(words):
        at_least = "*" if _is_letter(left) or _is_letter(right) else "+"
        parts.append(f"{_end(left, term, inside)}{apart}{at_least}{re.escape(right)}")
    return re.compile("".join(parts) + _end(words[-1], term, inside))


def _end(word: str, term: Term, inside: str) -> str:
    """What may not follow the word, or it would be the beginning of a longer one."""
    if _is_letter(word):
        return f"(?![{marks()}])"
    return rf"(?!\.?(?:{inside}|\+))" if term.dotted else f"(?!{inside})"


def _is_letter(word: str) -> bool:
    return not word.isascii() and _letter().fullmatch(word) is not None


@cache
def _letter() -> re.Pattern[str]:
    return re.compile(letter())


@cache
def _inside() -> str:
    """One letter, digit or mark of a word, but none of a script without spaces."""
    return rf"(?![{SCRIPTS_WITHOUT_SPACES}])[\w{marks()}]"


@cache
def _ends_inside() -> re.Pattern[str]:
    return re.compile(_inside())


def _starts_word(text: str, start: int) -> bool:
    """Whether no word reaches over dots and pluses into what starts here."""
    before = text[max(0, start - MAX_WORD) : start].rstrip(".+")
    return not before or _ends_inside().match(before[-1]) is None
