"""The session rows in a DynamoDB table of their own, with a bucket for what an item cannot hold.

A session's partition begins with its head, which says whose it is and is written before any row. Rows go in batches
over several threads, and an upload is answered when all of them are written.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.aws_client import unavailable
from ctrlb.adapters.dynamodb_items import Item, item, number, text
from ctrlb.adapters.dynamodb_session_items import StoredRow, needs_object, session_row, stored_row
from ctrlb.adapters.dynamodb_table import ConditionFailed, Table
from ctrlb.adapters.s3_bodies import S3Bodies
from ctrlb.adapters.threads import Threads
from ctrlb.domain.rows import NO_TIME_US, Dataset, SessionRow
from ctrlb.domain.session_text import cut_texts
from ctrlb.ports import Clock, SessionTaken

THREADS = 8
BATCH_ROWS = 25
MAX_TRANSACTION_ITEMS = 100
HEAD_TRIES = 4
"""How often the heads of new sessions are written: each time anew when another upload made one of them first."""
BATCH_TRIES = 8
WRITE_BUDGET_S = 6.0
"""An upload that is not written by then answers 503, well within the function's time."""
FIRST_PAUSE_MS = 50
MAX_PAUSE_MS = 1_000


class DynamodbSessions:
    """The port SessionStore on the sessions table and the bodies' bucket."""

    def __init__(self, table: Table, bodies: S3Bodies, clock: Clock) -> None:
        self._table = table
        self._bodies = bodies
        self._clock = clock
        self._threads = Threads(THREADS, "sessions")

    def write(self, dataset: Dataset, user: str, rows: Sequence[SessionRow], written_us: int) -> None:
        """See SessionStore.write. An object is there before the item that points to it."""
        give_up_s = self._clock.elapsed_s() + WRITE_BUDGET_S
        rows = self._with_times(dataset, rows, written_us)
        stored = [(row.session_id, stored_row(dataset, user, row, written_us)) for row in rows]
        with_objects = {session_id for session_id, each in stored if each.content is not None}
        had_objects = self._own(dataset, user, dict.fromkeys(row.session_id for row in rows), with_objects)
        self._threads.each(self._put_object, [each for _, each in stored if each.content is not None])
        items = [each.item for _, each in stored]
        batches = [items[start : start + BATCH_ROWS] for start in range(0, len(items), BATCH_ROWS)]
        self._threads.each(lambda batch: self._put_batch(batch, give_up_s), batches)
        # A row that needed an object once, and was sent again shorter, leaves nothing behind.
        self._threads.each(
            lambda each: self._bodies.delete(each.key),
            [each for session_id, each in stored if each.content is None and session_id in had_objects],
        )

    def owner(self, dataset: Dataset, session_id: str) -> str | None:
        """See SessionStore.owner."""
        head = self._head(dataset, session_id)
        return text(head, "belongs_to") if head else None

    def rows(
        self, dataset: Dataset, session_id: str, seq_from: int, seq_to: int, limit: int, text_chars: int
    ) -> list[SessionRow]:
        """See SessionStore.rows."""
        bounds = {
            "pk": places.session_pk(dataset, session_id),
            "first": places.row_sk(seq_from, 0),
            "last": places.row_sk(seq_to, 10**places.BLOCK_DIGITS - 1),
        }
        found = list(self._table.query("pk = :pk AND sk BETWEEN :first AND :last", bounds, limit=limit))
        return self._cut_rows(found, text_chars)

    def rows_at(
        self, dataset: Dataset, session_id: str, places: Sequence[tuple[int, int]], text_chars: int
    ) -> list[SessionRow]:
        """See SessionStore.rows_at."""
        found = self._threads.each(lambda place: self._table.get(_place(dataset, session_id, *place)), places)
        return self._cut_rows([each for each in found if each is not None], text_chars)

    def _cut_rows(self, found: Sequence[Item], text_chars: int) -> list[SessionRow]:
        objects = self._objects(text(each, "object") for each in found if needs_object(each, text_chars))
        return [cut_texts(session_row(each, text_chars, objects.__getitem__), text_chars) for each in found]

    def _with_times(self, dataset: Dataset, rows: Sequence[SessionRow], written_us: int) -> list[SessionRow]:
        """The rows, and in those without a time the one that is stored, or that of their arrival."""
        untimed = [row for row in rows if row.ts_us == NO_TIME_US]
        found = self._threads.each(lambda row: self._table.get(_place(dataset, *row.identity)), untimed)
        times = {
            row.identity: number(stored, "ts_us") if stored else written_us
            for row, stored in zip(untimed, found, strict=True)
        }
        return [replace(row, ts_us=times.get(row.identity, row.ts_us)) for row in rows]

    def _own(self, dataset: Dataset, user: str, session_ids: Iterable[str], with_objects: set[str]) -> set[str]:
        """Make the sessions the user's, or raise SessionTaken and leave those that are new nobody's.

        The heads note which sessions have objects. Returns those that had some already.
        """
        wanted, had_objects = list(session_ids), set()
        for _ in range(HEAD_TRIES):
            heads = dict(zip(wanted, self._threads.each(lambda each: self._head(dataset, each), wanted), strict=True))
            found = {session_id: head for session_id, head in heads.items() if head is not None}
            for session_id, head in found.items():
                if text(head, "belongs_to") != user:
                    raise SessionTaken(session_id)
                if "objects" in head:
                    had_objects.add(session_id)
            self._note_objects(user, [found[each] for each in found if each in with_objects - had_objects])
            wanted = [session_id for session_id in wanted if session_id not in found]
            try:
                self._create([_new_head(dataset, each, user, objects=each in with_objects) for each in wanted])
            except ConditionFailed:  # another upload made one of them meanwhile
                continue
            return had_objects
        raise unavailable()

    def _create(self, heads: list[Item]) -> None:
        for start in range(0, len(heads), MAX_TRANSACTION_ITEMS):
            self._table.put_all(heads[start : start + MAX_TRANSACTION_ITEMS], "attribute_not_exists(pk)")

    def _note_objects(self, user: str, heads: list[Item]) -> None:
        self._threads.each(
            lambda head: self._table.put(head | item(objects=True), "belongs_to = :user", {"user": user}), heads
        )

    def _head(self, dataset: Dataset, session_id: str) -> Item | None:
        return self._table.get(item(pk=places.session_pk(dataset, session_id), sk=places.HEAD))

    def _put_object(self, stored: StoredRow) -> None:
        assert stored.content is not None
        self._bodies.put(stored.key, stored.content)

    def _put_batch(self, items: list[Item], give_up_s: float) -> None:
        """Write the items, sending again what DynamoDB leaves unprocessed, after pauses that grow and differ."""
        pause_ms = FIRST_PAUSE_MS
        for _ in range(BATCH_TRIES):
            items = self._table.put_batch(items)
            if not items:
                return
            if self._clock.elapsed_s() + pause_ms / 1_000 > give_up_s:
                break
            self._clock.wait_ms(secrets.randbelow(pause_ms) + 1)
            pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)
        raise unavailable()

    def _objects(self, keys: Iterable[str]) -> dict[str, bytes]:
        wanted = list(keys)
        return dict(zip(wanted, self._threads.each(self._bodies.get, wanted), strict=True))


def _place(dataset: Dataset, session_id: str, seq: int, block_idx: int) -> Item:
    return item(pk=places.session_pk(dataset, session_id), sk=places.row_sk(seq, block_idx))


def _new_head(dataset: Dataset, session_id: str, user: str, *, objects: bool) -> Item:
    return item(
        pk=places.session_pk(dataset, session_id),
        sk=places.HEAD,
        workspace=dataset.workspace,
        dataset=dataset.name,
        session_id=session_id,
        belongs_to=user,
        objects=True if objects else None,
    )
