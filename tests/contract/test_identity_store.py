"""The port IdentityStore, on every adapter: keys, members, settings, and sign-ins that work once."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Audit, Grant, Grounds, IngestCredential, Key, Member, Role, Settings, SignIn
from ctrlb.ports import MAX_LIVE_KEYS, IdentityStore, Moved, Ports, TooManyKeys
from tests.contract.relay_rows import NOW_US

KEY = Key("acme", "key1", "ann", "laptop", "hash", NOW_US, None)
AUDIT = Audit("acme", NOW_US, "ann", "test", before="", after="changed")
ANN = Member("acme", "ann", "Admin")
BOB = Member("acme", "bob", "Admin")
AUDITOR = Role("acme", "Auditor", frozenset(("mcp.use", "relay.read_all")), NOW_US)
BY_ANN = Grounds(ANN)
CODE = SignIn("hash of a code", "acme", "ann", NOW_US + 1)
RIVALS = 8


@pytest.fixture
def identity(all_stores: Ports) -> IdentityStore:
    return all_stores.identity


def test_what_was_never_written_is_not_there(identity: IdentityStore) -> None:
    assert identity.key("acme", "key1") is None
    assert identity.keys("acme", "ann") == []
    assert identity.member("acme", "ann") is None
    assert identity.members("acme") == []
    assert identity.settings("acme") == Settings()
    assert identity.sign_in("hash") is None
    assert identity.use_code("hash") is None
    identity.remove_sign_in("hash")


@pytest.mark.parametrize("expires_us", [None, NOW_US + 1])
def test_a_key_comes_back_as_it_was_added(identity: IdentityStore, expires_us: int | None) -> None:
    key = replace(KEY, expires_us=expires_us, name="日本 'x'")
    identity.add_key(key, AUDIT)
    assert identity.key("acme", "key1") == key


def test_a_persons_keys_are_listed_oldest_first_and_nobody_elses(identity: IdentityStore) -> None:
    keys = [replace(KEY, key_id=f"key{index}", created_us=NOW_US + index, user="bob") for index in (3, 1)]
    keys += [replace(KEY, key_id="key2", user=user) for user in ("bobby", "bo", "ann")]
    for key in [*keys, replace(KEY, workspace="other", key_id="key0", user="bob")]:
        identity.add_key(replace(key, key_id=f"{key.user}-{key.key_id}"), AUDIT)
    assert [key.key_id for key in identity.keys("acme", "bob")] == ["bob-key1", "bob-key3"]
    assert identity.keys("acme", "ann") == [replace(KEY, key_id="ann-key2")]
    assert identity.keys("acme", "cid") == []


def test_a_person_has_no_more_live_keys_than_there_may_be(identity: IdentityStore) -> None:
    ends = NOW_US + 10
    for number in range(MAX_LIVE_KEYS):
        identity.add_key(replace(KEY, key_id=f"key{number}", expires_us=ends if number == 0 else None), AUDIT)
    one_more = replace(KEY, key_id="one more", created_us=ends - 1)
    with pytest.raises(TooManyKeys):
        identity.add_key(one_more, AUDIT)
    assert identity.key("acme", "one more") is None
    identity.add_key(replace(one_more, key_id="bob's", user="bob"), AUDIT)
    identity.add_key(replace(one_more, created_us=ends), AUDIT)  # the first has expired by then
    with pytest.raises(TooManyKeys):
        identity.add_key(replace(one_more, key_id="yet another", created_us=ends), AUDIT)
    identity.revoke_key("acme", "key1", ends, AUDIT)
    identity.add_key(replace(one_more, key_id="yet another", created_us=ends), AUDIT)
    assert len(identity.keys("acme", "ann")) == MAX_LIVE_KEYS + 2


@pytest.mark.races
def test_many_that_make_keys_at_once_get_no_more_than_there_may_be(identity: IdentityStore) -> None:
    for number in range(MAX_LIVE_KEYS - 1):
        identity.add_key(replace(KEY, key_id=f"key{number}"), AUDIT)
    together = threading.Barrier(RIVALS)

    def add(number: int) -> None:
        together.wait()
        with contextlib.suppress(TooManyKeys, Unavailable):
            identity.add_key(replace(KEY, key_id=f"rival{number}"), AUDIT)

    with ThreadPoolExecutor(RIVALS) as threads:
        list(threads.map(add, range(RIVALS)))
    assert len(identity.keys("acme", "ann")) <= MAX_LIVE_KEYS


def test_a_key_is_revoked_once_and_keeps_its_first_time(identity: IdentityStore) -> None:
    identity.add_key(KEY, AUDIT)
    identity.revoke_key("acme", "key1", NOW_US + 5, AUDIT)
    identity.revoke_key("acme", "key1", NOW_US + 9, AUDIT)
    assert identity.key("acme", "key1") == replace(KEY, revoked_us=NOW_US + 5)
    assert identity.keys("acme", "ann") == [replace(KEY, revoked_us=NOW_US + 5)]


def test_revoking_or_touching_a_key_that_is_not_there_makes_none(identity: IdentityStore) -> None:
    identity.revoke_key("acme", "key1", NOW_US, AUDIT)
    identity.touch_key("acme", "key1", NOW_US)
    assert identity.key("acme", "key1") is None


def test_the_last_use_of_a_key_moves_forward_only(identity: IdentityStore) -> None:
    identity.add_key(KEY, AUDIT)
    for used_us in (NOW_US + 2, NOW_US + 3, NOW_US + 1):
        identity.touch_key("acme", "key1", used_us)
    assert identity.key("acme", "key1") == replace(KEY, last_used_us=NOW_US + 3)


def test_a_member_is_added_and_changed(identity: IdentityStore) -> None:
    identity.change_member(None, ANN, None, AUDIT)
    assert identity.member("acme", "ann") == ANN
    grants = (Grant("logs", "write"), Grant("team-*", "read"))
    changed = Member("acme", "ann", "Reader", active=False, grants=grants, changed_us=NOW_US)
    identity.change_member(ANN, changed, None, AUDIT)
    assert identity.member("acme", "ann") == changed
    assert identity.member("other", "ann") is None


def test_members_are_listed_by_name_of_their_workspace_alone(identity: IdentityStore) -> None:
    for member in (BOB, ANN, replace(ANN, workspace="other")):
        identity.change_member(None, member, None, AUDIT)
    assert identity.members("acme") == [ANN, BOB]
    assert identity.members("nobodys") == []


@pytest.mark.parametrize("before", [None, replace(BOB, changed_us=NOW_US - 1)])
def test_a_member_that_somebody_changed_meanwhile_is_not_replaced(
    identity: IdentityStore, before: Member | None
) -> None:
    for member in (ANN, BOB):
        identity.change_member(None, member, None, AUDIT)
    with pytest.raises(Moved):
        identity.change_member(before, replace(BOB, role="Reader", changed_us=NOW_US), BY_ANN, AUDIT)
    assert identity.member("acme", "bob") == BOB


def test_a_member_that_is_not_there_is_not_changed(identity: IdentityStore) -> None:
    with pytest.raises(Moved):
        identity.change_member(BOB, replace(BOB, role="Reader", changed_us=NOW_US), None, AUDIT)
    assert identity.member("acme", "bob") is None


def test_of_two_that_change_each_other_one_can(identity: IdentityStore) -> None:
    """Else two Admins who demote each other at once would leave a workspace without any."""
    for member in (ANN, BOB):
        identity.change_member(None, member, None, AUDIT)
    identity.change_member(BOB, replace(BOB, role="Reader", changed_us=NOW_US), BY_ANN, AUDIT)
    with pytest.raises(Moved):
        identity.change_member(ANN, replace(ANN, role="Reader", changed_us=NOW_US), Grounds(BOB), AUDIT)
    assert identity.member("acme", "ann") == ANN


def test_a_role_is_defined_and_defined_anew(identity: IdentityStore) -> None:
    identity.change_member(None, ANN, None, AUDIT)
    assert identity.role("acme", "Auditor") is None
    identity.change_role(None, AUDITOR, BY_ANN, AUDIT)
    nothing = Role("acme", "Auditor", frozenset(), NOW_US + 1)
    identity.change_role(AUDITOR, nothing, BY_ANN, AUDIT)
    identity.change_role(None, replace(AUDITOR, name="A first"), BY_ANN, AUDIT)
    assert identity.role("acme", "Auditor") == nothing
    assert identity.roles("acme") == [replace(AUDITOR, name="A first"), nothing]
    assert identity.role("other", "Auditor") is None
    assert identity.roles("other") == []


@pytest.mark.parametrize(("before", "by"), [(None, BY_ANN), (AUDITOR, Grounds(replace(ANN, changed_us=NOW_US)))])
def test_a_role_is_left_alone_when_it_or_who_defines_it_moved(
    identity: IdentityStore, before: Role | None, by: Grounds
) -> None:
    identity.change_member(None, ANN, None, AUDIT)
    identity.change_role(None, AUDITOR, BY_ANN, AUDIT)
    with pytest.raises(Moved):
        identity.change_role(before, replace(AUDITOR, permissions=frozenset(), changed_us=NOW_US + 1), by, AUDIT)
    assert identity.role("acme", "Auditor") == AUDITOR


def test_ingest_credentials_are_added_listed_and_revoked_once(identity: IdentityStore) -> None:
    for member in (ANN, replace(ANN, workspace="other")):
        identity.change_member(None, member, None, AUDIT)
    first = IngestCredential("acme", "i2", "logs", "日本", "ann", "hash", NOW_US)
    second = replace(first, credential_id="i1", created_us=NOW_US + 1)
    for credential in (second, first, replace(first, workspace="other", credential_id="i0")):
        identity.add_ingest_credential(credential, Grounds(replace(ANN, workspace=credential.workspace)), AUDIT)
    assert identity.ingest_credentials("acme") == [first, second]
    for revoked_us in (NOW_US + 5, NOW_US + 9):
        identity.revoke_ingest_credential("acme", "i2", revoked_us, BY_ANN, AUDIT)
    assert identity.ingest_credential("acme", "i2") == replace(first, revoked_us=NOW_US + 5)
    with pytest.raises(Moved):
        identity.revoke_ingest_credential("acme", "none", NOW_US, BY_ANN, AUDIT)
    assert identity.ingest_credential("acme", "none") is None
    assert identity.ingest_credential("other", "i2") is None


def test_settings_are_replaced_whole(identity: IdentityStore) -> None:
    changed = Settings("enforce", 60, 1, 30, "other", write_tools=False)
    identity.change_settings("acme", Settings(), changed, None, AUDIT)
    assert identity.settings("acme") == changed
    assert identity.settings("other") == Settings()
    identity.change_settings("acme", changed, Settings(), None, AUDIT)
    assert identity.settings("acme") == Settings()


def test_settings_that_somebody_changed_meanwhile_are_not_replaced(identity: IdentityStore) -> None:
    identity.change_settings("acme", Settings(), Settings("enforce"), None, AUDIT)
    with pytest.raises(Moved):
        identity.change_settings("acme", Settings(), Settings("off"), None, AUDIT)
    assert identity.settings("acme") == Settings("enforce")


def test_a_session_is_read_until_it_is_removed_and_is_no_code(identity: IdentityStore) -> None:
    identity.add_sign_in(CODE, once=False)
    assert identity.use_code(CODE.token_sha256) is None
    assert identity.sign_in(CODE.token_sha256) == CODE
    assert identity.sign_in(CODE.token_sha256) == CODE
    identity.remove_sign_in(CODE.token_sha256)
    assert identity.sign_in(CODE.token_sha256) is None


def test_a_code_works_once_and_is_no_session(identity: IdentityStore) -> None:
    identity.add_sign_in(CODE, once=True)
    assert identity.sign_in(CODE.token_sha256) is None
    assert identity.use_code(CODE.token_sha256) == CODE
    assert identity.use_code(CODE.token_sha256) is None


@pytest.mark.races
def test_of_many_that_use_a_code_at_once_one_gets_it(identity: IdentityStore) -> None:
    identity.add_sign_in(CODE, once=True)
    together = threading.Barrier(RIVALS)

    def use(_: int) -> SignIn | None:
        together.wait()
        return identity.use_code(CODE.token_sha256)

    with ThreadPoolExecutor(RIVALS) as threads:
        assert sorted(threads.map(use, range(RIVALS)), key=str) == [*[None] * (RIVALS - 1), CODE]
