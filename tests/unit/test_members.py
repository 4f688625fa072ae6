"""People and roles: who may change whom, what a change does, and what it leaves behind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from ctrlb.adapters.identity_cache import CachedIdentity
from ctrlb.decisions import CHANGE_TRIES
from ctrlb.domain.access import ROLES, Caller, covers
from ctrlb.domain.errors import Forbidden, Invalid, NotFound, Unavailable
from ctrlb.domain.rows import Audit, Dataset, Grant, Grounds, Member, Permission, Role, Settings
from ctrlb.members import change_member, change_role, invite_member, list_members, list_roles, remove_role
from ctrlb.models import (
    ChangeMemberRequest,
    ChangeRoleRequest,
    GrantedDataset,
    InviteMemberRequest,
    ListMembersRequest,
    ListRolesRequest,
    RemoveRoleRequest,
)
from ctrlb.ports import IdentityStore, Moved, Ports
from tests.conftest import NOW_US, HandClock

MANAGER: frozenset[Permission] = frozenset(("mcp.use", "sessions.write", "relay.write", "members.manage"))
ADA = Grounds(Member("acme", "ada", "Admin"))


class Rivals:
    """A store of identities in front of which somebody else acts before a change is written."""

    def __init__(self, inner: IdentityStore, act: Callable[[], object]) -> None:
        self._inner = inner
        self._act = act
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def change_member(self, before: Member | None, after: Member, by: Grounds | None, audit: Audit) -> None:
        self._first()
        self._inner.change_member(before, after, by, audit)

    def change_role(self, before: Role | None, after: Role, by: Grounds, audit: Audit) -> None:
        self._first()
        self._inner.change_role(before, after, by, audit)

    def remove_role(self, role: Role, by: Grounds, audit: Audit) -> None:
        self._first()
        self._inner.remove_role(role, by, audit)

    def _first(self) -> None:
        self.tries += 1
        self._act()


@pytest.fixture
def workspace(stores: Ports, clock: HandClock) -> Ports:
    """Ada and Bob are Admins, Mia manages people by a role of the workspace's own, and Rob reads."""
    people = (("ada", "Admin"), ("bob", "Admin"), ("mia", "Manager"), ("rob", "Reader"))
    audit = Audit("acme", clock.us, "somebody", "test", before="", after="")
    for user, role in people:
        stores.identity.change_member(None, Member("acme", user, role), None, audit)
    stores.identity.change_role(None, Role("acme", "Manager", MANAGER, clock.us), ADA, audit)
    clock.move_s(1)
    return stores


def person(user: str, workspace: str = "acme") -> Caller:
    return Caller(workspace, user, ROLES["Admin"], Settings(), token_sha256="a person's")


def change(stores: Ports, by: str, user: str, **changes: Any) -> None:
    change_member(ChangeMemberRequest(user_name=user, **changes), person(by), stores)


def define(stores: Ports, name: str, *permissions: Permission) -> None:
    change_role(ChangeRoleRequest(role=name, permissions=list(permissions)), person("ada"), stores)


def remove(stores: Ports, by: str, role: str) -> None:
    remove_role(RemoveRoleRequest(role=role), person(by), stores)


def role_of(stores: Ports, user: str) -> str:
    member = stores.identity.member("acme", user)
    assert member is not None
    return member.role


def test_people_are_listed_with_what_they_may_do(workspace: Ports) -> None:
    grants = [GrantedDataset(dataset="archive-*", access="read")]
    invite_member(InviteMemberRequest(user_name="eve", role="Member", grants=grants), person("ada"), workspace)
    listed = list_members(ListMembersRequest(), person("ada"), workspace).members
    assert [(each.user_name, each.role) for each in listed] == [
        ("ada", "Admin"),
        ("bob", "Admin"),
        ("eve", "Member"),
        ("mia", "Manager"),
        ("rob", "Reader"),
    ]
    assert listed[2].grants == grants


