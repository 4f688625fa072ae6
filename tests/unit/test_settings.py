"""Changes of the settings by several people at once, and by one who has just lost the leave to make any."""

from dataclasses import replace
from typing import Any

import pytest

from ctrlb.adapters.identity_cache import CachedIdentity
from ctrlb.domain.rows import Audit, Grant, Grounds, Member, Permission, Role, Settings
from ctrlb.models import ChangeSettingsRequest
from ctrlb.ports import IdentityStore, Ports
from ctrlb.settings import change_settings
from tests.conftest import HandClock, add_member, caller_named
from tests.doors import asked

PERSON = replace(caller_named("ann", "Admin"), token_sha256="a person's")


class RivalFirst:
    """An IdentityStore in which somebody else's change comes just before ours, once."""

    def __init__(self, inner: IdentityStore) -> None:
        self._inner = inner
        self._rivals = 1

    def change_settings(
        self, workspace: str, before: Settings, after: Settings, by: Grounds | None, audit: Audit
    ) -> None:
        if self._rivals:
            self._rivals -= 1
            self._inner.change_settings(workspace, before, replace(before, enforce="enforce"), None, audit)
        self._inner.change_settings(workspace, before, after, by, audit)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_two_people_change_different_settings_at_once_and_both_changes_stay(stores: Ports) -> None:
    add_member(stores, "ann", "Admin")
    raced = replace(stores, identity=RivalFirst(stores.identity))  # type: ignore[arg-type]  # the rest by __getattr__
    answer = change_settings(ChangeSettingsRequest(leaseSeconds=60), caller_named("ann", "Admin"), raced)
    assert (answer.enforce, answer.lease_seconds) == ("enforce", 60)
    assert stores.identity.settings("acme") == Settings(enforce="enforce", lease_seconds=60)


@pytest.mark.parametrize("nothing", [ChangeSettingsRequest(), ChangeSettingsRequest(leaseSeconds=600)])
def test_what_changes_nothing_is_no_event(stores: Ports, nothing: ChangeSettingsRequest) -> None:
    add_member(stores, "ann", "Admin")
    ann = caller_named("ann", "Admin")
    change_settings(ChangeSettingsRequest(enforce="enforce"), ann, stores)
    events = stores.identity.audits("acme", None, 10, None)

    assert change_settings(nothing, ann, stores).enforce == "enforce"
    assert stores.identity.audits("acme", None, 10, None) == events
    assert events[0].action == "change_settings"


@pytest.mark.parametrize(
    ("permissions", "grants", "expected"),
    [
        (["relay.manage"], (), 403),
        (["relay.manage"], (Grant("archive-*", "write"),), 403),
        (["relay.manage"], (Grant("sec*", "read"),), 200),
        (["relay.manage", "relay.read_all"], (), 200),
    ],
)
def test_nobody_makes_a_dataset_that_they_may_not_read_the_one_that_everybody_reads(
    stores: Ports, permissions: list[Permission], grants: tuple[Grant, ...], expected: int
) -> None:
    add_member(stores, "ann", "Admin")
    audit = Audit("acme", 0, "ann", "test", before="", after="")
    keeper = Role("acme", "Keeper", frozenset(permissions), 1)
    stores.identity.change_role(None, keeper, Grounds(Member("acme", "ann", "Admin")), audit)
    stores.identity.change_member(None, Member("acme", "kim", "Keeper", grants=grants), None, audit)
    kim = replace(PERSON, user="kim")
    assert asked(change_settings, kim, stores, sessionsDataset="agent_sessions", leaseSeconds=60)[0] == 200
    status, answer = asked(change_settings, kim, stores, sessionsDataset="secret", leaseSeconds=90)
    assert status == expected
    if expected == 403:
        assert answer == {"error": "sessionsDataset: you have no grant to read the dataset secret"}
        assert stores.identity.settings("acme") == Settings(lease_seconds=60)


@pytest.mark.promise("leave-to-change-holds-at-the-write")
@pytest.mark.parametrize("lost", [{"active": False}, {"role": "Member"}])
def test_who_lost_the_leave_changes_no_settings_at_a_server_that_still_knows_them(
    stores: Ports, clock: HandClock, lost: dict[str, Any]
) -> None:
    add_member(stores, "ann", "Admin")
    cached = replace(stores, identity=CachedIdentity(stores.identity, clock))
    assert cached.identity.member("acme", "ann") is not None
    clock.move_s(1)
    add_member(stores, "ann", **{"role": "Admin", **lost})
    status, refused = asked(change_settings, PERSON, cached, leaseSeconds=60)
    assert (status, refused) == (403, {"error": "your role does not allow this any more: it needs relay.manage"})
    assert stores.identity.settings("acme") == Settings()
