"""What the Runs page shows, read from the relay table's projected rows."""

from collections.abc import Iterator
from operator import attrgetter

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import Item, item, number, text
from ctrlb.adapters.dynamodb_projected_items import agent_activity, call_of, resource_row, row_edits, run_head
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.threads import Threads
from ctrlb.domain.rows import AgentActivity, ClaimRow, Dataset, Edit, Run, RunSummary
from ctrlb.domain.run_rules import merge_activities

BY_START = "by_start"
READERS = 8
MAX_FAILED_CALLS = 20_000
"""How many of a run's newest calls that failed are looked at for its edits."""


class DynamodbRuns:
    """The port RunStore on the relay table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._threads = Threads(READERS, "runs")

    def runs(
        self, dataset: Dataset, now_us: int, before: tuple[int, str] | None, limit: int, user: str | None
    ) -> list[RunSummary]:
        """See RunStore.runs."""
        values: dict[str, object] = {"list": places.runs_of(dataset)}
        condition = "listed_in = :list"
        if before is not None:
            values["before"] = places.run_listed_at(*before)
            condition += " AND listed_at < :before"
        if user is not None:
            values["user"] = user
        having = None if user is None else "contains(written_by, :user)"
        heads = self._table.query(
            condition, values, limit=limit, backwards=True, index=BY_START, consistent=False, having=having
        )
        return self._threads.each(lambda head: self._summary(head, now_us), heads)

    def run(self, run: Run, now_us: int, user: str | None) -> RunSummary | None:
        """See RunStore.run."""
        head = self._table.get(item(pk=places.run_pk(run), sk=places.HEAD))
        if head is None or user not in (None, *run_head(head).users):
            return None
        return self._summary(head, now_us)

    def agents(self, run: Run) -> list[AgentActivity]:
        """See RunStore.agents."""
        return merge_activities(map(agent_activity, self._projected(run, places.AGENT_PREFIX)))

    def resources(self, run: Run, limit: int) -> tuple[list[ClaimRow], int]:
        """See RunStore.resources."""
        found = self._projected(run, places.RESOURCE_PREFIX)
        found.sort(key=lambda each: text(each, "placed_at"), reverse=True)
        return [resource_row(each) for each in found[:limit]], len(found)

    def edits(self, run: Run, limit: int) -> list[Edit]:
        """See RunStore.edits."""
        failed = {call_of(each) for each in self._listed(places.failed_calls_of(run), MAX_FAILED_CALLS)}
        edits: list[Edit] = []
        for each in self._listed(places.edits_of(run)):
            if call_of(each) not in failed:
                edits += row_edits(each)
            if len(edits) >= limit:
                break
        return sorted(edits, key=attrgetter("ts_us", "session_id", "seq", "block_idx", "key"), reverse=True)[:limit]

    def _listed(self, listed_in: str, limit: int | None = None) -> Iterator[Item]:
        """What is listed there, newest first; read as far as it is asked for."""
        place = {"list": listed_in}
        return self._table.query(
            "listed_in = :list", place, limit=limit, backwards=True, index=BY_START, consistent=False
        )

    def _summary(self, found: Item, now_us: int) -> RunSummary:
        head = run_head(found)
        return RunSummary(
            run_id=text(found, "run_id"),
            started_us=head.started_us,
            last_us=head.last_us,
            agents=len(head.agents),
            events=number(found, "events"),
            held=self._held(text(found, "pk"), now_us) if now_us < head.lease_until_us else 0,
        )

    def _held(self, pk: str, now_us: int) -> int:
        """How many of the run's holds are live; not asked once all of them have ended."""
        values = {"pk": pk, "resources": places.RESOURCE_PREFIX, "hold": "HOLD", "now": now_us}
        return self._table.count(
            "pk = :pk AND begins_with(sk, :resources)",
            values,
            consistent=False,
            having="held_as = :hold AND lease_until_us > :now",
        )

    def _projected(self, run: Run, prefix: str) -> list[Item]:
        place = {"pk": places.run_pk(run), "prefix": prefix}
        return list(self._table.query("pk = :pk AND begins_with(sk, :prefix)", place, consistent=False))
