"""Members, roles, keys, settings, audits and sign-ins: the small rows of the relay table.

A change and its audit are one transaction. Sign-ins and codes carry their end for DynamoDB's own sweeper, which may
be days late: whoever reads one compares its end with the present time.
"""

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from operator import attrgetter

from ctrlb.adapters import dynamodb_identity_rows as rows
from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import Item, item, number, text
from ctrlb.adapters.dynamodb_table import Check, ConditionFailed, Table, Values
from ctrlb.adapters.identity_text import written_grants
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Audit, Grounds, IngestCredential, Key, Member, Role, Settings, SignIn
from ctrlb.ports import MAX_LIVE_KEYS, Moved, Randomness, RoleGiven, TooManyKeys

ADD_TRIES = 16
"""How often a key is added anew because another of the same person came first."""
_S_US = 1_000_000


class DynamodbIdentity:
    """The port IdentityStore on the relay table. Every read sees the last write: nothing is cached."""

    def __init__(self, table: Table, random: Randomness) -> None:
        self._table = table
        self._random = random

    def key(self, workspace: str, key_id: str, presented_sha256: str = "") -> Key | None:
        """See IdentityStore.key."""
        found = self._table.get(rows.key_place(workspace, key_id))
        return rows.key(workspace, found) if found else None

    def add_key(self, key: Key, audit: Audit) -> None:
        """See IdentityStore.add_key. The count of the keys that were made tells whether another came meanwhile."""
        place = item(pk=places.workspace_pk(key.workspace), sk=places.keys_sk(key.user))
        for _ in range(ADD_TRIES):
            found = self._table.get(place)
            live = sum(each.is_live(key.created_us) for each in self.keys(key.workspace, key.user))
            if live >= MAX_LIVE_KEYS:
                raise TooManyKeys
            condition, values = "attribute_not_exists(pk)", None
            if found:
                condition, values = "made = :made", {"made": number(found, "made")}
            row = place | item(made=number(found or {}, "made") + 1)
            with contextlib.suppress(ConditionFailed):
                self._table.put_with(row, condition, values, [rows.key_item(key), self._audit(audit)])
                return
        raise Unavailable("you are making other keys all the time; nothing was made, send it again")

    def keys(self, workspace: str, user: str) -> list[Key]:
        """See IdentityStore.keys."""
        place = {"pk": places.workspace_pk(workspace), "keys": places.keys_of(user)}
        found = self._table.query("pk = :pk AND begins_with(#at, :keys)", place, index=places.BY_TIME)
        return [rows.key(workspace, each) for each in found]

    def revoke_key(self, workspace: str, key_id: str, revoked_us: int, audit: Audit) -> None:
        """See IdentityStore.revoke_key."""
        with contextlib.suppress(ConditionFailed):  # there is nothing to revoke
            self._revoke(rows.key_place(workspace, key_id), revoked_us, None, audit)

    def touch_key(self, workspace: str, key_id: str, used_us: int) -> None:
        """See IdentityStore.touch_key."""
        with contextlib.suppress(ConditionFailed):  # there is no such key, or it was used later still
            self._table.update(
                rows.key_place(workspace, key_id),
                "SET last_used_us = :now",
                "attribute_exists(pk) AND (attribute_not_exists(last_used_us) OR last_used_us < :now)",
                {"now": used_us},
            )

    def member(self, workspace: str, user: str, *, fresh: bool = False) -> Member | None:
        """See IdentityStore.member."""
        found = self._table.get(rows.member_place(workspace, user))
        return rows.member(workspace, found) if found else None

    def members(self, workspace: str) -> list[Member]:
        """See IdentityStore.members."""
        place = {"pk": places.workspace_pk(workspace), "members": places.MEMBER_PREFIX}
        found = self._table.query("pk = :pk AND begins_with(sk, :members)", place)
        return sorted((rows.member(workspace, each) for each in found), key=attrgetter("user"))

    def change_member(self, before: Member | None, after: Member, by: Grounds | None, audit: Audit) -> None:
        """See IdentityStore.change_member."""
        row = rows.member_place(after.workspace, after.user) | item(
            user=after.user,
            role=after.role,
            active=after.active,
            grants=written_grants(after.grants),
            changed_us=after.changed_us,
        )
        beside = [self._audit(audit)]
        if by is not None and by.roles.get(after.role) and (before is None or before.role != after.role):
            giving = rows.given_place(after.workspace, after.role) | item(giving=self._random.request_id())
            beside.append(giving)  # whoever removes the role in this moment learns of it
        self._change(row, None if before is None else before.changed_us, by, beside)

    def role(self, workspace: str, name: str, *, fresh: bool = False) -> Role | None:
        """See IdentityStore.role."""
        found = self._table.get(rows.role_place(workspace, name))
        return rows.role(workspace, found) if found else None

    def roles(self, workspace: str) -> list[Role]:
        """See IdentityStore.roles."""
        place = {"pk": places.workspace_pk(workspace), "roles": places.ROLE_PREFIX}
        found = self._table.query("pk = :pk AND begins_with(sk, :roles)", place)
        return sorted((rows.role(workspace, each) for each in found), key=attrgetter("name"))

    def change_role(self, before: Role | None, after: Role, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.change_role."""
        row = rows.role_place(after.workspace, after.name) | item(
            name=after.name, permissions=after.permissions, changed_us=after.changed_us
        )
        self._change(row, None if before is None else before.changed_us, by, [self._audit(audit)])

    def remove_role(self, role: Role, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.remove_role. Who gives the role after the look at people has it fail at the write."""
        row, given = rows.role_place(role.workspace, role.name), rows.given_place(role.workspace, role.name)
        last_given = self._table.get(given)
        if people := sum(member.role == role.name for member in self.members(role.workspace)):
            raise RoleGiven(people)
        same: Check = (given, "attribute_not_exists(pk)", None)
        if last_given:
            same = (given, "giving = :giving", {"giving": text(last_given, "giving")})
        removed: list[Check] = [(row, *_of_version(role.changed_us)), same]
        try:
            self._table.remove_with(removed, [self._audit(audit)], _unmoved(by, row))
        except ConditionFailed:
            raise Moved from None

    def _change(self, row: Item, found_us: int | None, by: Grounds | None, beside: Sequence[Item]) -> None:
        """Write the row over the one of that version, None for none, and `beside`, while `by` is as it was read."""
        try:
            self._table.put_with(row, *_of_version(found_us), beside, _unmoved(by, row))
        except ConditionFailed:
            raise Moved from None

    def settings(self, workspace: str) -> Settings:
        """See IdentityStore.settings."""
        found = self._table.get(item(pk=places.workspace_pk(workspace), sk=places.SETTINGS))
        return rows.settings(found)

    def change_settings(
        self, workspace: str, before: Settings, after: Settings, by: Grounds | None, audit: Audit
    ) -> None:
        """See IdentityStore.change_settings."""
        place = item(pk=places.workspace_pk(workspace), sk=places.SETTINGS)
        found = self._table.get(place)
        if rows.settings(found) != before:
            raise Moved
        row = place | item(settings=json.dumps(dataclasses.asdict(after)))
        condition, values = "attribute_not_exists(pk)", None
        if found:
            condition, values = "settings = :found", {"found": text(found, "settings")}
        try:
            self._table.put_with(row, condition, values, [self._audit(audit)], _unmoved(by, row))
        except ConditionFailed:
            raise Moved from None

    def ingest_credential(
        self, workspace: str, credential_id: str, presented_sha256: str = ""
    ) -> IngestCredential | None:
        """See IdentityStore.ingest_credential."""
        found = self._table.get(rows.ingest_place(workspace, credential_id))
        return rows.ingest_credential(workspace, found) if found else None

    def ingest_credentials(self, workspace: str) -> list[IngestCredential]:
        """See IdentityStore.ingest_credentials."""
        place = {"pk": places.workspace_pk(workspace), "ingest": places.INGEST_PREFIX}
        found = self._table.query("pk = :pk AND begins_with(sk, :ingest)", place)
        read = (rows.ingest_credential(workspace, each) for each in found)
        return sorted(read, key=attrgetter("created_us", "credential_id"))

    def add_ingest_credential(self, credential: IngestCredential, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.add_ingest_credential."""
        values = dataclasses.asdict(credential)
        del values["workspace"]  # its partition's
        place = rows.ingest_place(credential.workspace, credential.credential_id)
        self._change(place | item(**values), None, by, [self._audit(audit)])

    def revoke_ingest_credential(
        self, workspace: str, credential_id: str, revoked_us: int, by: Grounds, audit: Audit
    ) -> None:
        """See IdentityStore.revoke_ingest_credential."""
        try:
            self._revoke(rows.ingest_place(workspace, credential_id), revoked_us, by, audit)
        except ConditionFailed:
            raise Moved from None

    def _revoke(self, place: Item, revoked_us: int, by: Grounds | None, audit: Audit) -> None:
        """Raises ConditionFailed when there is nothing to revoke, or `by` moved."""
        self._table.update_with(
            place,
            "SET revoked_us = if_not_exists(revoked_us, :now)",
            "attribute_exists(pk)",
            {"now": revoked_us},
            self._audit(audit),
            _unmoved(by, place),
        )

    def audits(self, workspace: str, before: tuple[int, str] | None, limit: int, user: str | None) -> list[Audit]:
        """See IdentityStore.audits. A range of keys has its ends in it, so the one before the page is read with it."""
        prefix = places.AUDIT_PREFIX if user is None else places.audits_of(user)
        index = None if user is None else places.BY_TIME
        # Digits follow the prefix, and all of them come before a colon.
        values = {"pk": places.workspace_pk(workspace), "first": prefix, "last": f"{prefix}:"}
        if before is not None:
            values["last"] = places.audit_sk(*before) if user is None else places.audit_listed_at(user, *before)
        place = "sk" if user is None else "#at"
        found = self._table.query(
            f"pk = :pk AND {place} BETWEEN :first AND :last", values, limit=limit + 1, backwards=True, index=index
        )
        read = (rows.audit(workspace, each) for each in found)
        return [each for each in read if (each.ts_us, each.name) != before][:limit]

    def add_sign_in(self, sign_in: SignIn, *, once: bool) -> None:
        """See IdentityStore.add_sign_in."""
        self._table.put(
            item(
                **rows.sign_in_place(sign_in.token_sha256, once=once),
                workspace=sign_in.workspace,
                user=sign_in.user,
                expires_us=sign_in.expires_us,
                expires=-(-sign_in.expires_us // _S_US),
            )
        )

    def sign_in(self, token_sha256: str) -> SignIn | None:
        """See IdentityStore.sign_in."""
        return rows.sign_in(token_sha256, self._table.get(item(**rows.sign_in_place(token_sha256, once=False))))

    def use_code(self, token_sha256: str) -> SignIn | None:
        """See IdentityStore.use_code."""
        return rows.sign_in(token_sha256, self._table.take(item(**rows.sign_in_place(token_sha256, once=True))))

    def remove_sign_in(self, token_sha256: str) -> None:
        """See IdentityStore.remove_sign_in."""
        for once in (False, True):
            self._table.take(item(**rows.sign_in_place(token_sha256, once=once)))

    def _audit(self, audit: Audit) -> Item:
        return rows.audit_item(audit, self._random.request_id())


def _of_version(changed_us: int | None) -> tuple[str, Values | None]:
    """The condition that an item is of this version, None for not there, and its values."""
    if changed_us is None:
        return "attribute_not_exists(pk)", None
    return "changed_us = :version", {"version": changed_us}


def _unmoved(by: Grounds | None, row: Item) -> list[Check]:
    """The conditions that what a change was decided by is as it was read, but for the row that the change replaces.

    A transaction may name an item once, and the replaced row has a condition of its own.
    """
    if by is None:
        return []
    workspace = by.by.workspace
    read = [(rows.member_place(workspace, by.by.user), _of_version(by.by.changed_us))]
    read += [
        (rows.role_place(workspace, name), _of_version(None if role is None else role.changed_us))
        for name, role in by.roles.items()
    ]
    return [(place, *version) for place, version in read if not place.items() <= row.items()]
