"""What the Runs page shows, read from the sessions' file with the relay's file joined to it as `relay`.

Nothing is stored for it beyond what both write with their rows: `run_agents` and `relay_rows` there,
`run_activity`, `edits` and `failed_calls` here. So nothing shown here is older than the rows.
"""

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_relay import CLAIM_COLUMNS, claim_row
from ctrlb.domain.rows import COUNTED_AGENTS, AgentActivity, ClaimRow, Dataset, Edit, Holder, Run, RunSummary
from ctrlb.domain.run_rules import merge_activities

AFTER_ALL = (2**63 - 1, "")
"""Above every (started, run_id)."""

_DATASET = "workspace = :workspace AND dataset = :dataset"
_RUN = f"{_DATASET} AND run_id = :run_id"
_PAGED_RUN = f"{_DATASET} AND run_id = page.run_id"


def _summaries(scope: str) -> str:
    """The query for a page of the runs that `scope` chooses; only for the page are rows counted."""
    return f"""
WITH page AS (
    SELECT run_id, min(first_us) AS started_us
    FROM (
        SELECT run_id, user, first_us FROM relay.run_agents WHERE {scope}
        UNION ALL
        SELECT run_id, user, first_us FROM run_activity WHERE {scope}
    )
    GROUP BY run_id
    HAVING (:user IS NULL OR max(user = :user)) AND (started_us, run_id) < (:before_us, :before_id)
    ORDER BY started_us DESC, run_id DESC LIMIT :limit
)
SELECT
    run_id,
    started_us,
    max(
        coalesce((SELECT max(ts_us) FROM relay.relay_rows WHERE {_PAGED_RUN}), 0),
        coalesce((SELECT max(last_us) FROM run_activity WHERE {_PAGED_RUN}), 0)
    ),
    (
        SELECT min(count(*), {COUNTED_AGENTS}) FROM (
            SELECT user, agent FROM relay.run_agents WHERE {_PAGED_RUN}
            UNION
            SELECT user, agent FROM run_activity WHERE {_PAGED_RUN}
        )
    ),
    (SELECT count(*) FROM relay.relay_rows WHERE {_PAGED_RUN}),
    (
        SELECT count(*) FROM relay.relay_rows AS row
        WHERE {_PAGED_RUN} AND number IS NOT NULL AND kind = 'HOLD' AND lease_until_us > :now_us AND NOT EXISTS (
            SELECT 1 FROM relay.relay_rows WHERE {_PAGED_RUN} AND key = row.key AND number > row.number
        )
    )
FROM page ORDER BY started_us DESC, run_id DESC
"""


_RUNS_OF_DATASET = _summaries(_DATASET)
_ONE_RUN = _summaries(_RUN)
_RELAY_AGENTS = f"SELECT user, agent, min(ts_us), max(ts_us) FROM relay.relay_rows WHERE {_RUN} GROUP BY user, agent"
_SESSION_AGENTS = f"SELECT user, agent, first_us, last_us, last_block_type, session_id FROM run_activity WHERE {_RUN}"
# With max(number), SQLite takes the other columns from the row that has it.
_RESOURCES = f"""
WITH last AS (
    SELECT {CLAIM_COLUMNS}, arrival, max(number) FROM relay.relay_rows
    WHERE {_RUN} AND number IS NOT NULL GROUP BY key
)
SELECT count(*) OVER (), {CLAIM_COLUMNS} FROM last ORDER BY ts_us DESC, arrival DESC LIMIT :limit
"""
_EDITS = f"""
SELECT user, agent, key, path, ts_us, session_id, seq, block_idx FROM edits
WHERE {_RUN} AND NOT EXISTS (
    SELECT 1 FROM datasets
    CROSS JOIN sessions ON sessions.dataset = datasets.id AND sessions.session_id = edits.session_id
    CROSS JOIN session_rows AS call
        ON call.session = sessions.id AND call.seq = edits.seq AND call.block_idx = edits.block_idx
    CROSS JOIN failed_calls AS failed
        ON failed.session = sessions.id AND failed.run_id = edits.run_id AND failed.tool_use_id = call.tool_use_id
    WHERE datasets.workspace = :workspace AND datasets.name = :dataset
)
ORDER BY ts_us DESC, session_id DESC, seq DESC, block_idx DESC, key DESC LIMIT :limit
"""


class SqliteRuns:
    """The port RunStore on the two files of laptop mode."""

    def __init__(self, database: SqliteDatabase) -> None:
        """`database` is the sessions' file, with the relay's attached as `relay`."""
        self._database = database

    def runs(
        self, dataset: Dataset, now_us: int, before: tuple[int, str] | None, limit: int, user: str | None
    ) -> list[RunSummary]:
        """See RunStore.runs."""
        return self._summaries(_RUNS_OF_DATASET, _of_dataset(dataset), now_us, before or AFTER_ALL, limit, user)

    def run(self, run: Run, now_us: int, user: str | None) -> RunSummary | None:
        """See RunStore.run."""
        found = self._summaries(_ONE_RUN, _of_run(run), now_us, AFTER_ALL, 1, user)
        return found[0] if found else None

    def agents(self, run: Run) -> list[AgentActivity]:
        """See RunStore.agents."""
        relay = [
            AgentActivity(Holder(user, agent), first_us, last_us, "")
            for user, agent, first_us, last_us in self._database.select(_RELAY_AGENTS, _of_run(run))
        ]
        sessions = [
            AgentActivity(Holder(user, agent), first_us, last_us, last_block_type, (session_id,))
            for user, agent, first_us, last_us, last_block_type, session_id in self._database.select(
                _SESSION_AGENTS, _of_run(run)
            )
        ]
        return merge_activities(relay + sessions)

    def resources(self, run: Run, limit: int) -> tuple[list[ClaimRow], int]:
        """See RunStore.resources."""
        rows = self._database.select(_RESOURCES, {**_of_run(run), "limit": limit})
        return [claim_row(*columns) for _, *columns in rows], rows[0][0] if rows else 0

    def edits(self, run: Run, limit: int) -> list[Edit]:
        """See RunStore.edits."""
        return [
            Edit(Holder(user, agent), *columns)
            for user, agent, *columns in self._database.select(_EDITS, {**_of_run(run), "limit": limit})
        ]

    def _summaries(
        self,
        query: str,
        scope: dict[str, object],
        now_us: int,
        before: tuple[int, str],
        limit: int,
        user: str | None,
    ) -> list[RunSummary]:
        before_us, before_id = before
        page = {"before_us": before_us, "before_id": before_id, "limit": limit}
        rows = self._database.select(query, {**scope, **page, "now_us": now_us, "user": user})
        return [RunSummary(*row) for row in rows]


def _of_dataset(dataset: Dataset) -> dict[str, object]:
    return {"workspace": dataset.workspace, "dataset": dataset.name}


def _of_run(run: Run) -> dict[str, object]:
    return {**_of_dataset(run.dataset), "run_id": run.run_id}
