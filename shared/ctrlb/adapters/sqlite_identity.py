"""Members, roles, keys, settings and sign-ins in SQLite. Every read sees the last write: nothing is cached."""

import dataclasses
import json
import sqlite3
from typing import Any

from ctrlb.adapters import sqlite_audits
from ctrlb.adapters.identity_text import read_grants, written_grants
from ctrlb.adapters.sqlite_audits import AUDIT_SCHEMA, record
from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.domain.rows import Audit, Grounds, IngestCredential, Key, Member, Role, Settings, SignIn
from ctrlb.ports import MAX_LIVE_KEYS, Moved, RoleGiven, TooManyKeys

_SCHEMA = """
CREATE TABLE IF NOT EXISTS people (
    workspace TEXT NOT NULL, user TEXT NOT NULL, role TEXT NOT NULL, active INTEGER NOT NULL,
    grants TEXT NOT NULL, changed_us INTEGER NOT NULL,
    PRIMARY KEY (workspace, user)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS roles (
    workspace TEXT NOT NULL, name TEXT NOT NULL, permissions TEXT NOT NULL, changed_us INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (
    workspace TEXT NOT NULL, key_id TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL,
    secret_sha256 TEXT NOT NULL, created_us INTEGER NOT NULL, expires_us INTEGER, revoked_us INTEGER,
    last_used_us INTEGER,
    PRIMARY KEY (workspace, key_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_user ON keys (workspace, user, created_us, key_id);
CREATE TABLE IF NOT EXISTS ingest_credentials (
    workspace TEXT NOT NULL, credential_id TEXT NOT NULL, dataset TEXT NOT NULL, name TEXT NOT NULL,
    created_by TEXT NOT NULL, secret_sha256 TEXT NOT NULL, created_us INTEGER NOT NULL, revoked_us INTEGER,
    PRIMARY KEY (workspace, credential_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (workspace TEXT PRIMARY KEY, settings TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sign_ins (
    token_sha256 TEXT PRIMARY KEY, workspace TEXT NOT NULL, user TEXT NOT NULL, expires_us INTEGER NOT NULL,
    once INTEGER NOT NULL
) WITHOUT ROWID;
"""
IDENTITY_SCHEMA = _SCHEMA + AUDIT_SCHEMA
_KEY = "SELECT workspace, key_id, user, name, secret_sha256, created_us, expires_us, revoked_us, last_used_us FROM keys"
_KEYS_OF = f"{_KEY} WHERE workspace = ? AND user = ? ORDER BY created_us, key_id"
_MEMBER = "SELECT workspace, user, role, active, grants, changed_us FROM people WHERE workspace = ?"
_ROLE = "SELECT workspace, name, permissions, changed_us FROM roles WHERE workspace = ?"
_SETTINGS = "SELECT settings FROM settings WHERE workspace = ?"
_INGEST = (
    "SELECT workspace, credential_id, dataset, name, created_by, secret_sha256, created_us, revoked_us "
    "FROM ingest_credentials WHERE workspace = ?"
)
_SIGN_IN = "SELECT token_sha256, workspace, user, expires_us FROM sign_ins WHERE token_sha256 = ?"
_CODE = f"{_SIGN_IN} AND once"


