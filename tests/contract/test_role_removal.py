"""Roles are removed while nobody has them, on every adapter of IdentityStore, whoever acts in the same moment."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctrlb.adapters.dynamodb_identity import DynamodbIdentity
from ctrlb.adapters.system import SystemRandomness
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Audit, Grounds, Member, Role
from ctrlb.ports import IdentityStore, Moved, Ports, RoleGiven
from tests.aws.stores import made_table
from tests.contract.relay_rows import NOW_US

AUDIT = Audit("acme", NOW_US, "ann", "test", before="", after="")
ANN = Member("acme", "ann", "Admin")
BOB = Member("acme", "bob", "Reader")
AUDITOR = Role("acme", "Auditor", frozenset(("mcp.use",)), NOW_US)
BY_ANN = Grounds(ANN, {"Auditor": AUDITOR})
GIVEN = replace(BOB, role="Auditor", changed_us=1)
ROUNDS = 10


@pytest.fixture
def identity(all_stores: Ports) -> IdentityStore:
    return prepared(all_stores.identity)


def prepared(identity: IdentityStore) -> IdentityStore:
    """The store with Ann, who manages people, Bob, and a role that nobody has."""
    for member in (ANN, BOB):
        identity.change_member(None, member, None, AUDIT)
    identity.change_role(None, AUDITOR, Grounds(ANN), AUDIT)
    return identity


def test_a_role_that_nobody_has_is_gone_once_removed_and_can_be_defined_again(identity: IdentityStore) -> None:
    elsewhere = replace(AUDITOR, workspace="other")
    zoe = Member("other", "zoe", "Auditor")
    identity.change_member(None, zoe, None, replace(AUDIT, workspace="other"))
    identity.change_role(None, elsewhere, Grounds(zoe), replace(AUDIT, workspace="other"))
    for _ in range(2):
        identity.remove_role(AUDITOR, BY_ANN, AUDIT)
        assert identity.role("acme", "Auditor") is None
        assert identity.roles("acme") == []
        assert identity.roles("other") == [elsewhere]
        identity.change_role(None, AUDITOR, Grounds(ANN, {"Auditor": None}), AUDIT)
        assert identity.role("acme", "Auditor") == AUDITOR


@pytest.mark.parametrize("active", [True, False])
def test_a_role_that_people_have_stays(identity: IdentityStore, active: bool) -> None:
    identity.change_member(BOB, replace(GIVEN, active=active), BY_ANN, AUDIT)
    identity.change_member(None, Member("acme", "cid", "Auditor"), BY_ANN, AUDIT)
    audits = identity.audits("acme", None, 100, None)
    with pytest.raises(RoleGiven) as refused:
        identity.remove_role(AUDITOR, BY_ANN, AUDIT)
    assert refused.value.people == 2
    assert identity.role("acme", "Auditor") == AUDITOR
    assert identity.audits("acme", None, 100, None) == audits


def test_a_role_that_was_given_and_taken_back_is_removed(identity: IdentityStore) -> None:
    identity.change_member(BOB, GIVEN, BY_ANN, AUDIT)
    identity.change_member(GIVEN, replace(BOB, changed_us=2), BY_ANN, AUDIT)
    identity.remove_role(AUDITOR, BY_ANN, AUDIT)
    assert identity.roles("acme") == []


@pytest.mark.parametrize("read", [replace(AUDITOR, changed_us=NOW_US + 1), replace(AUDITOR, name="Scribe")])
def test_a_role_that_is_not_as_it_was_read_is_not_removed(identity: IdentityStore, read: Role) -> None:
    with pytest.raises(Moved):
        identity.remove_role(read, Grounds(ANN, {read.name: read}), AUDIT)
    assert identity.roles("acme") == [AUDITOR]


@pytest.mark.promise("no-one-has-a-removed-role")
def test_a_role_that_was_removed_since_it_was_read_is_given_to_nobody(identity: IdentityStore) -> None:
    identity.remove_role(AUDITOR, BY_ANN, AUDIT)
    audits = identity.audits("acme", None, 100, None)
    for before, after in ((BOB, GIVEN), (None, Member("acme", "cid", "Auditor"))):
        with pytest.raises(Moved):
            identity.change_member(before, after, BY_ANN, AUDIT)
    assert identity.members("acme") == [ANN, BOB]
    assert identity.audits("acme", None, 100, None) == audits


class GivenMeanwhile(DynamodbIdentity):
    """A store in which somebody gets the role just after the look at who has it."""

    def members(self, workspace: str) -> list[Member]:
        found = super().members(workspace)
        super().change_member(BOB, GIVEN, BY_ANN, AUDIT)
        return found


@pytest.mark.promise("no-one-has-a-removed-role")
@pytest.mark.usefixtures("on_moto")
@pytest.mark.parametrize("given_before", [True, False])
def test_a_role_that_is_given_after_the_look_at_people_is_not_removed(tmp_path: Path, given_before: bool) -> None:
    table = made_table("RelayTable", tmp_path)
    identity = prepared(DynamodbIdentity(table, SystemRandomness()))
    if given_before:
        cid = Member("acme", "cid", "Auditor")
        identity.change_member(None, cid, BY_ANN, AUDIT)
        identity.change_member(cid, replace(cid, role="Reader", changed_us=1), BY_ANN, AUDIT)
    with pytest.raises(Moved):
        GivenMeanwhile(table, SystemRandomness()).remove_role(AUDITOR, BY_ANN, AUDIT)
    assert identity.member("acme", "bob") == GIVEN
    assert identity.role("acme", "Auditor") == AUDITOR


@pytest.mark.races
@pytest.mark.promise("no-one-has-a-removed-role")
def test_of_a_removal_and_a_gift_at_once_one_is_made(identity: IdentityStore) -> None:
    for number in range(ROUNDS):
        role = replace(AUDITOR, name=f"Role {number}")
        grounds = Grounds(ANN, {role.name: role})
        identity.change_role(None, role, Grounds(ANN), AUDIT)
        together = threading.Barrier(2)

        def made(do: Any, *arguments: Any, together: threading.Barrier = together) -> bool:
            together.wait()
            try:
                do(*arguments)
            except (Moved, RoleGiven, Unavailable):
                return False
            return True

        gift = Member("acme", f"person {number}", role.name)
        with ThreadPoolExecutor(2) as pool:
            removed = pool.submit(made, identity.remove_role, role, grounds, AUDIT)
            given = pool.submit(made, identity.change_member, None, gift, grounds, AUDIT)
        assert not (removed.result() and given.result())
        assert (identity.role("acme", role.name) is None) == removed.result()
        assert (identity.member("acme", gift.user) is not None) == given.result()
