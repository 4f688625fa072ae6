"""What the Runs page needs of a run, worked out from its rows as a stream delivers them.

A stream may deliver a row twice, late, or after a younger one. So nothing is counted: all that is kept are sets, least
and greatest times, and of a thing that changes the version that is last by its own number. Merging is in any order,
and as often as may be, the same.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TypeAlias

from ctrlb.domain.rows import COUNTED_AGENTS, AgentActivity, ClaimRow, Dataset, Edit, Event, Holder, Run, SessionRow
from ctrlb.domain.run_rules import activities, edits_of, merge_activities, says_call_failed

AGENT_NAME_CHARS = 16
"""Of an agent's hash: enough to tell the agents of a run apart, and short, for a run's head holds all of them."""


@dataclass(frozen=True, slots=True)
class RelayFact:
    """A row of a run's relay as it was written."""

    run: Run
    row: ClaimRow | Event
    at: str
    """Its place among the run's rows: greater is newer, and of rows of one microsecond the one that came later."""


@dataclass(frozen=True, slots=True)
class SessionFact:
    """A session row as it was written, by whom and when."""

    dataset: Dataset
    row: SessionRow
    user: str
    written_us: int


Fact: TypeAlias = RelayFact | SessionFact
Place: TypeAlias = tuple[str, int, int]
"""A row's session_id, seq and block_idx."""


@dataclass(frozen=True, slots=True)
class RunHead:
    """What the list of runs shows of one, but for counts."""

    started_us: int
    last_us: int
    lease_until_us: int = 0
    """The latest end that any hold was given; after it, none is live."""
    users: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    """A short name for each; of more than COUNTED_AGENTS the least, which are the same in whatever order they come."""

    def merged(self, other: "RunHead") -> "RunHead":
        """Both in one."""
        return RunHead(
            min(self.started_us, other.started_us),
            max(self.last_us, other.last_us),
            max(self.lease_until_us, other.lease_until_us),
            self.users | other.users,
            frozenset(nsmallest(COUNTED_AGENTS, self.agents | other.agents)),
        )


@dataclass(frozen=True, slots=True)
class RowEdits:
    """What one version of a session row says of edits: those of its call, or that a call made none of its own.

    Neither, when a later version took it back.
    """

    written_us: int
    ts_us: int
    tool_use_id: str = ""
    """The call's."""
    edits: tuple[Edit, ...] = ()
    failed: bool = False

    @property
    def says_something(self) -> bool:
        """Whether it says either."""
        return self.failed or self.edits != ()


@dataclass(slots=True)
class Projection:
    """What some rows of a run add to what is known of it."""

    head: RunHead
    relay_us: int | None = None
    """When the newest of the rows in the relay was; None when none is there."""
    activities: dict[tuple[Holder, tuple[str, ...]], AgentActivity] = field(default_factory=dict)
    """One for each agent and session; for what an agent did in the relay, without a session."""
    resources: dict[str, RelayFact] = field(default_factory=dict)
    """The last row of each record, by the resource's key."""
    edits: dict[Place, RowEdits] = field(default_factory=dict)
    """Of each tool call, and each result of one, by the row's place."""


def project(facts: Iterable[Fact]) -> dict[Run, Projection]:
    """What the facts say about each run that they belong to. A session row without a run says nothing."""
    found: dict[Run, Projection] = {}
    for fact in facts:
        if isinstance(fact, RelayFact):
            _add_relay_row(found, fact)
        elif fact.row.run_id:
            _add_session_row(found, fact)
    return found


def merged_activity(one: AgentActivity, other: AgentActivity) -> AgentActivity:
    """Both in one; they are of one agent and one session."""
    [merged] = merge_activities([one, other])
    return merged


def agent_name(holder: Holder) -> str:
    """The short name under which the head of a run knows the agent."""
    text = f"{len(holder.user)}:{holder.user},{holder.agent}"
    return hashlib.sha256(text.encode()).hexdigest()[:AGENT_NAME_CHARS]


def _add_relay_row(found: dict[Run, Projection], fact: RelayFact) -> None:
    row = fact.row
    lease_until_us = row.lease_until_us if isinstance(row, ClaimRow) else 0
    activity = AgentActivity(row.holder, row.ts_us, row.ts_us, "")
    projection = _with_activity(found, fact.run, activity, lease_until_us)
    projection.relay_us = max(row.ts_us, projection.relay_us or 0)
    if isinstance(row, ClaimRow):
        known = projection.resources.get(row.key)
        if known is None or _number(known) < row.number:
            projection.resources[row.key] = fact


def _add_session_row(found: dict[Run, Projection], fact: SessionFact) -> None:
    row = fact.row
    [(run_id, activity)] = activities([row], fact.user)
    projection = _with_activity(found, Run(fact.dataset, run_id), activity, 0)
    known = projection.edits.get(row.identity)
    if row.block_type in ("tool_use", "tool_result") and (known is None or known.written_us < fact.written_us):
        edits, failed = tuple(edits_of(row, fact.user)), says_call_failed(row)
        projection.edits[row.identity] = RowEdits(fact.written_us, row.ts_us, row.tool_use_id, edits, failed)


def _with_activity(found: dict[Run, Projection], run: Run, activity: AgentActivity, lease_until_us: int) -> Projection:
    holder, place = activity.holder, (activity.holder, activity.session_ids)
    users, agents = frozenset((holder.user,)), frozenset((agent_name(holder),))
    head = RunHead(activity.first_us, activity.last_us, lease_until_us, users, agents)
    projection = found.setdefault(run, Projection(head))
    projection.head = projection.head.merged(head)
    known = projection.activities.get(place)
    projection.activities[place] = merged_activity(known, activity) if known else activity
    return projection


def _number(fact: RelayFact) -> int:
    assert isinstance(fact.row, ClaimRow)
    return fact.row.number
