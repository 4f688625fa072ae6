"""Finds the words that open a wallet: twelve or more, behind a label as `seed phrase` or `MNEMONIC`.

Without a label they are not looked for: any dozen of short words could be such a phrase.
"""

from __future__ import annotations

import re

MIN_WORDS = 12
MAX_WORDS = 24

_LABEL = re.compile(
    r"(?:nemonic|NEMONIC|[sS]eed(?:[ _-]?(?:phrase|words))?|(?:ecovery|ackup|ecret)[ _-]phrase|SEED(?:_PHRASE|_WORDS)?)"
)
_BETWEEN = re.compile(
    r"(?:[ \t]{0,9}\([^()\n]{0,40}\))?\\{0,15}[\"'`*]{0,3}(?:[ \t]{1,4}(?:is|was|are|words?|for [\w-]{1,20}))?"
    r"[ \t]{0,9}(?::=|=>|[:=])?(?:\s|\\{1,15}[nrt]|[0-9→|>+#/-]|(?<=\n)[\w./-]{1,80}[:-]){0,20}"
    r"\\{0,15}[\"'`*]{0,3}(?=[a-z0-9])"
)
_WORD = r"(?:[0-9]{1,2}[.):][ \t]{0,4})?[a-z]{3,8}"
_GAP = r"(?:[ \t]{1,4}|,[ \t]{0,4}|[ \t]{0,4}(?:\r?\n|\\{1,15}n)[ \t]{0,20})"
_WORDS = re.compile(rf"{_WORD}(?:{_GAP}{_WORD}){{{MIN_WORDS - 1},{MAX_WORDS - 1}}}(?![a-z])")
_NEVER = frozenset(["the", "and", "for", "are", "your", "from", "not", "was", "has", "its", "our", "who", "how", "but"])
"""Words of prose that are in no such phrase, whose words are of a list of 2048."""


def may_have_phrase(text: str) -> bool:
    """Whether `spans_of_phrases` could find anything; costs a pass for each kind of label."""
    return any(word in text for word in ("seed", "phrase", "nemonic", "NEMONIC", "SEED"))


def spans_of_phrases(text: str) -> list[tuple[int, int]]:
    """Where the words are."""
    spans = []
    for label in _LABEL.finditer(text):
        between = _BETWEEN.match(text, label.end())
        words = _WORDS.match(text, between.end()) if between else None
        if words is None:
            continue
        listed = list(re.finditer(r"(?<!\\)[a-z]{3,8}", words[0]))
        count = next((at for at, word in enumerate(listed) if word[0] in _NEVER), len(listed))
        if count >= MIN_WORDS:
            spans.append((words.start(), words.start() + listed[count - 1].end()))
    return spans
