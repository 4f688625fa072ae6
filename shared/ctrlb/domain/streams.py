"""What a table's stream delivers, and what became of it.

A stream hands on each change of a table at least once, those of one item in their order. A batch is answered with the
place to resume at, so what came before that place must be done for good: written, or set aside as a dead letter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Image: TypeAlias = Mapping[str, dict[str, Any]]
"""An item of the table, its attributes as {type: value}."""


@dataclass(frozen=True, slots=True)
class Change:
    """One record of a stream: an item was written, or removed."""

    place: str
    """Its sequence number, by which the stream resumes."""
    key: Mapping[str, str]
    """The item's pk and sk."""
    written_us: int
    """When the change was made, to the second."""
    fresh: Image | None
    """The item as it was written; None when it was removed."""
    old: Image | None = None
    """The item as it was before, where the stream tells."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a change, or of a document that it led to."""

    kind: Literal["done", "already", "ignored", "retry", "poison"]
    """`already`: it, or a later version, was there. `ignored`: it is of a kind that the function is not for.
    `retry`: send it again later. `poison`: that would not help."""
    reason: str = ""
    """Why, for `retry` and `poison`. Never what somebody wrote."""


DONE = Outcome("done")
ALREADY = Outcome("already")
IGNORED = Outcome("ignored")
_WORST = ("retry", "poison", "ignored", "already", "done")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A change that no repetition helps: where it is, and why. Never what is in it."""

    function: str
    place: str
    key: Mapping[str, str]
    reason: str


def resume_index(outcomes: Sequence[Outcome]) -> int:
    """How many changes of the batch are over, from its beginning: the stream resumes after them."""
    for number, outcome in enumerate(outcomes):
        if outcome.kind == "retry":
            return number
    return len(outcomes)


def both(one: Outcome, other: Outcome) -> Outcome:
    """What became of a document that was written to two indices: again if either wants that, else the worse."""
    return min(one, other, key=lambda each: _WORST.index(each.kind))