def test_roles_are_listed_built_in_ones_first(workspace: Ports) -> None:
    listed = list_roles(ListRolesRequest(), person("ada"), workspace).roles
    assert [(each.role, each.built_in) for each in listed] == [*((name, True) for name in ROLES), ("Manager", False)]
    assert listed[-1].permissions == sorted(MANAGER)


def test_a_member_is_not_invited_twice(workspace: Ports) -> None:
    with pytest.raises(Invalid, match="user_name: rob is a member already"):
        invite_member(InviteMemberRequest(user_name="rob", role="Admin"), person("ada"), workspace)
    assert role_of(workspace, "rob") == "Reader"


def test_a_role_that_is_nowhere_defined_is_not_given(workspace: Ports) -> None:
    with pytest.raises(Invalid, match="role: there is no role Boss"):
        invite_member(InviteMemberRequest(user_name="eve", role="Boss"), person("ada"), workspace)
    with pytest.raises(Invalid, match="role: there is no role Boss"):
        change(workspace, "ada", "rob", role="Boss")


def test_somebody_who_is_no_member_is_not_changed(workspace: Ports) -> None:
    with pytest.raises(NotFound, match="eve is no member"):
        change(workspace, "ada", "eve", role="Member")


def test_what_is_left_out_stays(workspace: Ports) -> None:
    change(workspace, "ada", "rob", grants=[{"dataset": "logs", "access": "write"}])
    change(workspace, "ada", "rob", active=False)
    change(workspace, "ada", "rob", role="Member")
    member = workspace.identity.member("acme", "rob")
    assert member == Member(
        "acme", "rob", "Member", False, (Grant("logs", "write"),), member.changed_us if member else 0
    )


def test_each_change_has_a_time_of_its_own_and_no_change_none(workspace: Ports, clock: HandClock) -> None:
    times = []
    for role in ("Member", "Member", "Reader"):  # the clock stands still
        change(workspace, "ada", "rob", role=role)
        member = workspace.identity.member("acme", "rob")
        times.append(member.changed_us if member else 0)
    assert times == [clock.us, clock.us, clock.us + 1]


@pytest.mark.parametrize("changes", [{"role": "Reader"}, {"active": False}, {"grants": []}, {}])
@pytest.mark.parametrize("user", ["ada", "mia"])
def test_nobody_changes_themselves(workspace: Ports, user: str, changes: dict[str, Any]) -> None:
    before = workspace.identity.member("acme", user)
    with pytest.raises(Forbidden, match="nobody changes their own"):
        change(workspace, user, user, **changes)
    assert workspace.identity.member("acme", user) == before


def test_an_admin_changes_another(workspace: Ports) -> None:
    change(workspace, "ada", "bob", role="Reader")
    assert role_of(workspace, "bob") == "Reader"


@pytest.mark.promise("one-admin-remains")
def test_the_last_admin_cannot_be_locked_out(workspace: Ports) -> None:
    change(workspace, "ada", "bob", active=False)
    for by, user, changes in (
        ("ada", "ada", {"role": "Reader"}),
        ("mia", "ada", {"active": False}),
        ("bob", "ada", {}),
    ):
        with pytest.raises(Forbidden):
            change(workspace, by, user, **changes)
    assert workspace.identity.member("acme", "ada") == Member("acme", "ada", "Admin")


@pytest.mark.promise("one-admin-remains")
def test_of_two_admins_who_demote_each_other_at_once_one_remains(workspace: Ports) -> None:
    """Ada is between reading and writing when Bob demotes her; what she was about to write is not written."""
    ada = replace(
        workspace, identity=Rivals(workspace.identity, lambda: change(workspace, "bob", "ada", role="Reader"))
    )
    with pytest.raises(Forbidden, match="your role does not allow this any more"):
        change(ada, "ada", "bob", role="Reader")
    assert (role_of(workspace, "ada"), role_of(workspace, "bob")) == ("Reader", "Admin")


