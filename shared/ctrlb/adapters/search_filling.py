"""The rows of the sessions table read into a new search index, in several parts at once, and on after an end."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.aws_client import StoreRefused
from ctrlb.adapters.dynamodb_items import Item, text
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.opensearch_writer import OpenSearchWriter
from ctrlb.adapters.s3_bodies import NoSuchObject
from ctrlb.adapters.search_follower import UNREADABLE, body_chars, portions, stored_document
from ctrlb.adapters.threads import Threads
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import Document
from ctrlb.domain.streams import Outcome
from ctrlb.ports import Clock

PARTS = 4
"""The table is read in so many parts at once."""
PAGE_ITEMS = 500
NOTE_EVERY_S = 5.0
"""So much work is done again, at most, when it goes on after having been ended."""
TRIES = 12
"""Of each page and each request, before it is given up: about two minutes."""
FIRST_PAUSE_MS = 250
MAX_PAUSE_MS = 15_000

_ROWS = "workspace = :workspace AND dataset = :dataset AND begins_with(sk, :row)"


@dataclass(slots=True)
class Progress:
    """How far the table is read, and what was found."""

    after: list[Item | None] = field(default_factory=lambda: [None] * PARTS)
    """Of each part the key of the last item that was read."""
    over: list[bool] = field(default_factory=lambda: [False] * PARTS)
    read: int = 0
    refused: int = 0

    @classmethod
    def of(cls, noted: Any) -> "Progress":
        """What was noted; nothing was done when there is none, or the table was read in other parts."""
        if not isinstance(noted, dict) or len(noted["over"]) != PARTS:
            return cls()
        return cls(noted["after"], noted["over"], noted["read"], noted["refused"])

    def noted(self) -> dict[str, Any]:
        """It as JSON."""
        return {"after": self.after, "over": self.over, "read": self.read, "refused": self.refused}

    def __str__(self) -> str:
        done = f"{self.read:,} rows read, {self.refused:,} refused"
        return f"{done}, {sum(self.over)} of {PARTS} parts of the table are over"


class Filling:
    """One reading of a dataset's rows into the index that a rebuild fills."""

    def __init__(
        self,
        dataset: Dataset,
        progress: Progress,
        *,
        table: Table,
        fetch: Callable[[str], bytes],
        writer: OpenSearchWriter,
        clock: Clock,
        note: Callable[[Progress], None],
        tell: Callable[[str], None],
    ) -> None:
        """`progress` is where to go on. `note` keeps it, `tell` gets a line now and then; `fetch` gets an object."""
        self._dataset = dataset
        self._table = table
        self._fetch = fetch
        self._writer = writer
        self._clock = clock
        self._note = note
        self._tell = tell
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._noted_s = clock.elapsed_s()
        self.progress = progress

    def run(self) -> None:
        """Read all parts to their ends. Raises Unavailable when that could not be done."""
        try:
            Threads(PARTS, "rebuild").each(self._fill, range(PARTS))
        finally:
            self._stop.set()
        self._note(self.progress)

    def _fill(self, part: int) -> None:
        try:
            while not (self.progress.over[part] or self._stop.is_set()):
                rows, last = self._page(part)
                self._advance(part, last, len(rows), self._write(rows))
        except BaseException:
            self._stop.set()  # the others end after their page
            raise

    def _page(self, part: int) -> tuple[list[Item], Item | None]:
        """The next rows of the dataset in this part of the table, and what to go on after."""
        values = {"workspace": self._dataset.workspace, "dataset": self._dataset.name, "row": places.ROW_PREFIX}
        after = self.progress.after[part]
        for _ in self._tries():
            with contextlib.suppress(Unavailable):
                return self._table.scan_page(_ROWS, values, part=part, parts=PARTS, after=after, limit=PAGE_ITEMS)
        raise Unavailable("the table cannot be read; run it again, and it goes on where it was")

    def _write(self, rows: Sequence[Item]) -> int:
        """Write the rows to the index, and return how many of them it refuses; of these the places are told."""
        refused = 0
        for waiting in portions(rows, body_chars):
            for _ in self._tries():
                outcomes = self._sent(waiting)
                for row, outcome in zip(waiting, outcomes, strict=True):
                    if outcome.kind == "poison":
                        refused += 1
                        self._tell(f"refused {text(row, 'pk')} {text(row, 'sk')}: {outcome.reason}")
                later = [(row, each) for row, each in zip(waiting, outcomes, strict=True) if each.kind == "retry"]
                waiting = [row for row, _ in later]
                if not waiting:
                    break
            else:
                raise Unavailable(f"{later[0][1].reason}; run it again, and it goes on where it was")
        return refused

    def _sent(self, rows: Sequence[Item]) -> list[Outcome]:
        found = [self._document(row) for row in rows]
        written = iter(self._writer.index_next([each for each in found if isinstance(each, Document)]))
        return [next(written) if isinstance(each, Document) else each for each in found]

    def _document(self, row: Item) -> Document | Outcome:
        """The row's document. Raises Unavailable where the old index may have one that this one would miss."""
        try:
            return stored_document(row, self._fetch)
        except Unavailable as failure:
            return Outcome("retry", failure.message)
        except NoSuchObject as missing:
            return Outcome("poison", str(missing))
        except StoreRefused as refusal:
            raise Unavailable(
                f"{refusal}: what an item cannot hold cannot be read; with leave to get objects of the bucket, "
                "and to list it, run it again, and it goes on where it was"
            ) from refusal
        except UNREADABLE as error:
            return Outcome("poison", f"the row cannot be read: {type(error).__name__}")

    def _advance(self, part: int, last: Item | None, read: int, refused: int) -> None:
        with self._lock:
            progress = self.progress
            progress.after[part], progress.over[part] = last, last is None
            progress.read += read
            progress.refused += refused
            if self._clock.elapsed_s() - self._noted_s >= NOTE_EVERY_S:
                self._noted_s = self._clock.elapsed_s()
                self._note(progress)
                self._tell(str(progress))

    def _tries(self) -> Iterator[int]:
        """TRIES times, with pauses between that grow; fewer once another part is given up."""
        pause_ms = FIRST_PAUSE_MS
        for tried in range(TRIES):
            yield tried
            if self._stop.is_set():
                return
            self._clock.wait_ms(pause_ms)
            pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)
