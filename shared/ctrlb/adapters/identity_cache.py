"""Identities kept for seconds in front of their store, so that a warm call reads none of them.

What another server changed is seen at most MAX_AGE_S later: a key that is revoked may work for that long, as the
documents say. What is not there is never kept, so a new key works at once everywhere.
"""

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from ctrlb.domain.rows import Audit, Grounds, IngestCredential, Key, Member, Role, Settings, SignIn
from ctrlb.ports import Clock, IdentityStore

MAX_AGE_S = 15.0
MAX_KEPT = 1_000

T = TypeVar("T")


class CachedIdentity:
    """The port IdentityStore in front of another. Changes made through it are seen through it at once."""

    def __init__(self, store: IdentityStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, object]] = OrderedDict()
        self._forgotten = 0
        """How often something was forgotten: it tells a read whether a change came in between."""
        self._lock = threading.Lock()

    def key(self, workspace: str, key_id: str, presented_sha256: str = "") -> Key | None:
        """See IdentityStore.key; at most MAX_AGE_S old, and kept for who has the secret alone."""
        name, is_for = ("key", workspace, key_id), _known_to(presented_sha256)
        return self._read(name, lambda: self._store.key(workspace, key_id), is_for)

    def add_key(self, key: Key, audit: Audit) -> None:
        """See IdentityStore.add_key."""
        self._store.add_key(key, audit)

    def keys(self, workspace: str, user: str) -> list[Key]:
        """See IdentityStore.keys; not cached."""
        return self._store.keys(workspace, user)

    def revoke_key(self, workspace: str, key_id: str, revoked_us: int, audit: Audit) -> None:
        """See IdentityStore.revoke_key."""
        try:
            self._store.revoke_key(workspace, key_id, revoked_us, audit)
        finally:
            self._forget(("key", workspace, key_id))

    def touch_key(self, workspace: str, key_id: str, used_us: int) -> None:
        """See IdentityStore.touch_key. The kept key is as touched, so that it is not noted again."""
        self._store.touch_key(workspace, key_id, used_us)
        with self._lock:
            read_s, key = self._kept.get(("key", workspace, key_id), (0.0, None))
            if isinstance(key, Key):
                self._kept["key", workspace, key_id] = (read_s, replace(key, last_used_us=used_us))

    def member(self, workspace: str, user: str, *, fresh: bool = False) -> Member | None:
        """See IdentityStore.member; at most MAX_AGE_S old."""
        name = ("member", workspace, user)
        return self._read(name, lambda: self._store.member(workspace, user), lambda kept: not fresh)

    def members(self, workspace: str) -> list[Member]:
        """See IdentityStore.members; not cached."""
        return self._store.members(workspace)

    def change_member(self, before: Member | None, after: Member, by: Grounds | None, audit: Audit) -> None:
        """See IdentityStore.change_member. When they moved, the next reads are of the store."""
        try:
            self._store.change_member(before, after, by, audit)
        finally:
            self._forget(("member", after.workspace, after.user))
            self._forget_grounds(by)

    def role(self, workspace: str, name: str, *, fresh: bool = False) -> Role | None:
        """See IdentityStore.role; at most MAX_AGE_S old."""
        return self._read(("role", workspace, name), lambda: self._store.role(workspace, name), lambda kept: not fresh)

    def roles(self, workspace: str) -> list[Role]:
        """See IdentityStore.roles; not cached."""
        return self._store.roles(workspace)

    def change_role(self, before: Role | None, after: Role, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.change_role. When it moved, the next reads are of the store."""
        try:
            self._store.change_role(before, after, by, audit)
        finally:
            self._forget(("role", after.workspace, after.name))
            self._forget_grounds(by)

    def remove_role(self, role: Role, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.remove_role. When it moved, the next reads are of the store."""
        try:
            self._store.remove_role(role, by, audit)
        finally:
            self._forget(("role", role.workspace, role.name))
            self._forget_grounds(by)

    def settings(self, workspace: str) -> Settings:
        """See IdentityStore.settings; at most MAX_AGE_S old."""
        return self._read(("settings", workspace), lambda: self._store.settings(workspace))

    def change_settings(
        self, workspace: str, before: Settings, after: Settings, by: Grounds | None, audit: Audit
    ) -> None:
        """See IdentityStore.change_settings. When they moved, the next read is of the store."""
        try:
            self._store.change_settings(workspace, before, after, by, audit)
        finally:
            self._forget(("settings", workspace))
            self._forget_grounds(by)

    def ingest_credential(
        self, workspace: str, credential_id: str, presented_sha256: str = ""
    ) -> IngestCredential | None:
        """See IdentityStore.ingest_credential; at most MAX_AGE_S old, and kept for who has the secret alone."""
        name, is_for = ("ingest", workspace, credential_id), _known_to(presented_sha256)
        return self._read(name, lambda: self._store.ingest_credential(workspace, credential_id), is_for)

    def ingest_credentials(self, workspace: str) -> list[IngestCredential]:
        """See IdentityStore.ingest_credentials; not cached."""
        return self._store.ingest_credentials(workspace)

    def add_ingest_credential(self, credential: IngestCredential, by: Grounds, audit: Audit) -> None:
        """See IdentityStore.add_ingest_credential."""
        try:
            self._store.add_ingest_credential(credential, by, audit)
        finally:
            self._forget_grounds(by)

    def revoke_ingest_credential(
        self, workspace: str, credential_id: str, revoked_us: int, by: Grounds, audit: Audit
    ) -> None:
        """See IdentityStore.revoke_ingest_credential."""
        try:
            self._store.revoke_ingest_credential(workspace, credential_id, revoked_us, by, audit)
        finally:
            self._forget(("ingest", workspace, credential_id))
            self._forget_grounds(by)

    def audits(self, workspace: str, before: tuple[int, str] | None, limit: int, user: str | None) -> list[Audit]:
        """See IdentityStore.audits; not cached."""
        return self._store.audits(workspace, before, limit, user)

    def add_sign_in(self, sign_in: SignIn, *, once: bool) -> None:
        """See IdentityStore.add_sign_in."""
        self._store.add_sign_in(sign_in, once=once)

    def sign_in(self, token_sha256: str) -> SignIn | None:
        """See IdentityStore.sign_in; not cached."""
        return self._store.sign_in(token_sha256)

    def use_code(self, token_sha256: str) -> SignIn | None:
        """See IdentityStore.use_code."""
        return self._store.use_code(token_sha256)

    def remove_sign_in(self, token_sha256: str) -> None:
        """See IdentityStore.remove_sign_in."""
        self._store.remove_sign_in(token_sha256)

    def _read(self, name: Hashable, read: Callable[[], T], is_for: Callable[[Any], bool] = lambda kept: True) -> T:
        """What is kept under the name, if `is_for` allows; else what `read` returns, which is kept from now on."""
        now_s = self._clock.elapsed_s()
        with self._lock:
            kept, forgotten = self._kept.get(name), self._forgotten
        if kept is not None and now_s - kept[0] < MAX_AGE_S and is_for(kept[1]):
            return kept[1]  # type: ignore[return-value]  # kept under this name by the same read
        value = read()
        with self._lock:
            self._kept.pop(name, None)
            # What was read while something was changed here may be what was there before.
            if value is not None and forgotten == self._forgotten:
                self._kept[name] = (now_s, value)  # as old as the moment before the read
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return value

    def _forget_grounds(self, by: Grounds | None) -> None:
        if by is None:
            return
        self._forget(("member", by.by.workspace, by.by.user))
        for name in by.roles:
            self._forget(("role", by.by.workspace, name))

    def _forget(self, name: Hashable) -> None:
        with self._lock:
            self._forgotten += 1
            self._kept.pop(name, None)


def _known_to(presented_sha256: str) -> Callable[[Key | IngestCredential], bool]:
    """Whether a kept row is of the presented secret: else a guess would be answered sooner than an unknown id."""
    return lambda kept: hmac.compare_digest(kept.secret_sha256, presented_sha256)
