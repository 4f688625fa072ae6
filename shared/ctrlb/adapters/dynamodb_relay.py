"""The record of runs in a DynamoDB table.

A claim row takes its number by a conditional write, so of any number of writers one gets it, and the end of a record
is the last item under the record's prefix, read consistently. Events lie beside the records in the run's partition;
a local index orders both by time. Nothing of a record is updated or deleted.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import Item, item, number, text
from ctrlb.adapters.dynamodb_table import CollectionFull, ConditionFailed, Table
from ctrlb.adapters.threads import Threads
from ctrlb.domain.errors import Invalid
from ctrlb.domain.rows import ClaimKind, ClaimRow, Dataset, Event, EventKind, Holder, Run
from ctrlb.ports import PREVIEW_CHARS, Clock, NumberTaken, Randomness

THREADS = 16
"""How many records are read, or events written, at once."""


class DynamodbRelay:
    """The port RelayStore on the relay table."""

    def __init__(self, table: Table, clock: Clock, random: Randomness) -> None:
        self._table = table
        self._clock = clock
        self._random = random
        self._threads = Threads(THREADS, "relay")

    def append(self, run: Run, row: ClaimRow) -> None:
        """See RelayStore.append."""
        written = claim_item(run, row, self._at(row.ts_us))
        try:
            with _refusing_full_runs():
                self._table.put(written, "attribute_not_exists(pk)")
        except ConditionFailed as failed:
            # The SDK sends a write again whose answer was lost, and then meets its own row.
            if failed.found.get("at") != written["at"]:
                raise NumberTaken(f"{row.key} has a row {row.number}") from None

    def last(self, run: Run, key: str) -> ClaimRow | None:
        """See RelayStore.last."""
        record = {"pk": places.run_pk(run), "record": places.claim_prefix(key)}
        found = self._table.query("pk = :pk AND begins_with(sk, :record)", record, limit=1, backwards=True)
        return next(map(claim_row, found), None)

    def last_of_each(self, run: Run, keys: Sequence[str]) -> list[ClaimRow | None]:
        """See RelayStore.last_of_each."""
        return self._threads.each(lambda key: self.last(run, key), keys)

    def add_events(self, run: Run, *events: Event) -> None:
        """See RelayStore.add_events."""
        with _refusing_full_runs():
            self._threads.each(self._table.put, [event_item(run, event, self._at(event.ts_us)) for event in events])

    def newest(self, run: Run, limit: int) -> list[Event]:
        """See RelayStore.newest."""
        whole = {"pk": places.run_pk(run)}
        return [
            event_of(found)
            for found in self._table.query("pk = :pk", whole, limit=limit, backwards=True, index=places.BY_TIME)
        ]

    def _at(self, ts_us: int) -> str:
        return places.at(ts_us, self._clock.now_us(), self._random.request_id())


@contextmanager
def _refusing_full_runs() -> Iterator[None]:
    try:
        yield
    except CollectionFull:
        raise Invalid("run_id: the run has all the rows that a run can have, 10 GB; go on in another run") from None


def claim_item(run: Run, row: ClaimRow, at: str) -> Item:
    """A row of a record as it lies in the table."""
    return _item(run, row.kind, row.holder, at) | item(
        sk=places.claim_sk(row.key, row.number),
        resource=row.resource,
        resource_key=row.key,
        lease_until_us=row.lease_until_us,
        request_id=row.request_id,
    )


def event_item(run: Run, event: Event, at: str) -> Item:
    """An event as it lies in the table. What the index carries of its text is enough of most."""
    preview = event.text[:PREVIEW_CHARS]
    return _item(run, event.kind, event.holder, at) | item(
        sk=places.event_sk(event.ts_us, at.rpartition("#")[2]),
        resource=event.resource,
        resource_key=event.key,
        preview=preview,
        text=event.text if event.text != preview else "",
    )


def claim_row(found: Item) -> ClaimRow:
    """The row of a record that was stored as the item."""
    return ClaimRow(
        number=places.claim_number(text(found, "sk")),
        kind=cast("ClaimKind", text(found, "kind")),
        key=text(found, "resource_key"),
        resource=text(found, "resource"),
        holder=Holder(text(found, "user"), text(found, "agent")),
        ts_us=places.time_of(text(found, "at")),
        lease_until_us=number(found, "lease_until_us"),
        request_id=text(found, "request_id"),
    )


def event_of(found: Item) -> Event:
    """What `peers` shows of an item: an event, or a row of a record. Its text may be cut at PREVIEW_CHARS."""
    return Event(
        kind=cast("EventKind", text(found, "kind")),
        holder=Holder(text(found, "user"), text(found, "agent")),
        ts_us=places.time_of(text(found, "at")),
        resource=text(found, "resource"),
        key=text(found, "resource_key"),
        text=text(found, "text") or text(found, "preview"),
        lease_until_us=number(found, "lease_until_us"),
    )


def run_of(found: Item) -> Run:
    """The run that the item belongs to."""
    return Run(Dataset(text(found, "workspace"), text(found, "dataset")), text(found, "run_id"))


def _item(run: Run, kind: str, holder: Holder, at: str) -> Item:
    return item(
        pk=places.run_pk(run),
        at=at,
        kind=kind,
        user=holder.user,
        agent=holder.agent,
        workspace=run.dataset.workspace,
        dataset=run.dataset.name,
        run_id=run.run_id,
    )
