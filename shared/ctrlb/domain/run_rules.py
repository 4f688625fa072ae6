"""What a run's rows say about it: who worked in it and when, what was edited, what is live.

Source: the contract's "Runs and settings" and "How a claim is decided".
"""

import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Literal, TypeAlias

from ctrlb.domain.errors import Invalid
from ctrlb.domain.resource_keys import resource_key
from ctrlb.domain.rows import AgentActivity, ClaimRow, Edit, Holder, SessionRow

ResourceState: TypeAlias = Literal["held", "expired", "released", "done"]


def edits_of(row: SessionRow, user: str) -> list[Edit]:
    """The edits that a tool call of a run reports in `paths`, one for each key, in their order.

    Every other row has none. A path is keyed as the edit check keys it, so an edit lines up with the
    claim on its file. What in `paths` is no path is skipped: the row was accepted, it only proves less.
    """
    if row.block_type != "tool_use" or not row.run_id or not row.paths:
        return []
    edits: dict[str, Edit] = {}
    for path in _paths(row.paths):
        try:
            key = resource_key(f"path:{path}", row.cwd)
        except Invalid:
            continue
        edit = Edit(_holder(row, user), key, path, row.ts_us, row.session_id, row.seq, row.block_idx)
        edits.setdefault(key, edit)
    return list(edits.values())


def says_call_failed(row: SessionRow) -> bool:
    """Whether the row is the result of a call of a run that was denied or failed, so that it made none of its edits.

    The call is known by its `tool_use_id`, within the session and the run of both rows.
    """
    return row.block_type == "tool_result" and row.is_error and row.tool_use_id != "" and row.run_id != ""


def activities(rows: Sequence[SessionRow], user: str) -> list[tuple[str, AgentActivity]]:
    """The run id and the activity for each run, agent and session of the rows; rows without a run have none.

    The last row is the latest by time, then by its place in the session.
    """
    groups: dict[tuple[str, Holder, str], list[SessionRow]] = {}
    for row in rows:
        if row.run_id:
            groups.setdefault((row.run_id, _holder(row, user), row.session_id), []).append(row)
    found = []
    for (run_id, holder, session_id), group in groups.items():
        first, last = min(group, key=attrgetter("ts_us")), max(group, key=attrgetter("ts_us", "seq", "block_idx"))
        found.append((run_id, AgentActivity(holder, first.ts_us, last.ts_us, last.block_type, (session_id,))))
    return found


def merge_activities(found: Iterable[AgentActivity]) -> list[AgentActivity]:
    """One activity for each holder over all their sessions and relay rows, in order of their first row.

    Of several last rows in one microsecond the end of a session counts, then any session row before a relay row.
    """
    groups: dict[Holder, list[AgentActivity]] = {}
    for activity in found:
        groups.setdefault(activity.holder, []).append(activity)
    merged = [_merged(holder, group) for holder, group in groups.items()]
    return sorted(merged, key=attrgetter("first_us", "holder.user", "holder.agent"))


def is_live(last_us: int, live_hold: bool, now_us: int, lease_us: int) -> bool:
    """Whether a run goes on: a hold in it is live, or its last row is younger than the lease."""
    return live_hold or now_us - last_us < lease_us


def is_silent(activity: AgentActivity, now_us: int, silent_after_us: int) -> bool:
    """Whether an agent of a live run stopped writing without ending its session by a `result` block."""
    return activity.last_block_type != "result" and now_us - activity.last_us > silent_after_us


def resource_state(last_row: ClaimRow, now_us: int) -> ResourceState:
    """What the last row of a resource's record means at `now_us`."""
    if last_row.kind == "DONE":
        return "done"
    if last_row.kind == "RELEASE":
        return "released"
    return "held" if now_us < last_row.lease_until_us else "expired"


def _holder(row: SessionRow, user: str) -> Holder:
    """Who wrote the row; one that names no agent is told apart by its subagent, else by its session."""
    return Holder(user, row.agent or row.agent_id or row.session_id)


def _paths(text: str) -> list[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # brackets nested too deep
        return []
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []


def _merged(holder: Holder, group: list[AgentActivity]) -> AgentActivity:
    last = max(group, key=lambda one: (one.last_us, one.last_block_type == "result", one.last_block_type))
    by_start = sorted(group, key=attrgetter("first_us", "session_ids"))
    sessions = dict.fromkeys(session_id for activity in by_start for session_id in activity.session_ids)
    first_us = min(activity.first_us for activity in group)
    return AgentActivity(holder, first_us, last.last_us, last.last_block_type, tuple(sessions))
