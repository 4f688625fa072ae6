"""A workspace's first person. Whoever runs the deployment makes them: before them there is nobody who could."""

import re
from dataclasses import replace

from ctrlb.domain.access import ADMIN, COMMAND_LINE, ROLES, Caller
from ctrlb.domain.audits import audit_of
from ctrlb.domain.errors import Forbidden, Invalid
from ctrlb.domain.ids import id_fault
from ctrlb.domain.key_format import WORKSPACE_PATTERN
from ctrlb.domain.rows import Member
from ctrlb.members import member_info
from ctrlb.ports import Ports


def admin_of(workspace: str, user: str, ports: Ports) -> Caller:
    """An Admin of the workspace, as who the command line acts. Added to it at the first call.

    Raises Invalid for a name that cannot be one, Forbidden for a person who is there without that role.
    """
    if not re.fullmatch(WORKSPACE_PATTERN, workspace):
        raise Invalid("a workspace's name has 1 to 32 small letters, digits and -, and does not begin with -")
    if fault := id_fault(user):
        raise Invalid(f"a person's name {fault}")
    caller = Caller(workspace, user, ROLES[ADMIN], ports.identity.settings(workspace), COMMAND_LINE)
    member = ports.identity.member(workspace, user)
    if member is None:
        member = Member(workspace, user, ADMIN)
        action = "invite_member" if ports.identity.members(workspace) else "create_workspace"
        audit = audit_of(action, caller, ports.clock.now_us(), None, member_info(member).model_dump())
        ports.identity.change_member(None, member, None, audit)
    elif member.role != ADMIN or not member.active:
        raise Forbidden(f"{user} is in {workspace} already, and no active Admin of it")
    return replace(caller, changed_us=member.changed_us)
