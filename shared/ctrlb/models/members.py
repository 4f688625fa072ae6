"""The wire of people and roles."""

from typing import Annotated

from pydantic import AfterValidator, Field

from ctrlb.domain.ids import MAX_DATASET_CHARS, granted_fault
from ctrlb.domain.rows import GrantAccess, Permission
from ctrlb.models.fields import Answer, Id, Request, Wire

MAX_GRANTS = 100
MAX_PERMISSIONS = 6


def _granted(value: str) -> str:
    if fault := granted_fault(value):
        raise ValueError(fault)
    return value


class GrantedDataset(Wire):
    """What a person may do in a dataset beside the workspace's own."""

    dataset: Annotated[str, Field(max_length=MAX_DATASET_CHARS + 1), AfterValidator(_granted)]
    access: GrantAccess


class MemberInfo(Answer):
    """A person of the workspace."""

    user_name: str
    role: str
    active: bool
    grants: list[GrantedDataset]


class ListMembersRequest(Request):
    """List the workspace's people."""


class ListMembersAnswer(Answer):
    """The workspace's people by name, those who are not active too."""

    members: list[MemberInfo]


class InviteMemberRequest(Request):
    """Add a person to the workspace."""

    user_name: Id
    role: Id
    grants: list[GrantedDataset] = Field(default=[], max_length=MAX_GRANTS)


class ChangeMemberRequest(Request):
    """Change a person's role, grants or status. What is left out stays as it is."""

    user_name: Id
    role: Id | None = None
    grants: Annotated[list[GrantedDataset], Field(max_length=MAX_GRANTS)] | None = None
    active: bool | None = None


class RoleInfo(Answer):
    """A role and what it allows."""

    role: str
    permissions: list[Permission]
    built_in: bool


class ListRolesRequest(Request):
    """List the roles that people of the workspace can have."""


class ListRolesAnswer(Answer):
    """The built-in roles, then the workspace's own by name."""

    roles: list[RoleInfo]


class RemoveRoleRequest(Request):
    """Remove a role of the workspace's own that nobody has."""

    role: Id


class RemoveRoleAnswer(Answer):
    """There is no such role any more."""

    role: str


class ChangeRoleRequest(Request):
    """Define a role of the workspace's own, or define it anew."""

    role: Id
    permissions: Annotated[list[Permission], Field(max_length=MAX_PERMISSIONS)]