class SqliteIdentity:
    """The port IdentityStore on one SQLite file."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def key(self, workspace: str, key_id: str, presented_sha256: str = "") -> Key | None:
        """See IdentityStore.key."""
        rows = self._database.select(f"{_KEY} WHERE workspace = ? AND key_id = ?", (workspace, key_id))
        return Key(*rows[0]) if rows else None

    def add_key(self, key: Key, audit: Audit) -> None:
        """See IdentityStore.add_key."""

        def job(connection: sqlite3.Connection) -> None:
            keys = (Key(*row) for row in connection.execute(_KEYS_OF, (key.workspace, key.user)))
            if sum(each.is_live(key.created_us) for each in keys) >= MAX_LIVE_KEYS:
                raise TooManyKeys
            connection.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", dataclasses.astuple(key))
            record(connection, audit)

        self._database.write(job)

    def keys(self, workspace: str, user: str) -> list[Key]:
        """See IdentityStore.keys."""
        return [Key(*row) for row in self._database.select(_KEYS_OF, (workspace, user))]

    def revoke_key(self, workspace: str, key_id: str, revoked_us: int, audit: Audit) -> None:
        """See IdentityStore.revoke_key."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE keys SET revoked_us = coalesce(revoked_us, ?) WHERE workspace = ? AND key_id = ?",
                (revoked_us, workspace, key_id),
            )
            record(connection, audit)

        self._database.write(job)

    def touch_key(self, workspace: str, key_id: str, used_us: int) -> None:
        """See IdentityStore.touch_key."""
        self._database.write(
            lambda connection: connection.execute(
                "UPDATE keys SET last_used_us = max(coalesce(last_used_us, 0), ?) WHERE workspace = ? AND key_id = ?",
                (used_us, workspace, key_id),
            )
        )

    def member(self, workspace: str, user: str, *, fresh: bool = False) -> Member | None:
        """See IdentityStore.member."""
        rows = self._database.select(f"{_MEMBER} AND user = ?", (workspace, user))
        return _member(rows[0]) if rows else None

    def members(self, workspace: str) -> list[Member]:
        """See IdentityStore.members."""
        return [_member(row) for row in self._database.select(f"{_MEMBER} ORDER BY user", (workspace,))]

    def change_member(self, before: Member | None, after: Member, by: Grounds | None, audit: Audit) -> None:
        """See IdentityStore.change_member."""

        def job(connection: sqlite3.Connection) -> None:
            if _found_member(connection, after) != before:
                raise Moved
            _check_unmoved(connection, by)
            row = (after.workspace, after.user, after.role, after.active, written_grants(after.grants))
            connection.execute("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?, ?, ?)", (*row, after.changed_us))
            record(connection, audit)

        self._database.write(job)

    def role(self, workspace: str, name: str, *, fresh: bool = False) -> Role | None:
        """See IdentityStore.role."""
        rows = self._database.select(f"{_ROLE} AND name = ?", (workspace, name))
        return _role(rows[0]) if rows else None

    def roles(self, workspace: str) -> list[Role]:
        """See IdentityStore.roles."""
        return [_role(row) for row in self._database.select(f"{_ROLE} ORDER BY name", (workspace,))]

    def change_role(self, before: Role | None, after: Role, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.change_role."""

        def job(connection: sqlite3.Connection) -> None:
            if _found_role(connection, after.workspace, after.name) != before:
                raise Moved
            _check_unmoved(connection, by)
            row = (after.workspace, after.name, json.dumps(sorted(after.permissions)), after.changed_us)
            connection.execute("INSERT OR REPLACE INTO roles VALUES (?, ?, ?, ?)", row)
            record(connection, audit)

        self._database.write(job)

    def remove_role(self, role: Role, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.remove_role."""
        place = (role.workspace, role.name)

        def job(connection: sqlite3.Connection) -> None:
            if _found_role(connection, *place) != role:
                raise Moved
            _check_unmoved(connection, by)
            ((people,),) = connection.execute("SELECT count(*) FROM people WHERE workspace = ? AND role = ?", place)
            if people:
                raise RoleGiven(people)
            connection.execute("DELETE FROM roles WHERE workspace = ? AND name = ?", place)
            record(connection, audit)

        self._database.write(job)

    def settings(self, workspace: str) -> Settings:
        """See IdentityStore.settings."""
        return _settings(self._database.select(_SETTINGS, (workspace,)))

    def change_settings(
        self, workspace: str, before: Settings, after: Settings, by: Grounds | None, audit: Audit
    ) -> None:
        """See IdentityStore.change_settings."""

        def job(connection: sqlite3.Connection) -> None:
            if _settings(connection.execute(_SETTINGS, (workspace,)).fetchall()) != before:
                raise Moved
            _check_unmoved(connection, by)
            text = json.dumps(dataclasses.asdict(after))
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (workspace, text))
            record(connection, audit)

        self._database.write(job)

    def ingest_credential(
        self, workspace: str, credential_id: str, presented_sha256: str = ""
    ) -> IngestCredential | None:
        """See IdentityStore.ingest_credential."""
        rows = self._database.select(f"{_INGEST} AND credential_id = ?", (workspace, credential_id))
        return IngestCredential(*rows[0]) if rows else None

    def ingest_credentials(self, workspace: str) -> list[IngestCredential]:
        """See IdentityStore.ingest_credentials."""
        rows = self._database.select(f"{_INGEST} ORDER BY created_us, credential_id", (workspace,))
        return [IngestCredential(*row) for row in rows]

    def add_ingest_credential(self, credential: IngestCredential, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.add_ingest_credential."""

        def job(connection: sqlite3.Connection) -> None:
            _check_unmoved(connection, by)
            row = dataclasses.astuple(credential)
            connection.execute("INSERT INTO ingest_credentials VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            record(connection, audit)

        self._database.write(job)

    def revoke_ingest_credential(
        self, workspace: str, credential_id: str, revoked_us: int, by: Grounds, audit: Audit
    ) -> None:
        """See IdentityStore.revoke_ingest_credential."""

        def job(connection: sqlite3.Connection) -> None:
            _check_unmoved(connection, by)
            changed = connection.execute(
                "UPDATE ingest_credentials SET revoked_us = coalesce(revoked_us, ?) "
                "WHERE workspace = ? AND credential_id = ?",
                (revoked_us, workspace, credential_id),
            )
            if changed.rowcount == 0:
                raise Moved
            record(connection, audit)

        self._database.write(job)

    def audits(self, workspace: str, before: tuple[int, str] | None, limit: int, user: str | None) -> list[Audit]:
        """See IdentityStore.audits."""
        return sqlite_audits.audits(self._database, workspace, before, limit, user)

    def add_sign_in(self, sign_in: SignIn, *, once: bool) -> None:
        """See IdentityStore.add_sign_in."""
        self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO sign_ins VALUES (?, ?, ?, ?, ?)", (*dataclasses.astuple(sign_in), once)
            )
        )

    def sign_in(self, token_sha256: str) -> SignIn | None:
        """See IdentityStore.sign_in."""
        rows = self._database.select(f"{_SIGN_IN} AND NOT once", (token_sha256,))
        return SignIn(*rows[0]) if rows else None

    def use_code(self, token_sha256: str) -> SignIn | None:
        """See IdentityStore.use_code. A code that nobody made keeps no write waiting."""
        if not self._database.select(_CODE, (token_sha256,)):
            return None

        def job(connection: sqlite3.Connection) -> SignIn | None:
            row = connection.execute(_CODE, (token_sha256,)).fetchone()
            connection.execute("DELETE FROM sign_ins WHERE token_sha256 = ? AND once", (token_sha256,))
            return SignIn(*row) if row else None

        return self._database.write(job)

    def remove_sign_in(self, token_sha256: str) -> None:
        """See IdentityStore.remove_sign_in."""
        self._database.write(
            lambda connection: connection.execute("DELETE FROM sign_ins WHERE token_sha256 = ?", (token_sha256,))
        )


def _found_member(connection: sqlite3.Connection, member: Member) -> Member | None:
    row = connection.execute(f"{_MEMBER} AND user = ?", (member.workspace, member.user)).fetchone()
    return _member(row) if row else None


def _found_role(connection: sqlite3.Connection, workspace: str, name: str) -> Role | None:
    row = connection.execute(f"{_ROLE} AND name = ?", (workspace, name)).fetchone()
    return _role(row) if row else None


def _check_unmoved(connection: sqlite3.Connection, by: Grounds | None) -> None:
    """Raise Moved unless all that a change was decided by is as it was read."""
    if by is None:
        return
    found = {name: _found_role(connection, by.by.workspace, name) for name in by.roles}
    if _found_member(connection, by.by) != by.by or found != by.roles:
        raise Moved


def _member(row: tuple[Any, ...]) -> Member:
    workspace, user, role, active, grants, changed_us = row
    return Member(workspace, user, role, bool(active), read_grants(grants), changed_us)


def _role(row: tuple[Any, ...]) -> Role:
    workspace, name, permissions, changed_us = row
    return Role(workspace, name, frozenset(json.loads(permissions)), changed_us)


def _settings(rows: list[tuple[str]]) -> Settings:
    return Settings(**json.loads(rows[0][0])) if rows else Settings()
