"""What a word is: the reference that every search index is held to.

A word starts with a letter, digit or mark, goes on with those, `.` and `+`, and never ends with a dot; two
dots in a row separate. Case is ignored, accents are not. A word with `.` or `+` inside (a *dotted* word)
also counts as each of its runs of letters, digits and marks. Scripts written without spaces have no words to
cut at: each letter of theirs is one, so that a text in them is found as a phrase.

Most texts are ASCII and long, so words are not cut out one by one: a few passes, each in C, turn the text
into its words with spaces between them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ctrlb.domain.errors import Invalid
from ctrlb.domain.normal_form import marks, nfc

MIN_WORD = 3
MAX_WORD = 50
"""Longer words (encoded data, mostly) are not kept, but keep their place: what stood around them is not adjacent."""
APART = "\x00"
"""Stands around each letter of a script without spaces while a text is cut; no plain text has it of its own."""
_DROPPED = "+"
"""Stands where a longer word was. No term can hold it, since no word starts with a plus."""
_REFUSAL = f"term needs a word of {MIN_WORD} to {MAX_WORD} letters, digits, . or +"

SCRIPTS_WITHOUT_SPACES = "".join(
    (
        # Han
        "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
        "\U00016fe2-\U00016fe3\U00016ff0-\U00016ff1\U00020000-\U0003ffff",
        # Hiragana and Katakana, with the long-vowel mark they share
        "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d",
        "\U0001aff0-\U0001afff\U0001b000-\U0001b16f",
        # Thai, Lao, Khmer, Myanmar
        "\u0e01-\u0e3a\u0e40-\u0e5b\u0e80-\u0eff\u1780-\u17ff\u19e0-\u19ff",
        "\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f\U000116d0-\U000116e3",
    )
)
_OF_SCRIPTS_WITHOUT_SPACES = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}][^\\x00-\\x7f]*")

# A run that is both is cut at every character. No mark is in `\w`.
_SCRIPT = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}]*")
_LETTERS = re.compile(r"\w*")

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|[PX^_][^\x1b]*\x1b\\"  # strings for the terminal
    r"|[ -/]*[0-~])"  # the short ones
)
_CONTROLS_TO_SPACES = bytes(32 if byte < 32 and byte not in b"\t\n" else byte for byte in range(256))
_WORD_BYTES = bytes(
    byte if byte >= 0x80 or chr(byte).isalnum() or byte in b".+" else 32 for byte in bytes(range(256)).lower()
)
_SHAPE = bytes(32 if byte == 32 else 1 for byte in range(256))
_LONG_SHAPE = bytes([1]) * (MAX_WORD + 1)
_LONG_WORD = re.compile(f"[^ ]{{{MAX_WORD + 1},}}")
# Dots and pluses that are in no word. Each pattern begins with a letter of its own: so it is found ten times faster.
_PLUSES_BEFORE_A_WORD = re.compile(r"\+(?<= \+)[.+]*")
_DOTS_OUTSIDE_WORDS = re.compile(
    r"\.(?:(?<= \.)[.+]*"  # before a word
    r"|\.[.+]*"  # two dots
    r"|(?= ))"  # one at a word's end
)


@dataclass(frozen=True, slots=True)
class Term:
    """A phrase to look for: its words in order, next to each other."""

    words: tuple[str, ...]
    dotted: bool
    """Some word has a `.` or `+` inside: then all are compared with whole words, else with runs."""


class Words(NamedTuple):
    """The words of a text in order, with one space or more around each."""

    runs: str
    """Every run of letters, digits and marks."""
    wholes: str
    """Every whole word; empty when no word is dotted, for then they are the runs."""


def plain(text: str) -> str:
    """The text in NFC without terminal escapes; controls other than tab and newline are spaces.

    What is no Unicode text (half a surrogate pair) becomes a question mark.
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return nfc(text.encode(errors="replace").translate(_CONTROLS_TO_SPACES).decode())


def lower(text: str) -> str:
    """Lower case letter by letter: the text keeps its length, and no letter depends on its neighbours."""
    if text.isascii():
        return text.lower()
    return text.replace("İ", "i").replace("Σ", "\u03c3").lower()


