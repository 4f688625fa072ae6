"""The search index follows the sessions table: what the function behind the table's stream does.

Documents are made and written in portions of a bounded size, since an item of a few bytes can point to an object of
megabytes. What is not written when the time is up, or behind something to be sent again, is left for the next batch.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.aws_client import StoreRefused
from ctrlb.adapters.dynamodb_items import number, text
from ctrlb.adapters.dynamodb_session_items import session_row
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import Document, removal, session_document
from ctrlb.domain.streams import ALREADY, IGNORED, Change, Image, Outcome
from ctrlb.ports import Clock

PORTION_CHARS = 4 * 1024 * 1024
"""Bodies of so many characters are held and written at once, or a single longer one."""
WHOLE_BODY_CHARS = 8 * 1024 * 1024
"""No upload has a body as long."""
BUDGET_S = 30.0
"""No portion is begun later. One takes up to 40 s more of a service that is slow, and the function has 90 s."""
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, zlib.error)
"""What an image that is no item of ours makes of an attempt to read it."""

T = TypeVar("T")

_LEFT = Outcome("retry", "left for the next batch")


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    change: Change


class Writer(Protocol):
    """What takes the documents."""

    def index(self, documents: Sequence[Document]) -> list[Outcome]:
        """Write them all and tell of each, in their order, what became of it."""


class SearchFollower:
    """The port Follower on the search index."""

    def __init__(self, writer: Writer, fetch: Callable[[str], bytes], clock: Clock) -> None:
        """`fetch` gets the object that holds what a row's item cannot."""
        self._writer = writer
        self._fetch = fetch
        self._clock = clock

    def take(self, changes: Sequence[Change]) -> list[Outcome]:
        """See Follower.take."""
        end_s = self._clock.elapsed_s() + BUDGET_S
        outcomes, wanted = _sorted_out(changes)
        for portion in portions(wanted, lambda each: body_chars(each.change.fresh)):
            if self._clock.elapsed_s() > end_s:
                break
            taken = self._take(portion)
            outcomes |= taken
            if any(outcome.kind == "retry" for outcome in taken.values()):
                break
        return [outcomes.get(place, _LEFT) for place in range(len(changes))]

    def _take(self, portion: Sequence[_Numbered]) -> dict[int, Outcome]:
        outcomes: dict[int, Outcome] = {}
        documents: dict[int, Document] = {}
        for each in portion:
            found = document_of(each.change, self._fetch)
            if isinstance(found, Document):
                documents[each.number] = found
            else:
                outcomes[each.number] = found
        return outcomes | dict(zip(documents, self._writer.index(list(documents.values())), strict=True))


def document_of(change: Change, fetch: Callable[[str], bytes]) -> Document | Outcome:
    """The document that the change of a session row leads to, or why there is none."""
    try:
        return _removed(change) if change.fresh is None else stored_document(change.fresh, fetch)
    except Unavailable as failure:
        return Outcome("retry", failure.message)
    except StoreRefused as refusal:  # its object is not there, or may not be read
        return Outcome("poison", str(refusal))
    except UNREADABLE as error:
        return Outcome("poison", f"the row cannot be read: {type(error).__name__}")


def stored_document(image: Image, fetch: Callable[[str], bytes]) -> Document:
    """The document of a row as the table has it. Raises one of UNREADABLE when the item is no such row."""
    row = session_row(dict(image), WHOLE_BODY_CHARS, fetch)
    return session_document(_dataset(image), text(image, "belongs_to"), row, int(image["written_us"]["N"]))


def is_session_row(change: Change) -> bool:
    """Whether the change is of a row; else of a session's head, say."""
    return change.key.get("sk", "").startswith(places.ROW_PREFIX)


def _removed(change: Change) -> Document:
    """The row's removal. Its version is of the moment after the write that it undoes: a later write is above it."""
    if change.old is None:
        raise KeyError("the stream does not say what was removed")
    identity = (change.old["session_id"]["S"], *places.place_of_row(change.key["sk"]))
    return removal(_dataset(change.old), identity, int(change.old["written_us"]["N"]) + 1)


def _dataset(image: Image) -> Dataset:
    return Dataset(image["workspace"]["S"], image["dataset"]["S"])


def _sorted_out(changes: Sequence[Change]) -> tuple[dict[int, Outcome], list[_Numbered]]:
    """The last change of each row, and what becomes of the others."""
    outcomes: dict[int, Outcome] = {}
    last: dict[tuple[str, str], _Numbered] = {}
    for place, change in enumerate(changes):
        if not is_session_row(change):
            outcomes[place] = IGNORED
            continue
        row = (change.key.get("pk", ""), change.key["sk"])
        if row in last:
            outcomes[last[row].number] = ALREADY
        last[row] = _Numbered(place, change)
    return outcomes, sorted(last.values(), key=lambda each: each.number)


def portions(wanted: Sequence[T], chars_of: Callable[[T], int]) -> Iterator[list[T]]:
    """What is wanted, so much at a time as has PORTION_CHARS together, or a single longer one."""
    portion: list[T] = []
    chars = 0
    for each in wanted:
        size = chars_of(each)
        if portion and chars + size > PORTION_CHARS:
            yield portion
            portion, chars = [], 0
        portion.append(each)
        chars += size
    if portion:
        yield portion


def body_chars(image: Image | None) -> int:
    """How long the row's body is; a row that does not say so is no longer than an item."""
    try:
        return number(image, "body_len") if image else 0
    except UNREADABLE:
        return 0
