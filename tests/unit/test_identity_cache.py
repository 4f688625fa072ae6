"""Identities that are kept for seconds: what a warm call reads, and how old what it sees may be."""

from dataclasses import replace
from typing import Any

import pytest

from ctrlb.adapters.identity_cache import MAX_AGE_S, MAX_KEPT, CachedIdentity
from ctrlb.domain.rows import Audit, Grounds, Key, Member, Permission, Role, Settings
from ctrlb.edge.identity import identify
from ctrlb.keys import create_key
from ctrlb.laptop import owner
from ctrlb.models import CreateKeyRequest
from ctrlb.ports import IdentityStore, Moved, Ports
from tests.conftest import NOW_US, HandClock

AUDIT = Audit("local", NOW_US, "admin", "test", before="", after="")


class Counted:
    """Notes which methods of a store are called."""

    def __init__(self, inner: IdentityStore) -> None:
        self._inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._inner, name)


@pytest.fixture
def counted(stores: Ports) -> Counted:
    return Counted(stores.identity)


@pytest.fixture
def cached(counted: Counted, clock: HandClock) -> CachedIdentity:
    return CachedIdentity(counted, clock)


def test_a_warm_call_reads_no_identity_and_notes_its_use_once(
    stores: Ports, counted: Counted, cached: CachedIdentity, clock: HandClock
) -> None:
    key = create_key(CreateKeyRequest(name="k"), owner(stores), stores).key
    ports = replace(stores, identity=cached)
    identify(f"Bearer {key}", ports)
    assert sorted(counted.calls) == ["key", "member", "settings", "touch_key"]
    counted.calls.clear()
    clock.move_s(MAX_AGE_S - 1)
    identify(f"Bearer {key}", ports)
    assert counted.calls == []
    clock.move_s(1)
    identify(f"Bearer {key}", ports)
    assert sorted(counted.calls) == ["key", "member", "settings"]


def test_what_another_server_changed_is_seen_15_seconds_later_at_most(
    stores: Ports, cached: CachedIdentity, clock: HandClock
) -> None:
    stores.identity.add_key(Key("local", "k", "admin", "k", "hash", NOW_US, None), AUDIT)
    first = cached.key("local", "k")
    stores.identity.revoke_key("local", "k", NOW_US, AUDIT)
    clock.move_s(MAX_AGE_S - 0.001)
    assert cached.key("local", "k") == first
    clock.move_s(0.001)
    assert cached.key("local", "k") == stores.identity.key("local", "k") != first


def test_what_is_changed_here_is_seen_here_at_once(cached: CachedIdentity) -> None:
    cached.add_key(Key("local", "k", "ann", "k", "hash", NOW_US, None), AUDIT)
    assert cached.key("local", "k") is not None
    cached.revoke_key("local", "k", NOW_US, AUDIT)
    revoked = cached.key("local", "k")
    assert revoked is not None
    assert revoked.revoked_us == NOW_US
    assert cached.settings("local") == Settings()
    cached.change_settings("local", Settings(), Settings("enforce"), None, AUDIT)
    assert cached.settings("local") == Settings("enforce")
    reader, admin = Member("local", "ann", "Reader"), Member("local", "ann", "Admin", changed_us=NOW_US)
    cached.change_member(None, reader, None, AUDIT)
    assert cached.member("local", "ann") == reader
    cached.change_member(reader, admin, None, AUDIT)
    assert cached.member("local", "ann") == admin
    before = None
    for permissions in (frozenset[Permission](), frozenset[Permission](("mcp.use",))):
        after = Role("local", "Auditor", permissions, NOW_US + len(permissions))
        cached.change_role(before, after, Grounds(admin), AUDIT)
        assert cached.role("local", "Auditor") == after
        before = after


def test_whoever_moved_is_read_anew(stores: Ports, cached: CachedIdentity) -> None:
    ann, bob = Member("local", "ann", "Admin"), Member("local", "bob", "Member")
    demoted = Member("local", "ann", "Reader", changed_us=NOW_US)
    for member in (ann, bob):
        cached.change_member(None, member, None, AUDIT)
    assert cached.member("local", "ann") == ann
    stores.identity.change_member(ann, demoted, None, AUDIT)
    with pytest.raises(Moved):
        cached.change_member(bob, replace(bob, role="Admin", changed_us=NOW_US), Grounds(ann), AUDIT)
    assert cached.member("local", "ann") == demoted


def test_what_is_not_there_is_looked_for_every_time(stores: Ports, cached: CachedIdentity) -> None:
    assert cached.key("local", "k") is None
    stores.identity.add_key(Key("local", "k", "ann", "k", "hash", NOW_US, None), AUDIT)
    assert cached.key("local", "k") is not None


def test_no_more_is_kept_than_its_bound(cached: CachedIdentity, counted: Counted) -> None:
    for number in range(MAX_KEPT + 1):
        cached.settings(f"workspace{number}")
    counted.calls.clear()
    cached.settings("workspace1")
    assert counted.calls == []
    cached.settings("workspace0")
    assert counted.calls == ["settings"]
