"""A workspace's people and its roles: who is there, and what they may do.

Nobody gives more than they have, changes themselves, or, unless an Admin, changes an Admin. Each change is written only
while who makes it, and each role looked at, is as it was read: of two Admins who demote each other one remains.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ctrlb.decisions import Decision, decide
from ctrlb.domain.access import ADMIN, ROLES, Caller, includes
from ctrlb.domain.audits import audit_of
from ctrlb.domain.errors import Forbidden, Invalid, NotFound
from ctrlb.domain.rows import Grant, Member, Permission, Role
from ctrlb.models import (
    ChangeMemberRequest,
    ChangeRoleRequest,
    GrantedDataset,
    InviteMemberRequest,
    ListMembersAnswer,
    ListMembersRequest,
    ListRolesAnswer,
    ListRolesRequest,
    MemberInfo,
    RemoveRoleAnswer,
    RemoveRoleRequest,
    RoleInfo,
)
from ctrlb.ports import Ports, RoleGiven


def list_members(request: ListMembersRequest, caller: Caller, ports: Ports) -> ListMembersAnswer:
    """The workspace's people, active or not."""
    return ListMembersAnswer(members=[member_info(member) for member in ports.identity.members(caller.workspace)])


def invite_member(request: InviteMemberRequest, caller: Caller, ports: Ports) -> MemberInfo:
    """Add a person, who can sign in from now on."""
    after = Member(caller.workspace, request.user_name, request.role, grants=_grants(request.grants))

    def once(decision: Decision) -> MemberInfo:
        _check_gives(decision, after.role)
        _check_grants(decision, after.grants)
        if ports.identity.member(after.workspace, after.user) is not None:
            raise Invalid(f"user_name: {after.user} is a member already; change_member changes what they may do")
        info = member_info(after)
        audit = audit_of("invite_member", caller, ports.clock.now_us(), None, info.model_dump())
        ports.identity.change_member(None, after, decision.grounds, audit)
        return info

    return decide("members.manage", caller, ports, once)


def change_member(request: ChangeMemberRequest, caller: Caller, ports: Ports) -> MemberInfo:
    """Change what the request names. The person's keys are stale from then on, if anything did change."""
    changes: dict[str, Any] = request.model_dump(include={"role", "active"}, exclude_unset=True)
    if request.grants is not None:
        changes["grants"] = _grants(request.grants)

    def once(decision: Decision) -> MemberInfo:
        before = ports.identity.member(caller.workspace, request.user_name, fresh=True)
        if before is None:
            raise NotFound(f"{request.user_name} is no member of your workspace; invite_member adds people")
        if before.user == decision.by.user:
            raise Forbidden("nobody changes their own role, grants or status; ask another Admin")
        after = replace(before, **changes)
        for role in {before.role, after.role}:
            _check_gives(decision, role, is_there=role == before.role)
        _check_grants(decision, [grant for grant in after.grants if grant not in before.grants])
        if after == before:
            return member_info(before)
        after = replace(after, changed_us=_later_than(before.changed_us, ports))
        was, info = member_info(before), member_info(after)
        audit = audit_of("change_member", caller, ports.clock.now_us(), was.model_dump(), info.model_dump())
        ports.identity.change_member(before, after, decision.grounds, audit)
        return info

    return decide("members.manage", caller, ports, once)


def list_roles(request: ListRolesRequest, caller: Caller, ports: Ports) -> ListRolesAnswer:
    """The built-in roles and the workspace's own."""
    built_in = [_role_info(name, permissions, built_in=True) for name, permissions in ROLES.items()]
    return ListRolesAnswer(roles=built_in + [_own_role_info(role) for role in ports.identity.roles(caller.workspace)])


