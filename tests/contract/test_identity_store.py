"""The port IdentityStore, on every adapter: keys, members, settings, and sign-ins that work once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ctrlb.domain.rows import Audit, Key, Member, Settings, SignIn
from ctrlb.ports import IdentityStore, Ports, SettingsMoved
from tests.contract.relay_rows import NOW_US

KEY = Key("acme", "key1", "ann", "laptop", "hash", NOW_US, None)
AUDIT = Audit("acme", NOW_US, "ann", "test", before="", after="changed")
CODE = SignIn("hash of a code", "acme", "ann", NOW_US + 1)
RIVALS = 8


@pytest.fixture
def identity(all_stores: Ports) -> IdentityStore:
    return all_stores.identity


def test_what_was_never_written_is_not_there(identity: IdentityStore) -> None:
    assert identity.key("acme", "key1") is None
    assert identity.keys("acme", None) == []
    assert identity.member("acme", "ann") is None
    assert identity.settings("acme") == Settings()
    assert identity.sign_in("hash") is None
    assert identity.use_code("hash") is None
    identity.remove_sign_in("hash")


@pytest.mark.parametrize("expires_us", [None, NOW_US + 1])
def test_a_key_comes_back_as_it_was_added(identity: IdentityStore, expires_us: int | None) -> None:
    key = replace(KEY, expires_us=expires_us, name="日本 'x'")
    identity.add_key(key, AUDIT)
    assert identity.key("acme", "key1") == key


def test_keys_are_listed_oldest_first_of_a_user_or_of_all(identity: IdentityStore) -> None:
    keys = [replace(KEY, key_id=f"key{index}", created_us=NOW_US + index, user="bob") for index in (3, 1)]
    keys += [replace(KEY, key_id="key2", created_us=NOW_US + 2), replace(KEY, workspace="other", key_id="key0")]
    for key in keys:
        identity.add_key(key, AUDIT)
    assert [key.key_id for key in identity.keys("acme", None)] == ["key1", "key2", "key3"]
    assert [key.key_id for key in identity.keys("acme", "bob")] == ["key1", "key3"]
    assert [key.key_id for key in identity.keys("acme", "cid")] == []


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
    identity.put_member(Member("acme", "ann", "Member"), AUDIT)
    assert identity.member("acme", "ann") == Member("acme", "ann", "Member")
    identity.put_member(Member("acme", "ann", "Admin", active=False), AUDIT)
    assert identity.member("acme", "ann") == Member("acme", "ann", "Admin", active=False)
    assert identity.member("other", "ann") is None


def test_settings_are_replaced_whole(identity: IdentityStore) -> None:
    changed = Settings("enforce", 60, 1, 30, "other", write_tools=False)
    identity.change_settings("acme", Settings(), changed, AUDIT)
    assert identity.settings("acme") == changed
    assert identity.settings("other") == Settings()
    identity.change_settings("acme", changed, Settings(), AUDIT)
    assert identity.settings("acme") == Settings()


def test_settings_that_somebody_changed_meanwhile_are_not_replaced(identity: IdentityStore) -> None:
    identity.change_settings("acme", Settings(), Settings("enforce"), AUDIT)
    with pytest.raises(SettingsMoved):
        identity.change_settings("acme", Settings(), Settings("off"), AUDIT)
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
