"""Who changed what, in SQLite. A row's number in its table tells equal times apart."""

import sqlite3

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.domain.rows import Audit

AUDIT_SCHEMA = """
CREATE TABLE IF NOT EXISTS audits (
    workspace TEXT NOT NULL, ts_us INTEGER NOT NULL, user TEXT NOT NULL, action TEXT NOT NULL,
    before TEXT NOT NULL, after TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS audits_by_time ON audits (workspace, ts_us);
CREATE INDEX IF NOT EXISTS audits_by_user ON audits (workspace, user, ts_us);
"""
_AFTER_ALL = (2**63 - 1, "0")
"""Above every (time, name)."""
_BELOW = "workspace = :workspace AND (ts_us, rowid) < (:before_us, CAST(:before_name AS INTEGER))"


def record(connection: sqlite3.Connection, audit: Audit) -> None:
    """Write the audit in the transaction of the change that it tells of."""
    row = (audit.workspace, audit.ts_us, audit.user, audit.action, audit.before, audit.after)
    connection.execute("INSERT INTO audits VALUES (?, ?, ?, ?, ?, ?)", row)


def audits(
    database: SqliteDatabase, workspace: str, before: tuple[int, str] | None, limit: int, user: str | None
) -> list[Audit]:
    """See IdentityStore.audits."""
    before_us, before_name = before or _AFTER_ALL
    having = _BELOW if user is None else f"{_BELOW} AND user = :user"
    page = {"before_us": before_us, "before_name": before_name, "limit": limit}
    rows = database.select(
        "SELECT workspace, ts_us, user, action, before, after, CAST(rowid AS TEXT) FROM audits "
        f"WHERE {having} ORDER BY ts_us DESC, rowid DESC LIMIT :limit",
        {"workspace": workspace, "user": user, **page},
    )
    return [Audit(*row) for row in rows]