def test_of_two_changes_of_one_person_both_are_made(workspace: Ports) -> None:
    rival = Rivals(workspace.identity, lambda: change(workspace, "bob", "rob", active=False))
    change(replace(workspace, identity=rival), "ada", "rob", role="Member")
    assert rival.tries == 2
    member = workspace.identity.member("acme", "rob")
    assert member is not None
    assert (member.role, member.active) == ("Member", False)


@pytest.mark.promise("leave-to-change-holds-at-the-write")
@pytest.mark.parametrize("kept", [False, True])
def test_whose_role_is_narrowed_between_reading_and_writing_changes_nobody(
    workspace: Ports, clock: HandClock, kept: bool
) -> None:
    """Mia was let in as a Manager; Ada narrows that role at another server, and Mia's writes come after that."""
    narrowed = ChangeRoleRequest(role="Manager", permissions=["mcp.use"])
    define(workspace, "Unused", "mcp.use")
    rivals = Rivals(workspace.identity, lambda: None if kept else change_role(narrowed, person("ada"), workspace))
    cached = CachedIdentity(rivals, clock)
    mias = replace(workspace, identity=cached)
    list_roles(ListRolesRequest(), person("mia"), mias)
    assert cached.role("acme", "Manager") is not None
    if kept:  # the servers have it in their caches
        change_role(narrowed, person("ada"), workspace)
    for do in (
        lambda: invite_member(InviteMemberRequest(user_name="eve", role="Reader"), person("mia"), mias),
        lambda: change(mias, "mia", "rob", active=False),
        lambda: change_role(ChangeRoleRequest(role="Mine", permissions=["mcp.use"]), person("mia"), mias),
        lambda: remove(mias, "mia", "Unused"),
    ):
        with pytest.raises(Forbidden, match="your role does not allow this any more"):
            do()
    assert workspace.identity.member("acme", "eve") is None
    assert workspace.identity.role("acme", "Mine") is None
    assert workspace.identity.role("acme", "Unused") is not None
    assert workspace.identity.member("acme", "rob") == Member("acme", "rob", "Reader")


@pytest.mark.promise("leave-to-change-holds-at-the-write")
def test_a_change_that_another_server_undid_is_made_again(workspace: Ports, clock: HandClock) -> None:
    """Ada's server knows Rob as she left him; Bob's has let him in again since, and she takes that back."""
    adas = replace(workspace, identity=CachedIdentity(workspace.identity, clock))
    for _ in range(2):
        change(adas, "ada", "rob", active=False)  # the second time he is as wanted, and known
    change(workspace, "bob", "rob", active=True)
    change(adas, "ada", "rob", active=False)
    rob = workspace.identity.member("acme", "rob")
    assert rob is not None
    assert not rob.active
    narrow = ChangeRoleRequest(role="Scribe", permissions=["mcp.use"])
    for _ in range(2):
        change_role(narrow, person("ada"), adas)
    change_role(ChangeRoleRequest(role="Scribe", permissions=["relay.read_all"]), person("bob"), workspace)
    change_role(narrow, person("ada"), adas)
    scribe = workspace.identity.role("acme", "Scribe")
    assert scribe is not None
    assert scribe.permissions == {"mcp.use"}


def test_a_role_that_is_widened_between_reading_and_writing_is_not_given_by_who_has_less(workspace: Ports) -> None:
    change_role(ChangeRoleRequest(role="Scribe", permissions=["mcp.use"]), person("ada"), workspace)
    wide = ChangeRoleRequest(role="Scribe", permissions=["mcp.use", "relay.manage"])
    rivals = Rivals(workspace.identity, lambda: change_role(wide, person("ada"), workspace))
    mias = replace(workspace, identity=rivals)
    with pytest.raises(Forbidden, match=r"the role Scribe allows more than yours: relay\.manage"):
        change(mias, "mia", "rob", role="Scribe")
    assert role_of(workspace, "rob") == "Reader"


def test_who_manages_people_by_a_role_of_the_workspaces_own_narrows_that_role(workspace: Ports) -> None:
    change_role(ChangeRoleRequest(role="Manager", permissions=["members.manage"]), person("mia"), workspace)
    role = workspace.identity.role("acme", "Manager")
    assert role is not None
    assert role.permissions == {"members.manage"}


