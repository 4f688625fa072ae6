"""Texts in Unicode's form NFC, made in a time that grows with their length alone.

A run of marks is put in order by moving each past the others: a hundred thousand in a row take seconds. So a run is
broken up first, as Unicode's Stream-Safe Text Format does (UAX #15, section 13). No writing has runs that long.
"""

import re
import unicodedata
from functools import cache

MAX_MARKS = 30
"""So many marks in a row are put in order together."""
JOINER = "\u034f"
"""The mark that stands between those that are not: U+034F, which has no looks of its own."""
_MAYBE_MARKS = re.compile(rf"[^\x00-\x7f\w]{{{MAX_MARKS + 1},}}")
"""Marks and signs in a row: a class that is short, for this is looked for in every text."""
_RANGES_WITH_MARKS = ((0x80, 0x20000), (0xE0100, 0xE01F0))


def nfc(text: str) -> str:
    """The text in NFC, with a JOINER after every MAX_MARKS marks in a row; of such a text, the text itself."""
    if text.isascii():
        return text
    broken = _broken_up(text)
    composed = unicodedata.normalize("NFC", broken)
    return composed if composed == broken else _broken_up(composed)  # some marks are two in NFC


@cache
def marks() -> str:
    """All marks (accents, vowel signs), for a class of a regular expression. Made once, in 50 ms."""
    codes = [code for start, end in _RANGES_WITH_MARKS for code in range(start, end) if _is_mark(code)]
    starts = [code for code, before in zip(codes, [-1, *codes], strict=False) if code != before + 1]
    ends = [code for code, after in zip(codes, [*codes[1:], -1], strict=True) if code != after - 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


def _is_mark(code: int) -> bool:
    return unicodedata.category(chr(code)).startswith("M")


def _broken_up(text: str) -> str:
    return _MAYBE_MARKS.sub(lambda found: _runs().sub(_with_joiner, found[0]), text)


def _with_joiner(run: re.Match[str]) -> str:
    return f"{run[0]}{JOINER}" if run[1] else run[0]


@cache
def _runs() -> re.Pattern[str]:
    """Marks in a row, none of them a JOINER: as group 1 so many that are in front of one more, or what is left."""
    mark = f"[{_without_joiner(marks())}]"
    return re.compile(f"({mark}{{{MAX_MARKS}}}(?={mark}))|{mark}+")


def _without_joiner(ranges: str) -> str:
    """The class in two parts, around the JOINER."""
    at = next(at for at in range(0, len(ranges), 3) if ranges[at] < JOINER < ranges[at + 2])
    before, after = chr(ord(JOINER) - 1), chr(ord(JOINER) + 1)
    return f"{ranges[: at + 2]}{before}{after}-{ranges[at + 2 :]}"
