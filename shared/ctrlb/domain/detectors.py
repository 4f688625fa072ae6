"""What a person should look at in a run, each finding with the rows that prove it."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, TypeAlias

from ctrlb.domain.rows import AgentActivity, Edit, Holder
from ctrlb.domain.run_rules import is_silent

Detector: TypeAlias = Literal[
    "duplicate_edit", "silent_agent", "edit_against_claim", "contention", "expired_hold", "edit_without_claim"
]


@dataclass(frozen=True, slots=True)
class ProvingRow:
    """A row of a session; or, without a session_id, an event, or a silent agent's last row of whatever kind."""

    agent: str
    ts_us: int
    session_id: str = ""
    seq: int | None = None
    block_idx: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a detector found, about one resource or one agent."""

    detector: Detector
    key: str
    """The resource it is about; empty when it is about an agent."""
    agents: tuple[str, ...]
    """Their names; with the user where two users' agents go by one name."""
    message: str
    rows: tuple[ProvingRow, ...]


def duplicate_edits(edits: Sequence[Edit]) -> list[Finding]:
    """One finding for each path that more than one agent edited, the latest edited first.

    The agents are in order of their first edit, the rows in order of time.
    """
    by_key: dict[str, list[Edit]] = {}
    for edit in sorted(edits, key=attrgetter("ts_us", "session_id", "seq", "block_idx")):
        by_key.setdefault(edit.key, []).append(edit)
    shared = [found for found in by_key.values() if len({edit.holder for edit in found}) > 1]
    return [_duplicate_edit(found) for found in sorted(shared, key=lambda found: (-found[-1].ts_us, found[0].key))]


def silent_agents(activities: Sequence[AgentActivity], now_us: int, silent_after_us: int, live: bool) -> list[Finding]:
    """One finding for each agent of a live run that is silent, the longest silent first; a done run has none."""
    silent = [activity for activity in activities if live and is_silent(activity, now_us, silent_after_us)]
    return [_silent_agent(activity, now_us) for activity in sorted(silent, key=attrgetter("last_us", "holder.agent"))]


def edit_row(edit: Edit) -> ProvingRow:
    """The session row that made the edit."""
    return ProvingRow(edit.holder.agent, edit.ts_us, edit.session_id, edit.seq, edit.block_idx)


def names_of(holders: list[Holder]) -> list[str]:
    """A name for each agent, in order of first appearance, that no two of them share."""
    distinct = list(dict.fromkeys(holders))
    agents = [holder.agent for holder in distinct]
    return [
        holder.agent if agents.count(holder.agent) == 1 else f"{holder.agent} ({holder.user})" for holder in distinct
    ]


def _duplicate_edit(edits: list[Edit]) -> Finding:
    names = names_of([edit.holder for edit in edits])
    rows = tuple(map(edit_row, edits))
    message = f"{edits[-1].path} was edited by {', '.join(names[:-1])} and {names[-1]}"
    return Finding("duplicate_edit", edits[0].key, tuple(names), message, rows)


def _silent_agent(activity: AgentActivity, now_us: int) -> Finding:
    agent = activity.holder.agent
    silent_s = (now_us - activity.last_us) // 1_000_000
    message = f"{agent} wrote its last row {silent_s} s ago and has not ended its session"
    return Finding("silent_agent", "", (agent,), message, (ProvingRow(agent, activity.last_us),))