def test_a_change_that_others_overtake_all_the_time_is_given_up(workspace: Ports) -> None:
    def overtake() -> None:
        raise Moved

    rival = Rivals(workspace.identity, overtake)
    with pytest.raises(Unavailable):
        change(replace(workspace, identity=rival), "ada", "rob", role="Member")
    assert rival.tries == CHANGE_TRIES


def test_who_manages_people_gives_no_more_than_they_have(workspace: Ports) -> None:
    change(workspace, "mia", "rob", role="Member")
    assert role_of(workspace, "rob") == "Member"
    boss = Role("acme", "Boss", frozenset(("mcp.use", "relay.manage")), NOW_US)
    workspace.identity.change_role(None, boss, ADA, Audit("acme", 0, "ada", "test", "", ""))
    with pytest.raises(Forbidden, match=r"the role Boss allows more than yours: relay\.manage"):
        change(workspace, "mia", "rob", role="Boss")
    with pytest.raises(Forbidden, match="only an Admin"):
        change(workspace, "mia", "rob", role="Admin")
    with pytest.raises(Forbidden, match="only an Admin"):
        invite_member(InviteMemberRequest(user_name="eve", role="Admin"), person("mia"), workspace)
    with pytest.raises(Forbidden, match=r"allows more than yours: relay\.read_all"):
        change_role(ChangeRoleRequest(role="Manager", permissions=["relay.read_all"]), person("mia"), workspace)
    change(workspace, "ada", "rob", role="Boss")
    with pytest.raises(Forbidden, match="the role Boss allows more than yours"):
        change(workspace, "mia", "rob", active=False)  # nor do they take it from somebody
    with pytest.raises(Forbidden, match="the role Boss allows more than yours"):
        change_role(ChangeRoleRequest(role="Boss", permissions=[]), person("mia"), workspace)


@pytest.mark.parametrize(
    ("dataset", "access", "given"),
    [
        ("team-a", "read", True),
        ("team-*", "read", True),
        ("t*", "read", False),
        ("*", "read", False),
        ("team-a", "write", False),
    ],
)
def test_who_manages_people_gives_no_grant_that_they_do_not_have(
    workspace: Ports, dataset: str, access: Any, given: bool
) -> None:
    change(workspace, "ada", "mia", grants=[GrantedDataset(dataset="team-*", access="read")])
    invitation = InviteMemberRequest(
        user_name="eve", role="Reader", grants=[GrantedDataset(dataset=dataset, access=access)]
    )
    if given:
        invite_member(invitation, person("mia"), workspace)
    else:
        with pytest.raises(Forbidden, match="you have no grant of your own"):
            invite_member(invitation, person("mia"), workspace)
        with pytest.raises(Forbidden, match="you have no grant of your own"):
            change(workspace, "mia", "rob", grants=invitation.grants)
    invite_member(invitation.model_copy(update={"user_name": "max"}), person("ada"), workspace)


def test_who_reads_everything_gives_leave_to_read_and_none_to_write_that_they_do_not_have(workspace: Ports) -> None:
    wider = sorted({*MANAGER, "relay.read_all"})
    change_role(ChangeRoleRequest(role="Manager", permissions=wider), person("ada"), workspace)
    change(workspace, "ada", "mia", grants=[GrantedDataset(dataset="team-*", access="write")])
    change(workspace, "mia", "rob", grants=[GrantedDataset(dataset="*", access="read")])
    change(workspace, "mia", "rob", grants=[GrantedDataset(dataset="team-a", access="write")])
    with pytest.raises(Forbidden, match="no grant of your own for logs to write"):
        change(workspace, "mia", "rob", grants=[GrantedDataset(dataset="logs", access="write")])
    change(workspace, "ada", "rob", grants=[GrantedDataset(dataset="logs", access="write")])


