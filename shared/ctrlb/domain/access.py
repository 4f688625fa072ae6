"""Who is calling, and what they may do. Source: the contract's "Run id and agent id", "Settings", "Errors"."""

from dataclasses import dataclass

from ctrlb.domain.errors import Forbidden, Invalid
from ctrlb.domain.rows import Dataset, Grant, Permission, Settings

ADMIN = "Admin"
COMMAND_LINE = "command line"
"""In the place of a token's hash: whoever runs the deployment calls, as the person."""
ROLES: dict[str, frozenset[Permission]] = {
    ADMIN: frozenset(("mcp.use", "sessions.write", "relay.write", "relay.read_all", "relay.manage", "members.manage")),
    "Member": frozenset(("mcp.use", "sessions.write", "relay.write")),
    "Reader": frozenset(("mcp.use",)),
}
"""The built-in roles, which no workspace can define anew. A role that is nowhere defined allows nothing."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The user behind a request, with the settings of their workspace as they stand now."""

    workspace: str
    user: str
    permissions: frozenset[Permission]
    settings: Settings
    token_sha256: str = ""
    """The hash of a signed-in person's token; empty when a key called."""
    grants: tuple[Grant, ...] = ()
    issuer: str = ""
    """The address of the issuer that signed the person in; empty for a session of ours, or a key."""
    changed_us: int = 0
    """When what they may do last changed, as far as is known; 0 for never."""

    @property
    def is_person(self) -> bool:
        """A person who signed in called, not a key."""
        return self.token_sha256 != ""

    def outdates(self, made_us: int) -> bool:
        """Whether what the caller may do has changed since: a key that was made then is refused as stale."""
        return made_us < self.changed_us

    @property
    def recorded_as(self) -> str:
        """Who makes the caller's changes, for the record: the person, or nobody (empty) for the command line."""
        return "" if self.token_sha256 == COMMAND_LINE else self.user

    def may(self, permission: Permission) -> bool:
        """Whether the caller's role has the permission."""
        return permission in self.permissions

    @property
    def seen_user(self) -> str | None:
        """Whose rows the caller sees: their own, or everybody's (None) with `relay.read_all`."""
        return None if self.may("relay.read_all") else self.user

    def dataset_to_read(self, name: str) -> Dataset:
        """A dataset of the caller's workspace, the sessions dataset when none is named.

        Another one needs a grant of the person's, or `relay.read_all`. Raises Forbidden.
        """
        own = self.settings.sessions_dataset
        if name in ("", own) or self.may("relay.read_all") or any(covers(grant, name) for grant in self.grants):
            return Dataset(self.workspace, name or own)
        raise Forbidden(f"you have no grant to read the dataset {name}; your workspace's sessions go to {own}")

    def dataset_to_write(self, name: str) -> Dataset:
        """The workspace's sessions dataset, the only one that is written to. Raises Invalid for another."""
        own = self.settings.sessions_dataset
        if name not in ("", own):
            raise Invalid(f"dataset: writes go to {own}, the workspace's sessions dataset, not to {name}")
        return Dataset(self.workspace, own)


def includes(grant: Grant, other: Grant) -> bool:
    """Whether who has the one grant may do all that the other allows."""
    if grant.access != other.access and grant.access != "write":
        return False
    if other.dataset.endswith("*"):
        return grant.dataset.endswith("*") and other.dataset.startswith(grant.dataset[:-1])
    return covers(grant, other.dataset)


def covers(grant: Grant, dataset: str) -> bool:
    """Whether the grant is about the dataset: by its name, or by how it begins where the grant ends in `*`."""
    if grant.dataset.endswith("*"):
        return dataset.startswith(grant.dataset[:-1])
    return dataset == grant.dataset
