"""Takes a terminal's escapes out of a text: a colour may stand between a secret's name and its value, or within it."""

from __future__ import annotations

import re

_SIGNS = ("\x1b", "u001", "\\x1b")
_ESCAPE = re.compile(
    r"(?:\x1b|\\{1,15}(?:u001[bB]|x1b))"
    r"(?:\[[0-9;:?]{0,24}[A-Za-z]|\]8;[^\x07\x1b\\\n]{0,1000}(?:\x07|\x1b\\|\\{1,15}u0007))"
)
"""A colour or another order to the terminal, or either end of a link; in a string, as an escape."""


def has_escapes(text: str) -> bool:
    """Whether `without_escapes` could change the text."""
    return any(sign in text for sign in _SIGNS)


def without_escapes(text: str) -> str:
    """The text as a terminal shows it, but for its colours."""
    return _ESCAPE.sub("", text)