def test_who_manages_people_leaves_a_grant_that_is_there(workspace: Ports) -> None:
    change(workspace, "ada", "rob", grants=[GrantedDataset(dataset="*", access="write")])
    change(workspace, "mia", "rob", grants=[GrantedDataset(dataset="*", access="write")], role="Member")
    assert role_of(workspace, "rob") == "Member"


def test_a_role_with_all_permissions_makes_no_admin_of_anybody(workspace: Ports) -> None:
    change_role(ChangeRoleRequest(role="Deputy", permissions=sorted(ROLES["Admin"])), person("ada"), workspace)
    change(workspace, "ada", "mia", role="Deputy")
    for user, role in (("ada", "Reader"), ("rob", "Admin")):
        with pytest.raises(Forbidden, match="only an Admin"):
            change(workspace, "mia", user, role=role)


@pytest.mark.parametrize("role", ROLES)
def test_a_built_in_role_stays_as_it_is(workspace: Ports, role: str) -> None:
    with pytest.raises(Invalid, match="built in"):
        change_role(ChangeRoleRequest(role=role, permissions=["mcp.use"]), person("ada"), workspace)


def test_a_role_is_removed_once_nobody_has_it_active_or_not(workspace: Ports) -> None:
    define(workspace, "Scribe", "mcp.use")
    change(workspace, "ada", "rob", role="Scribe")
    with pytest.raises(Invalid, match="role: 1 person has the role Scribe, active or not; give them another"):
        remove(workspace, "ada", "Scribe")
    change(workspace, "ada", "rob", active=False)
    change(workspace, "ada", "bob", role="Scribe")
    with pytest.raises(Invalid, match="role: 2 people have the role Scribe"):
        remove(workspace, "ada", "Scribe")
    for user in ("rob", "bob"):
        change(workspace, "ada", user, role="Member")
    remove(workspace, "ada", "Scribe")
    assert [each.name for each in workspace.identity.roles("acme")] == ["Manager"]
    with pytest.raises(NotFound, match="there is no role Scribe; GET /ai/roles lists them"):
        remove(workspace, "ada", "Scribe")


@pytest.mark.parametrize("role", ROLES)
def test_a_built_in_role_is_not_removed(workspace: Ports, role: str) -> None:
    with pytest.raises(Invalid, match=f"role: {role} is built in and cannot be removed"):
        remove(workspace, "ada", role)


def test_who_manages_people_removes_no_role_that_allows_more_than_theirs(workspace: Ports) -> None:
    define(workspace, "Boss", "mcp.use", "relay.manage")
    with pytest.raises(Forbidden, match=r"the role Boss allows more than yours: relay\.manage"):
        remove(workspace, "mia", "Boss")
    define(workspace, "Boss", "mcp.use")
    remove(workspace, "mia", "Boss")
    assert workspace.identity.role("acme", "Boss") is None


@pytest.mark.promise("no-one-has-a-removed-role")
def test_a_role_that_is_given_in_the_moment_of_its_removal_stays(workspace: Ports) -> None:
    define(workspace, "Scribe", "mcp.use")
    rivals = Rivals(workspace.identity, lambda: change(workspace, "bob", "rob", role="Scribe"))
    with pytest.raises(Invalid, match="1 person has the role Scribe"):
        remove(replace(workspace, identity=rivals), "ada", "Scribe")
    assert workspace.identity.role("acme", "Scribe") is not None


@pytest.mark.promise("no-one-has-a-removed-role")
@pytest.mark.parametrize(
    "give",
    [
        lambda adas: change(adas, "ada", "rob", role="Scribe"),
        lambda adas: invite_member(InviteMemberRequest(user_name="eve", role="Scribe"), person("ada"), adas),
    ],
    ids=["change_member", "invite_member"],
)
@pytest.mark.parametrize("kept", [False, True])
def test_a_role_that_is_removed_in_the_moment_it_is_given_is_not_given(
    workspace: Ports, clock: HandClock, kept: bool, give: Callable[[Ports], object]
) -> None:
    """Bob removes it at another server: just before Ada's write, or while hers keeps it in its cache."""
    define(workspace, "Scribe", "mcp.use")
    rivals = Rivals(workspace.identity, lambda: None if kept else remove(workspace, "bob", "Scribe"))
    cached = CachedIdentity(rivals, clock)
    adas = replace(workspace, identity=cached)
    assert cached.role("acme", "Scribe") is not None
    if kept:
        remove(workspace, "bob", "Scribe")
    with pytest.raises(Invalid, match="there is no role Scribe"):
        give(adas)
    assert role_of(workspace, "rob") == "Reader"
    assert workspace.identity.member("acme", "eve") is None


