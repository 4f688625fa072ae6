"""Who changed what, read again from every adapter of IdentityStore: newest first, page by page, nobody else's."""

import itertools
from dataclasses import replace

import pytest

from ctrlb.domain.rows import Audit, Key, Settings
from ctrlb.ports import IdentityStore, Ports
from tests.contract.relay_rows import NOW_US

PEOPLE = ("bo", "bob", "bobby", "2:bo", "b#o", "日本", "x" * 200, "")
TIMES = (NOW_US, NOW_US + 2, NOW_US + 1, NOW_US + 1, NOW_US + 1)


@pytest.fixture
def identity(all_stores: Ports) -> IdentityStore:
    """A store in which each of the people changed the settings at each of the times, in two workspaces."""
    store = all_stores.identity
    numbers = {"acme": 0, "other": 0}
    for workspace, ts_us, user in itertools.product(numbers, TIMES, PEOPLE):
        number = numbers[workspace] = numbers[workspace] + 1
        audit = Audit(workspace, ts_us, user, f"change {number}", "" if number == 1 else '{"日": 1}', after='{"b": 2}')
        before = Settings(lease_seconds=59 + number) if number > 1 else Settings()
        store.change_settings(workspace, before, Settings(lease_seconds=60 + number), None, audit)
    return store


def paged(identity: IdentityStore, limit: int, user: str | None = None) -> list[Audit]:
    """All audits of a workspace, read page by page."""
    found: list[Audit] = []
    while page := identity.audits("acme", (found[-1].ts_us, found[-1].name) if found else None, limit, user):
        assert len(page) <= limit
        found += page
    return found


def test_changes_come_back_as_they_were_written_newest_first(identity: IdentityStore) -> None:
    found = identity.audits("acme", None, 100, None)
    assert [audit.ts_us for audit in found] == sorted((ts_us for ts_us in TIMES for _ in PEOPLE), reverse=True)
    assert {audit.workspace for audit in found} == {"acme"}
    assert sorted(int(audit.action.removeprefix("change ")) for audit in found) == list(range(1, 41))
    (first,) = (audit for audit in found if audit.action == "change 1")
    assert replace(first, name="") == Audit("acme", NOW_US, PEOPLE[0], "change 1", "", '{"b": 2}')
    assert all(audit.before == '{"日": 1}' for audit in found if audit != first)


@pytest.mark.parametrize("limit", [1, 3, 8, 39, 40, 41])
def test_pages_have_each_change_once_in_the_same_order(identity: IdentityStore, limit: int) -> None:
    assert paged(identity, limit) == identity.audits("acme", None, 100, None)


@pytest.mark.parametrize("user", PEOPLE)
def test_one_persons_changes_are_theirs_alone(identity: IdentityStore, user: str) -> None:
    everybodys = identity.audits("acme", None, 100, None)
    expected = [audit for audit in everybodys if audit.user == user]
    assert len(expected) == len(TIMES)
    assert paged(identity, 2, user) == expected


def test_who_changed_nothing_has_no_changes(identity: IdentityStore) -> None:
    assert identity.audits("acme", None, 100, "eve") == identity.audits("nowhere", None, 100, None) == []


def test_what_lies_beside_the_changes_is_none(all_stores: Ports) -> None:
    store = all_stores.identity
    store.add_key(Key("acme", "k", "ann", "k", "hash", NOW_US, None), Audit("acme", NOW_US, "ann", "a key", "", ""))
    assert [audit.action for audit in store.audits("acme", None, 100, None)] == ["a key"]
    assert [audit.action for audit in store.audits("acme", None, 100, "ann")] == ["a key"]
