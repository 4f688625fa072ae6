"""Changes that people make, on every adapter of IdentityStore: made while what they were decided by still holds."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ctrlb.domain.rows import Audit, Grounds, IngestCredential, Member, Role, Settings
from ctrlb.ports import IdentityStore, Moved, Ports
from tests.contract.relay_rows import NOW_US

AUDIT = Audit("acme", NOW_US, "ann", "test", before="", after='{"changed": true}')
ANN = Member("acme", "ann", "Admin")
BOB = Member("acme", "bob", "Admin")
AUDITOR = Role("acme", "Auditor", frozenset(("mcp.use", "relay.read_all")), NOW_US)
UNUSED = replace(AUDITOR, name="Unused")
BY_ANN = Grounds(ANN)
LATER_AUDITOR = replace(AUDITOR, permissions=frozenset(), changed_us=NOW_US + 1)
MOVED_GROUNDS = {
    "the person": Grounds(replace(ANN, changed_us=NOW_US)),
    "nobody there": Grounds(replace(ANN, user="cid")),
    "the role": Grounds(ANN, {"Auditor": LATER_AUDITOR}),
    "a role defined meanwhile": Grounds(ANN, {"Auditor": None}),
    "a role that is not there": Grounds(ANN, {"Scribe": replace(AUDITOR, name="Scribe")}),
    "one of several": Grounds(ANN, {"Scribe": None, "Auditor": LATER_AUDITOR}),
}
CREDENTIAL = IngestCredential("acme", "i2", "logs", "日本", "ann", "hash", NOW_US)
CHANGES: dict[str, Callable[[IdentityStore, Grounds], None]] = {
    "change_member": lambda store, by: store.change_member(None, replace(BOB, user="new"), by, AUDIT),
    "change_role": lambda store, by: store.change_role(None, replace(AUDITOR, name="new"), by, AUDIT),
    "remove_role": lambda store, by: store.remove_role(UNUSED, by, AUDIT),
    "change_settings": lambda store, by: store.change_settings("acme", Settings(), Settings("enforce"), by, AUDIT),
    "add_ingest_credential": lambda store, by: store.add_ingest_credential(CREDENTIAL, by, AUDIT),
    "revoke_ingest_credential": lambda store, by: store.revoke_ingest_credential("acme", "i1", NOW_US, by, AUDIT),
}


@pytest.fixture
def identity(all_stores: Ports) -> IdentityStore:
    return all_stores.identity


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_made_while_what_it_was_decided_by_is_as_it_was_read(
    identity: IdentityStore, change: Callable[[IdentityStore, Grounds], None]
) -> None:
    before, audits = written(identity), identity.audits("acme", None, 100, None)
    with_all = Grounds(ANN, {"Auditor": AUDITOR, "Scribe": None})
    change(identity, with_all)
    assert _shown(identity) != before
    assert len(identity.audits("acme", None, 100, None)) == len(audits) + 1


@pytest.mark.parametrize("grounds", MOVED_GROUNDS.values(), ids=MOVED_GROUNDS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_not_made_when_who_makes_it_or_a_role_it_was_decided_by_moved(
    identity: IdentityStore, change: Callable[[IdentityStore, Grounds], None], grounds: Grounds
) -> None:
    before, audits = written(identity), identity.audits("acme", None, 100, None)
    with pytest.raises(Moved):
        change(identity, grounds)
    assert _shown(identity) == before
    assert identity.audits("acme", None, 100, None) == audits


def test_who_has_a_role_of_the_workspaces_own_defines_it_anew(identity: IdentityStore) -> None:
    written(identity)
    identity.change_role(AUDITOR, LATER_AUDITOR, Grounds(ANN, {"Auditor": AUDITOR}), AUDIT)
    assert identity.role("acme", "Auditor") == LATER_AUDITOR


def written(identity: IdentityStore) -> object:
    """Write what a change is decided by, and a credential; what is there then."""
    identity.change_member(None, ANN, None, AUDIT)
    for role in (AUDITOR, UNUSED):
        identity.change_role(None, role, BY_ANN, AUDIT)
    identity.add_ingest_credential(replace(CREDENTIAL, credential_id="i1"), BY_ANN, AUDIT)
    return _shown(identity)


def _shown(identity: IdentityStore) -> object:
    people_and_roles = identity.members("acme"), identity.roles("acme")
    return *people_and_roles, identity.settings("acme"), identity.ingest_credentials("acme")