def test_a_role_that_is_defined_as_it_was_makes_no_key_stale(workspace: Ports) -> None:
    before = workspace.identity.role("acme", "Manager")
    change_role(ChangeRoleRequest(role="Manager", permissions=sorted(MANAGER)), person("ada"), workspace)
    assert workspace.identity.role("acme", "Manager") == before
    change_role(ChangeRoleRequest(role="Manager", permissions=["mcp.use"]), person("ada"), workspace)
    after = workspace.identity.role("acme", "Manager")
    assert before is not None
    assert after is not None
    assert after.changed_us > before.changed_us


def test_a_workspace_has_people_and_roles_of_its_own(workspace: Ports) -> None:
    audit = Audit("beta", 0, "zoe", "test", before="", after="")
    workspace.identity.change_member(None, Member("beta", "zoe", "Admin"), None, audit)
    zoe = person("zoe", "beta")
    assert [each.user_name for each in list_members(ListMembersRequest(), zoe, workspace).members] == ["zoe"]
    assert [each.role for each in list_roles(ListRolesRequest(), zoe, workspace).roles] == list(ROLES)
    with pytest.raises(NotFound):
        change_member(ChangeMemberRequest(user_name="rob", role="Member"), zoe, workspace)
    with pytest.raises(Invalid, match="there is no role Manager"):
        invite_member(InviteMemberRequest(user_name="rob", role="Manager"), zoe, workspace)


@pytest.mark.parametrize("dataset", ["*", "logs", "logs*", "team-*", "x" * 64 + "*"])
def test_a_grant_names_a_dataset_or_how_names_begin(dataset: str) -> None:
    assert GrantedDataset(dataset=dataset, access="read").dataset == dataset


@pytest.mark.parametrize("dataset", ["", "**", "a*b", "_ctrlb_x", "_ctrlb_*", "a/b", "x" * 65, "é*", "a b"])
def test_a_grant_names_nothing_else(dataset: str) -> None:
    with pytest.raises(ValidationError):
        GrantedDataset(dataset=dataset, access="read")


@pytest.mark.parametrize(
    ("granted", "dataset", "expected"),
    [
        ("logs", "logs", True),
        ("logs", "logs2", False),
        ("logs*", "logs2", True),
        ("logs*", "logs", True),
        ("logs*", "log", False),
        ("*", "anything", True),
        ("logs", "LOGS", False),
    ],
)
def test_a_grant_is_about_its_datasets_only(granted: str, dataset: str, expected: bool) -> None:
    assert covers(Grant(granted, "read"), dataset) == expected


@pytest.mark.promise("reads-may-name-a-dataset", "key-acts-as-person")
@pytest.mark.parametrize("access", ["read", "write"])
def test_who_has_a_grant_reads_its_datasets_and_no_others(access: Any) -> None:
    caller = Caller("acme", "rob", ROLES["Reader"], Settings(), grants=(Grant("team-*", access),))
    assert caller.dataset_to_read("") == caller.dataset_to_read("agent_sessions") == Dataset("acme", "agent_sessions")
    assert caller.dataset_to_read("team-a") == Dataset("acme", "team-a")
    with pytest.raises(Forbidden, match="no grant to read the dataset other"):
        caller.dataset_to_read("other")
    with pytest.raises(Invalid, match="dataset: writes go to agent_sessions"):
        caller.dataset_to_write("team-a")  # a grant to write is for OpenTelemetry logs
