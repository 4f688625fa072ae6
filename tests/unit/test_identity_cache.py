"""Identities that are kept for seconds: what a warm call reads, and how old what it sees may be."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ctrlb.adapters.identity_cache import MAX_AGE_S, MAX_KEPT, CachedIdentity
from ctrlb.domain.errors import IngestRefused, InvalidKey, Unavailable
from ctrlb.domain.key_format import INGEST_PREFIX, written_key
from ctrlb.domain.rows import Audit, Grounds, IngestCredential, Key, Member, Permission, Role, Settings
from ctrlb.edge.identity import identify, identify_ingest
from ctrlb.ingest import create_ingest_credential
from ctrlb.keys import create_key
from ctrlb.laptop import owner
from ctrlb.models import CreateIngestCredentialRequest, CreateKeyRequest
from ctrlb.ports import IdentityStore, Moved, Ports
from tests.conftest import NOW_US, HandClock

AUDIT = Audit("local", NOW_US, "admin", "test", before="", after="")
BY_OWNER = Grounds(Member("local", "admin", "Admin"))


class Counted:
    """Notes which methods of a store are called."""

    def __init__(self, inner: IdentityStore) -> None:
        self._inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._inner, name)


class LosesAnswers:
    """A store that revokes, and whose answer to that is lost on its way."""

    def __init__(self, inner: IdentityStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return functools.partial(self._lose, method) if name.startswith("revoke") else method

    def _lose(self, method: Callable[..., None], *arguments: Any) -> None:
        method(*arguments)
        raise Unavailable("the answer was lost")


class SlowReads:
    """A store of which a key that was read is on its way for a while, in which something else happens."""

    def __init__(self, inner: IdentityStore) -> None:
        self._inner = inner
        self.after_read: Callable[[], None] = lambda: None

    def key(self, *arguments: Any) -> Key | None:
        found = self._inner.key(*arguments)
        self.after_read()
        return found

    def __getattr__(self, name: str) -> Any:
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
    first = cached.key("local", "k", "hash")
    stores.identity.revoke_key("local", "k", NOW_US, AUDIT)
    clock.move_s(MAX_AGE_S - 0.001)
    assert cached.key("local", "k", "hash") == first
    clock.move_s(0.001)
    assert cached.key("local", "k", "hash") == stores.identity.key("local", "k") != first


def test_what_is_changed_here_is_seen_here_at_once(cached: CachedIdentity) -> None:
    cached.add_key(Key("local", "k", "ann", "k", "hash", NOW_US, None), AUDIT)
    assert cached.key("local", "k", "hash") is not None
    cached.revoke_key("local", "k", NOW_US, AUDIT)
    revoked = cached.key("local", "k", "hash")
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


@pytest.mark.promise("guesses-cost-the-same")
def test_a_wrong_secret_costs_what_an_unknown_id_does_whether_the_key_is_kept_or_not(
    stores: Ports, counted: Counted, cached: CachedIdentity
) -> None:
    key = create_key(CreateKeyRequest(name="k"), owner(stores), stores)
    ports = replace(stores, identity=cached)
    wrong_secret = written_key("local", key.key_id, stores.random.secret())
    unknown = written_key("local", stores.random.key_id(), stores.random.secret())
    costs = []
    for warm in (False, True):
        if warm:
            identify(f"Bearer {key.key}", ports)
        for guess in (wrong_secret, unknown, wrong_secret, unknown):
            counted.calls.clear()
            with pytest.raises(InvalidKey):
                identify(f"Bearer {guess}", ports)
            costs.append(list(counted.calls))
    assert costs == [["key"]] * 8
    counted.calls.clear()
    identify(f"Bearer {key.key}", ports)
    assert counted.calls == []  # guesses do not make its holder's calls slower


@pytest.mark.promise("guesses-cost-the-same")
def test_a_wrong_secret_of_an_ingest_credential_costs_what_an_unknown_id_does(
    stores: Ports, counted: Counted, cached: CachedIdentity
) -> None:
    made = create_ingest_credential(
        CreateIngestCredentialRequest(name="i", dataset="logs"), owner(stores), replace(stores, identity=cached)
    )
    ports = replace(stores, identity=cached)
    right = f"Basic {made.credential}"
    identify_ingest(right, "logs", ports)
    guesses = [
        (f"Basic {written_key('local', key_id, stores.random.secret(), INGEST_PREFIX)}", "logs")
        for key_id in (made.credential_id, stores.random.key_id())
    ]
    for guess, dataset in guesses:
        counted.calls.clear()
        with pytest.raises(IngestRefused):
            identify_ingest(guess, dataset, ports)
        assert counted.calls == ["ingest_credential"]
    counted.calls.clear()
    identify_ingest(right, "logs", ports)
    assert counted.calls == []


def test_a_revocation_whose_answer_was_lost_is_seen_here_at_once(stores: Ports, clock: HandClock) -> None:
    cached = CachedIdentity(LosesAnswers(stores.identity), clock)
    credential = IngestCredential("local", "i", "logs", "i", "admin", "hash", NOW_US)
    owner(stores)
    stores.identity.add_key(Key("local", "k", "admin", "k", "hash", NOW_US, None), AUDIT)
    stores.identity.add_ingest_credential(credential, BY_OWNER, AUDIT)
    assert cached.key("local", "k", "hash")
    assert cached.ingest_credential("local", "i", "hash")
    with pytest.raises(Unavailable):
        cached.revoke_key("local", "k", NOW_US, AUDIT)
    with pytest.raises(Unavailable):
        cached.revoke_ingest_credential("local", "i", NOW_US, BY_OWNER, AUDIT)
    for kept in (cached.key("local", "k", "hash"), cached.ingest_credential("local", "i", "hash")):
        assert kept is not None
        assert kept.revoked_us == NOW_US


def test_a_read_that_a_revocation_overtakes_does_not_put_the_old_row_back(stores: Ports, clock: HandClock) -> None:
    stores.identity.add_key(Key("local", "k", "admin", "k", "hash", NOW_US, None), AUDIT)
    slow = SlowReads(stores.identity)
    cached = CachedIdentity(slow, clock)
    slow.after_read = lambda: cached.revoke_key("local", "k", NOW_US, AUDIT)
    overtaken = cached.key("local", "k", "hash")
    assert overtaken is not None
    assert overtaken.revoked_us is None
    slow.after_read = lambda: None
    now = cached.key("local", "k", "hash")
    assert now is not None
    assert now.revoked_us == NOW_US


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


def test_a_fresh_read_is_of_the_store_and_kept_for_the_others(
    stores: Ports, counted: Counted, cached: CachedIdentity
) -> None:
    ann, demoted = Member("local", "ann", "Admin"), Member("local", "ann", "Reader", changed_us=NOW_US)
    cached.change_member(None, ann, None, AUDIT)
    assert cached.member("local", "ann") == ann
    stores.identity.change_member(ann, demoted, None, AUDIT)
    assert cached.member("local", "ann", fresh=True) == demoted
    counted.calls.clear()
    assert cached.member("local", "ann") == demoted
    assert counted.calls == []


def test_what_is_not_there_is_looked_for_every_time(stores: Ports, cached: CachedIdentity) -> None:
    assert cached.key("local", "k", "hash") is None
    stores.identity.add_key(Key("local", "k", "ann", "k", "hash", NOW_US, None), AUDIT)
    assert cached.key("local", "k", "hash") is not None


def test_no_more_is_kept_than_its_bound(cached: CachedIdentity, counted: Counted) -> None:
    for number in range(MAX_KEPT + 1):
        cached.settings(f"workspace{number}")
    counted.calls.clear()
    cached.settings("workspace1")
    assert counted.calls == []
    cached.settings("workspace0")
    assert counted.calls == ["settings"]