def words_of(text: str) -> Words:
    """The words of a `plain` text."""
    spaced = _between_spaces(letters_apart(text))
    wholes = _without_outer_signs(spaced.decode(), " ")
    runs = wholes.replace(".", " ").replace("+", " ")
    dotted = runs != wholes
    if _LONG_SHAPE in spaced.translate(_SHAPE):
        runs, wholes = _LONG_WORD.sub(_DROPPED, runs), _LONG_WORD.sub(_DROPPED, wholes)
    return Words(runs, wholes if dotted else "")


def words_of_any(text: str) -> Words:
    """The words of a text as `plain` makes it."""
    # The controls of an ASCII text are in no word anyway.
    return words_of(text if text.isascii() and "\x1b" not in text else plain(text))


def parse_term(text: str) -> Term:
    """The phrase to look for, or Invalid when it has no word of 3 to 50 characters, or a longer one.

    Two letters side by side are enough in scripts without spaces. Nothing in a term is an operator.
    """
    text = plain(text)
    words = tuple(_spaced(text).split())
    longest = max(map(len, words), default=0)
    if longest > MAX_WORD or (longest < MIN_WORD and not _two_letters().search(text)):
        raise Invalid(_REFUSAL)
    return term_of(words)


def term_of(words: Sequence[str]) -> Term:
    """The phrase of these words, which are those of a term."""
    return Term(tuple(words), dotted=any("." in word or "+" in word for word in words))


def has_term(words: Words, term: Term) -> bool:
    """Whether the words of a text have the term's in order, next to each other: the definition of a hit."""
    column = words.wholes if term.dotted else words.runs
    return f" {' '.join(term.words)} " in f" {' '.join(column.split())} "


def letters_apart(text: str) -> str:
    """A plain text with APART around each letter of a script without spaces, and spaces for signs beyond ASCII."""
    if text.isascii():
        return text
    return _separators().sub(" ", _OF_SCRIPTS_WITHOUT_SPACES.sub(_apart, lower(text)))


def words_in_place(apart: str, dotted: bool) -> str:
    """What `words_of` says of a text whose `letters_apart` this is: its wholes if dotted, else its runs.

    After the space that comes first, each letter of a word is where it is in `apart`; words may be of any length.
    """
    wholes = _without_outer_signs(_between_spaces(apart).decode(), _as_many_spaces)
    return wholes if dotted else wholes.replace(".", " ").replace("+", " ")


def _spaced(text: str) -> str:
    """The words of a plain text in lower case, of any length, with one space or more around each."""
    return _without_outer_signs(_between_spaces(letters_apart(text)).decode(), " ")


def _between_spaces(apart: str) -> bytes:
    """The text in lower case, with spaces for ASCII that is in no word, and one before and after it."""
    return f" {apart} ".encode().translate(_WORD_BYTES)


def _without_outer_signs(spaced: str, gap: str | Callable[[re.Match[str]], str]) -> str:
    """The text with the gap for dots and pluses that are in no word."""
    if "+" in spaced:
        spaced = _PLUSES_BEFORE_A_WORD.sub(gap, spaced)
    return _DOTS_OUTSIDE_WORDS.sub(gap, spaced)


def _as_many_spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _letter() -> str:
    """The pattern of a letter of a script without spaces, with its marks."""
    return rf"(?=\w)[{SCRIPTS_WITHOUT_SPACES}][{marks()}]*"


def _apart(found: re.Match[str]) -> str:
    """Each letter of a script without spaces with APART before and after it, a space for what is none of its."""
    text = found[0]
    if _SCRIPT.fullmatch(text) is None or _LETTERS.fullmatch(text) is None:
        return _letters().sub(lambda part: f"{APART}{part[1]}{APART}" if part[1] else " ", text)
    return f"{APART}{APART.join(text)}{APART}"


@cache
def _separators() -> re.Pattern[str]:
    """Whatever beyond ASCII is in no word."""
    return re.compile(rf"[^\x00-\x7f\w{marks()}]")


@cache
def _letters() -> re.Pattern[str]:
    """A letter of a script without spaces, as group 1; or what else those scripts have, which is in no word."""
    return re.compile(rf"({_letter()})|[{SCRIPTS_WITHOUT_SPACES}]")


@cache
def _two_letters() -> re.Pattern[str]:
    return re.compile(f"(?:{_letter()}){{2}}")
