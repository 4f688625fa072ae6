"""The project's documents as tests read them: sections, tables, examples and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"\s*Answers (\d{3}):\s*```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Example:
    """A piece of bash, and what the document says that it answers, if it does."""

    script: str
    status: int | None = None
    answer: str | None = None


def examples(text: str) -> list[Example]:
    """The blocks of bash in order, each with the `Answers <status>:` and the JSON that follow it."""
    found = []
    for block in _FENCE.finditer(text):
        if block[1] == "bash":
            answer = _ANSWER.match(text, block.end())
            found.append(Example(block[2], int(answer[1]), answer[2]) if answer else Example(block[2]))
    return found


def prose(text: str) -> str:
    """The text without its blocks of code."""
    return _FENCE.sub("", text)


def sections(text: str, level: int) -> dict[str, str]:
    """What stands under each heading of a level, up to the next one of that level or above."""
    parts = re.split(rf"^(#{{1,{level}}}) (.+)$", text, flags=re.MULTILINE)
    marks, titles, bodies = parts[1::3], parts[2::3], parts[3::3]
    return {title: body for mark, title, body in zip(marks, titles, bodies, strict=True) if len(mark) == level}


def tables(text: str) -> Iterator[list[list[str]]]:
    """Each table as its rows of cells, the heading first and without the line below it."""
    for block in re.findall(r"(?:^\|.*\n)+", prose(text), re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
        yield [rows[0], *rows[2:]]


def table(text: str, first_cell: str) -> list[list[str]]:
    """The rows below the heading of the one table whose heading begins with the cell; none if there is none."""
    found = [rows[1:] for rows in tables(text) if rows[0][0] == first_cell]
    assert len(found) <= 1, f"several tables begin with {first_cell}"
    return found[0] if found else []


def links(text: str) -> list[str]:
    """Where the links lead."""
    return _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """What a link can name of the document: its headings, as GitHub spells them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(prose(text))}