def change_role(request: ChangeRoleRequest, caller: Caller, ports: Ports) -> RoleInfo:
    """Say what a role of the workspace's own allows. The keys of its people are stale from then on."""
    if request.role in ROLES:
        raise Invalid(f"role: {request.role} is built in and stays as it is; choose another name")
    permissions = frozenset(request.permissions)

    def once(decision: Decision) -> RoleInfo:
        before = decision.role(request.role)
        _check_has(decision, permissions | (before.permissions if before else frozenset()), request.role)
        info = _role_info(request.role, permissions, built_in=False)
        if before is None or before.permissions != permissions:
            changed_us = _later_than(before.changed_us if before else 0, ports)
            after = Role(caller.workspace, request.role, permissions, changed_us)
            was = _own_role_info(before).model_dump() if before else None
            audit = audit_of("change_role", caller, ports.clock.now_us(), was, info.model_dump())
            ports.identity.change_role(before, after, decision.grounds, audit)
        return info

    return decide("members.manage", caller, ports, once)


def remove_role(request: RemoveRoleRequest, caller: Caller, ports: Ports) -> RemoveRoleAnswer:
    """Remove a role of the workspace's own that nobody has, active or not: who has it would be allowed nothing."""
    name = request.role
    if name in ROLES:
        raise Invalid(f"role: {name} is built in and cannot be removed")

    def once(decision: Decision) -> RemoveRoleAnswer:
        role = decision.role(name)
        if role is None:
            raise NotFound(f"there is no role {name}; GET /ai/roles lists them")
        _check_has(decision, role.permissions, name)
        audit = audit_of("remove_role", caller, ports.clock.now_us(), _own_role_info(role).model_dump(), None)
        try:
            ports.identity.remove_role(role, decision.grounds, audit)
        except RoleGiven as given:
            who = "1 person has" if given.people == 1 else f"{given.people} people have"
            raise Invalid(
                f"role: {who} the role {name}, active or not; give them another with change_member, then remove it"
            ) from None
        return RemoveRoleAnswer(role=name)

    return decide("members.manage", caller, ports, once)


def _check_gives(decision: Decision, role: str, *, is_there: bool = False) -> None:
    """Raise unless the person may give the role, or, where it `is_there`, take it away; then it may be undefined."""
    permissions = decision.permissions_of(role)
    if permissions is None and not is_there:
        raise Invalid(f"role: there is no role {role}; GET /ai/roles lists them")
    if role == ADMIN and decision.by.role != ADMIN:
        raise Forbidden("only an Admin makes or changes an Admin")
    _check_has(decision, permissions or frozenset(), role)


def _check_grants(decision: Decision, given: Iterable[Grant]) -> None:
    """Raise unless the person has every grant that they give: an Admin has, and who reads all may read."""
    if decision.by.role == ADMIN:
        return
    for grant in given:
        reads = grant.access == "read" and "relay.read_all" in decision.permissions
        if not reads and not any(includes(own, grant) for own in decision.by.grants):
            raise Forbidden(f"grants: you have no grant of your own for {grant.dataset} to {grant.access}")


def _check_has(decision: Decision, permissions: frozenset[Permission], role: str) -> None:
    if more := permissions - decision.permissions:
        raise Forbidden(f"the role {role} allows more than yours: {', '.join(sorted(more))}")


def _later_than(before_us: int, ports: Ports) -> int:
    return max(ports.clock.now_us(), before_us + 1)


def _grants(grants: Iterable[GrantedDataset]) -> tuple[Grant, ...]:
    return tuple(Grant(grant.dataset, grant.access) for grant in grants)


def member_info(member: Member) -> MemberInfo:
    """A person as they are shown, and recorded."""
    grants = [GrantedDataset(dataset=grant.dataset, access=grant.access) for grant in member.grants]
    return MemberInfo(user_name=member.user, role=member.role, active=member.active, grants=grants)


def _role_info(name: str, permissions: frozenset[Permission], *, built_in: bool) -> RoleInfo:
    return RoleInfo(role=name, permissions=sorted(permissions), built_in=built_in)


def _own_role_info(role: Role) -> RoleInfo:
    return _role_info(role.name, role.permissions, built_in=False)
