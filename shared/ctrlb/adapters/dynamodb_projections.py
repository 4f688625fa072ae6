"""What the Runs page is read from: rows of the relay table that a stream's function writes beside those of the run."""

from collections.abc import Callable, Mapping
from functools import partial

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.aws_client import unavailable
from ctrlb.adapters.dynamodb_items import Item, item, number, same, text
from ctrlb.adapters.dynamodb_projected_items import (
    Counted,
    activity_item,
    agent_activity,
    counted,
    edits_item,
    head_item,
    resource_item,
    run_head,
)
from ctrlb.adapters.dynamodb_relay import claim_row, event_of, run_of
from ctrlb.adapters.dynamodb_session_items import session_row
from ctrlb.adapters.dynamodb_table import CollectionFull, ConditionFailed, Table
from ctrlb.adapters.threads import Threads
from ctrlb.domain.projections import Place, Projection, RelayFact, RowEdits, SessionFact, merged_activity
from ctrlb.domain.rows import AgentActivity, ClaimRow, Dataset, Run

WRITERS = 8
MERGE_TRIES = 8
"""How often a row is read and written anew because another batch changed it meanwhile."""

SETTLED_US = 600_000_000
"""How long after its time a row of the relay may still be written; it takes the seconds of a call."""
COUNTED_ANEW = 1_000
"""So many rows, and those of SETTLED_US, are counted with each batch; of more, how many they were is kept."""


class DynamodbProjections:
    """Adds projections to what is known of runs. Adding one again, or an older one later, changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._threads = Threads(WRITERS, "projections")

    def add(self, found: Mapping[Run, Projection]) -> set[Run]:
        """Add them all but those of runs that are full, which are returned.

        Raises Unavailable; then some may be added, and all can be again.
        """
        full: set[Run] = set()

        def write(run: Run, what: Callable[[], None]) -> None:
            try:
                what()
            except CollectionFull:
                full.add(run)

        writes = [(run, each) for run, projection in found.items() for each in self._writes(run, projection)]
        self._threads.each(lambda one: write(*one), writes)
        # Last, so that a run is listed once the rest of it can be read.
        self._threads.each(lambda run: write(run, partial(self._add_head, run, found[run])), found)
        return full

    def _writes(self, run: Run, projection: Projection) -> list[Callable[[], None]]:
        """All that the projection adds but the head, each a call."""
        edits = projection.edits
        kept = self._kept_edits(run, [place for place, found in edits.items() if not found.says_something])
        return [
            *(partial(self._add_activity, run, activity) for activity in projection.activities.values()),
            *(partial(self._add_resource, run, fact) for fact in projection.resources.values()),
            *(
                partial(self._add_edits, run, place, each)
                for place, each in edits.items()
                if each.says_something or place in kept
            ),
        ]

    def _add_head(self, run: Run, projection: Projection) -> None:
        def merged(found: Item | None) -> Item:
            head = projection.head if found is None else projection.head.merged(run_head(found))
            events, known = (0, Counted()) if found is None else (number(found, "events"), counted(found))
            if projection.relay_us is not None:
                newer, known = self._count(run, known, projection.relay_us)
                events = max(events, newer)
            return head_item(run, head, events, known)

        self._merge(item(pk=places.run_pk(run), sk=places.HEAD), merged)

    def _count(self, run: Run, known: Counted, relay_us: int) -> tuple[int, Counted]:
        """How many rows the run has in the relay, and how far they need not be counted again.

        They are counted, not added up as they come, because a stream delivers some twice.
        """
        newer = self._rows("#at > :first", run, first=known.up_to)
        settled = places.time_text(max(0, relay_us - SETTLED_US))
        if newer > COUNTED_ANEW and settled > known.up_to:
            older = self._rows("#at BETWEEN :first AND :last", run, first=known.up_to, last=settled)
            return known.rows + newer, Counted(known.rows + older, settled)
        return known.rows + newer, known

    def _rows(self, condition: str, run: Run, **bounds: str) -> int:
        return self._table.count(
            f"pk = :pk AND {condition}", {"pk": places.run_pk(run), **bounds}, index=places.BY_TIME
        )

    def _add_activity(self, run: Run, activity: AgentActivity) -> None:
        sk = places.agent_sk(activity.holder, "".join(activity.session_ids))

        def merged(found: Item | None) -> Item:
            return activity_item(activity if found is None else merged_activity(agent_activity(found), activity))

        self._merge(item(pk=places.run_pk(run), sk=sk), merged)

    def _merge(self, place: Item, merged: Callable[[Item | None], Item]) -> None:
        """Make of the row what `merged` makes of it, as one step; `revision` tells when another came between."""
        for _ in range(MERGE_TRIES):
            found = self._table.get(place)
            revision = number(found, "revision") if found else 0
            fresh = place | merged(found) | item(revision=revision)
            if found is not None and same(fresh, found):
                return
            try:
                self._table.put(
                    fresh | item(revision=revision + 1),
                    "attribute_not_exists(pk) OR revision = :revision",
                    {"revision": revision},
                )
            except ConditionFailed:
                continue
            return
        raise unavailable()

    def _add_resource(self, run: Run, fact: RelayFact) -> None:
        assert isinstance(fact.row, ClaimRow)
        self._put_newer(resource_item(run, fact.row, fact.at), "row_number", fact.row.number)

    def _add_edits(self, run: Run, place: Place, found: RowEdits) -> None:
        self._put_newer(edits_item(run, place, found), "written_us", found.written_us)

    def _put_newer(self, fresh: Item, version: str, value: int) -> None:
        try:
            self._table.put(fresh, f"attribute_not_exists(pk) OR {version} < :version", {"version": value})
        except ConditionFailed:
            return  # it is there as it is, or a later version of it

    def _kept_edits(self, run: Run, wanted: list[Place]) -> set[Place]:
        """Which of the rows, that say nothing of edits now, did so when they were last projected."""
        kept: set[Place] = set()
        for session_id in dict.fromkeys(session_id for session_id, _, _ in wanted):
            of_session = sorted((seq, block) for each, seq, block in wanted if each == session_id)
            bounds = {
                "pk": places.run_pk(run),
                "first": places.edit_sk(session_id, *of_session[0]),
                "last": places.edit_sk(session_id, *of_session[-1]),
            }
            for found in self._table.query("pk = :pk AND sk BETWEEN :first AND :last", bounds):
                kept.add((session_id, number(found, "seq"), number(found, "block_idx")))
        return kept


def relay_fact(image: Item) -> RelayFact:
    """The fact that the item of a claim row or an event is."""
    row = claim_row(image) if text(image, "sk").startswith(places.CLAIM_PREFIX) else event_of(image)
    return RelayFact(run_of(image), row, text(image, "at"))


def session_fact(image: Item, fetch: Callable[[str], bytes]) -> SessionFact:
    """The fact that the item of a session row is, without its body. `fetch` gets an object, where one is needed."""
    dataset = Dataset(text(image, "workspace"), text(image, "dataset"))
    return SessionFact(dataset, session_row(image, 0, fetch), text(image, "belongs_to"), number(image, "written_us"))
