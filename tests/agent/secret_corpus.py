"""The corpus of secrets and of what only looks like one, as tests read it.

A case begins with a line `## <title>`. In `secrets.txt` what has to be replaced stands between `⟦` and `⟧`. Values are
made up and kept in parts, divided by `·`, so that nothing that scans the repository takes them for real ones.
"""

import re
from dataclasses import dataclass

from tests.agent.recorded import DATA

FOLDER = DATA / "redaction"
REDACTED = "[REDACTED]"
_MARKED = re.compile("⟦[^⟧]*⟧")


@dataclass(frozen=True, slots=True)
class Case:
    """A text, and what it is to become."""

    title: str
    text: str
    redacted: str


def secrets() -> list[Case]:
    """Texts with secrets."""
    return [
        Case(title, re.sub("[⟦⟧·]", "", text), _MARKED.sub(REDACTED, text).replace("·", ""))
        for title, text in _cases("secrets.txt")
    ]


def clean() -> list[Case]:
    """Texts without any, which stay as they are."""
    return [Case(title, text, text) for title, text in _cases("clean.txt")]


def tokens() -> dict[str, str]:
    """What is known by its own form, whatever is around it: its kind, and one of them."""
    lines = (FOLDER / "tokens.txt").read_text(encoding="utf-8").splitlines()
    return {kind: parts.replace("·", "") for kind, parts in (line.split(": ", 1) for line in lines)}


def places(token: str) -> list[Case]:
    """Texts that have the token in them."""
    return [
        Case(title, text.replace("⟦⟧", token), text.replace("⟦⟧", REDACTED)) for title, text in _cases("places.txt")
    ]


def _cases(file: str) -> list[tuple[str, str]]:
    text = (FOLDER / file).read_bytes().decode()
    pieces = re.split(r"^## (.+)\n", text.removesuffix("\n"), flags=re.MULTILINE)[1:]
    return [(title, body.removesuffix("\n")) for title, body in zip(pieces[::2], pieces[1::2], strict=True)]
