"""What the Runs page is read from, changed with the session rows: what they edited, what failed, and when agents wrote.

`run_activity` has one row for each run, agent and session, which new rows only widen. When a row is replaced that was
its first or last, and the new one is otherwise, the session's rows in that run are looked through again: so no run and
no time outlives the rows that it was told by.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ctrlb.domain.rows import AgentActivity, Dataset, Edit, SessionRow
from ctrlb.domain.run_rules import activities, says_call_failed

_MERGE_ACTIVITY = """
INSERT INTO run_activity (workspace, dataset, run_id, user, agent, session_id, first_us, last_us, last_block_type)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    first_us = min(first_us, excluded.first_us),
    last_us = max(last_us, excluded.last_us),
    -- Of two last rows in one microsecond a `result` counts (it sorts first): the outcome of resends is the same.
    last_block_type = CASE
        WHEN excluded.last_us > last_us THEN excluded.last_block_type
        WHEN excluded.last_us < last_us THEN last_block_type
        ELSE min(last_block_type, excluded.last_block_type)
    END
"""
_IS_FIRST_OR_LAST = """
SELECT 1 FROM run_activity
WHERE workspace = ? AND dataset = ? AND run_id = ? AND user = ? AND agent = ? AND session_id = ?
    AND (first_us >= ? OR last_us <= ?)
"""
_REMOVE_ACTIVITY = "DELETE FROM run_activity WHERE workspace = ? AND dataset = ? AND run_id = ? AND session_id = ?"
_FIRST_AND_LAST_ROWS = """
WITH found AS (
    SELECT agent, agent_id, ts_us, seq, block_idx, block_type FROM session_rows
    WHERE session = :session AND run_id = :run_id
)
SELECT found.agent, found.agent_id, found.ts_us, found.seq, found.block_idx, found.block_type
FROM found
JOIN (
    SELECT agent, agent_id, min(ts_us) AS first_us, max(ts_us) AS last_us FROM found GROUP BY agent, agent_id
) AS bounds
    ON bounds.agent = found.agent AND bounds.agent_id = found.agent_id
    AND found.ts_us IN (bounds.first_us, bounds.last_us)
"""
_ADD_EDIT = """
INSERT OR REPLACE INTO edits
    (workspace, dataset, run_id, user, agent, key, path, ts_us, session_id, seq, block_idx)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_REMOVE_EDITS = """
DELETE FROM edits WHERE workspace = ? AND dataset = ? AND run_id = ?
    AND ts_us = ? AND session_id = ? AND seq = ? AND block_idx = ?
"""
_ADD_FAILED_CALL = "INSERT OR REPLACE INTO failed_calls VALUES (?, ?, ?, ?, ?)"
_REMOVE_FAILED_CALL = """
DELETE FROM failed_calls WHERE session = ? AND run_id = ? AND tool_use_id = ? AND seq = ? AND block_idx = ?
"""


class RunWrites:
    """What one upload changes for the runs of its rows, within its transaction."""

    def __init__(
        self, connection: sqlite3.Connection, dataset: Dataset, user: str, sessions: Mapping[str, int]
    ) -> None:
        """`sessions` are the numbers of the upload's sessions by their ids; they belong to `user`."""
        self._connection = connection
        self._name = (dataset.workspace, dataset.name)
        self._user = user
        self._sessions = sessions

    def replace(self, old: Sequence[SessionRow], new: Sequence[SessionRow], edits: Iterable[tuple[str, Edit]]) -> None:
        """Follow what the rows' table has been told. `edits` are those of the new rows, each with its run."""
        places = ((row.run_id, row.ts_us, *row.identity) for row in old)
        self._connection.executemany(_REMOVE_EDITS, ((*self._name, *place) for place in places))
        values = ((*self._name, run_id, *_edit_values(edit)) for run_id, edit in edits)
        self._connection.executemany(_ADD_EDIT, values)
        self._connection.executemany(_REMOVE_FAILED_CALL, self._failed_calls(old))
        self._connection.executemany(_ADD_FAILED_CALL, self._failed_calls(new))
        self._merge(activities(new, self._user))
        places_of_old = {row.identity for row in old}
        told = {row.identity: activities([row], self._user) for row in new if row.identity in places_of_old}
        self._take_back([row for row in old if told[row.identity] != activities([row], self._user)])

    def _failed_calls(self, rows: Iterable[SessionRow]) -> Iterator[tuple[object, ...]]:
        for row in rows:
            if says_call_failed(row):
                yield (self._sessions[row.session_id], row.run_id, row.tool_use_id, row.seq, row.block_idx)

    def _merge(self, found: Iterable[tuple[str, AgentActivity]]) -> None:
        values = ((*self._name, *_place(run_id, activity), *_state(activity)) for run_id, activity in found)
        self._connection.executemany(_MERGE_ACTIVITY, values)

    def _take_back(self, gone: Sequence[SessionRow]) -> None:
        told_by = {
            (run_id, *activity.session_ids)
            for run_id, activity in activities(gone, self._user)
            if self._is_first_or_last(run_id, activity)
        }
        for run_id, session_id in sorted(told_by):
            self._connection.execute(_REMOVE_ACTIVITY, (*self._name, run_id, session_id))
            self._merge(activities(self._first_and_last_rows(run_id, session_id), self._user))

    def _is_first_or_last(self, run_id: str, activity: AgentActivity) -> bool:
        place = (*self._name, *_place(run_id, activity))
        found = self._connection.execute(_IS_FIRST_OR_LAST, (*place, activity.first_us, activity.last_us))
        return found.fetchone() is not None

    def _first_and_last_rows(self, run_id: str, session_id: str) -> list[SessionRow]:
        """Of each agent of the session in the run."""
        wanted = {"session": self._sessions[session_id], "run_id": run_id}
        return [
            SessionRow(
                ts_us=ts_us,
                session_id=session_id,
                seq=seq,
                block_idx=block_idx,
                agent_id=agent_id,
                run_id=run_id,
                agent=agent,
                block_type=block_type,
            )
            for agent, agent_id, ts_us, seq, block_idx, block_type in self._connection.execute(
                _FIRST_AND_LAST_ROWS, wanted
            )
        ]


def _place(run_id: str, activity: AgentActivity) -> tuple[str, ...]:
    [session_id] = activity.session_ids
    return (run_id, activity.holder.user, activity.holder.agent, session_id)


def _state(activity: AgentActivity) -> tuple[int, int, str]:
    return (activity.first_us, activity.last_us, activity.last_block_type)


def _edit_values(edit: Edit) -> tuple[object, ...]:
    place = (edit.ts_us, edit.session_id, edit.seq, edit.block_idx)
    return (edit.holder.user, edit.holder.agent, edit.key, edit.path, *place)
