"""The record of runs in one table of a SQLite file.

A claim row takes its number by a unique index: of any number of writers, threads or processes, one gets it.
Events stand in the same table without a number, so that one index orders all that happened in a run, and
`arrival` decides between rows of the same microsecond. Nothing of a record is updated or deleted.

`run_agents` holds what the list of runs would else have to search for. It is written in the same transaction,
but as good as never: only the first row of an agent in a run changes it.
"""

import sqlite3
from collections.abc import Sequence

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.domain.rows import ClaimKind, ClaimRow, Event, Holder, Run
from ctrlb.ports import NumberTaken

RELAY_SCHEMA = """
CREATE TABLE IF NOT EXISTS relay_rows (
    arrival INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    dataset TEXT NOT NULL,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    number INTEGER, -- NULL: an event beside the records
    kind TEXT NOT NULL,
    resource TEXT NOT NULL,
    user TEXT NOT NULL,
    agent TEXT NOT NULL,
    ts_us INTEGER NOT NULL,
    lease_until_us INTEGER NOT NULL DEFAULT 0,
    request_id TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX IF NOT EXISTS relay_records
    ON relay_rows (workspace, dataset, run_id, key, number) WHERE number IS NOT NULL;
CREATE INDEX IF NOT EXISTS relay_times
    ON relay_rows (workspace, dataset, run_id, ts_us, arrival, user, agent);
CREATE TABLE IF NOT EXISTS run_agents (
    workspace TEXT NOT NULL,
    dataset TEXT NOT NULL,
    run_id TEXT NOT NULL,
    user TEXT NOT NULL,
    agent TEXT NOT NULL,
    first_us INTEGER NOT NULL,
    PRIMARY KEY (workspace, dataset, run_id, user, agent)
) WITHOUT ROWID;
"""

CLAIM_COLUMNS = "number, kind, key, resource, user, agent, ts_us, lease_until_us, request_id"
"""What `claim_row` reads."""

_APPEND = """
INSERT INTO relay_rows
    (workspace, dataset, run_id, key, number, kind, resource, user, agent, ts_us, lease_until_us, request_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_ADD_EVENT = """
INSERT INTO relay_rows (workspace, dataset, run_id, key, kind, resource, user, agent, ts_us, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_AGENT = """
INSERT INTO run_agents VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET first_us = excluded.first_us WHERE excluded.first_us < first_us
"""
_LAST = f"""
SELECT {CLAIM_COLUMNS} FROM relay_rows
WHERE workspace = ? AND dataset = ? AND run_id = ? AND key = ? AND number IS NOT NULL
ORDER BY number DESC LIMIT 1
"""
_NEWEST = """
SELECT kind, user, agent, ts_us, resource, key, text, lease_until_us FROM relay_rows
WHERE workspace = ? AND dataset = ? AND run_id = ?
ORDER BY ts_us DESC, arrival DESC LIMIT ?
"""


class SqliteRelay:
    """The port RelayStore on one SQLite file."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def append(self, run: Run, row: ClaimRow) -> None:
        """See RelayStore.append."""
        holder, scope = row.holder, _scope(run)
        state = (row.kind, row.resource, holder.user, holder.agent, row.ts_us, row.lease_until_us, row.request_id)

        def job(connection: sqlite3.Connection) -> None:
            if connection.execute(_APPEND, (*scope, row.key, row.number, *state)).rowcount == 0:
                raise NumberTaken(f"{row.key} has a row {row.number}")
            connection.execute(_ADD_AGENT, (*scope, holder.user, holder.agent, row.ts_us))

        self._database.write(job)

    def last(self, run: Run, key: str) -> ClaimRow | None:
        """See RelayStore.last."""
        rows = self._database.select(_LAST, (*_scope(run), key))
        return claim_row(*rows[0]) if rows else None

    def last_of_each(self, run: Run, keys: Sequence[str]) -> list[ClaimRow | None]:
        """See RelayStore.last_of_each."""
        return [self.last(run, key) for key in keys]

    def add_events(self, run: Run, *events: Event) -> None:
        """See RelayStore.add_events. All of them are written, or none."""
        scope = _scope(run)

        def job(connection: sqlite3.Connection) -> None:
            for event in events:
                who = (event.holder.user, event.holder.agent, event.ts_us)
                connection.execute(_ADD_EVENT, (*scope, event.key, event.kind, event.resource, *who, event.text))
                connection.execute(_ADD_AGENT, (*scope, *who))

        self._database.write(job)

    def newest(self, run: Run, limit: int) -> list[Event]:
        """See RelayStore.newest."""
        rows = self._database.select(_NEWEST, (*_scope(run), limit))
        return [Event(kind, Holder(user, agent), *columns) for kind, user, agent, *columns in rows]


def claim_row(
    number: int,
    kind: ClaimKind,
    key: str,
    resource: str,
    user: str,
    agent: str,
    ts_us: int,
    lease_until_us: int,
    request_id: str,
) -> ClaimRow:
    """The claim row of the CLAIM_COLUMNS of a stored one."""
    return ClaimRow(number, kind, key, resource, Holder(user, agent), ts_us, lease_until_us, request_id)


def _scope(run: Run) -> tuple[str, str, str]:
    return run.dataset.workspace, run.dataset.name, run.run_id
