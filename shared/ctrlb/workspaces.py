"""A workspace's first person. Whoever runs the deployment makes them: before them there is nobody who could."""

import re

from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.errors import Forbidden, Invalid
from ctrlb.domain.ids import id_fault
from ctrlb.domain.key_format import WORKSPACE_PATTERN
from ctrlb.domain.rows import Audit, Member
from ctrlb.ports import Ports

COMMAND_LINE = "command line"


def admin_of(workspace: str, user: str, ports: Ports) -> Caller:
    """An Admin of the workspace, as who the command line acts. Added to it at the first call.

    Raises Invalid for a name that cannot be one, Forbidden for a person who is there without that role.
    """
    if not re.fullmatch(WORKSPACE_PATTERN, workspace):
        raise Invalid("a workspace's name has 1 to 32 small letters, digits and -, and does not begin with -")
    if fault := id_fault(user):
        raise Invalid(f"a person's name {fault}")
    member = ports.identity.member(workspace, user)
    if member is None:
        audit = Audit(workspace, ports.clock.now_us(), COMMAND_LINE, "invite_member", before="", after=f"{user}: Admin")
        ports.identity.change_member(None, Member(workspace, user, "Admin"), None, audit)
    elif member.role != "Admin" or not member.active:
        raise Forbidden(f"{user} is in {workspace} already, and no active Admin of it")
    return Caller(workspace, user, ROLES["Admin"], ports.identity.settings(workspace), COMMAND_LINE)
