"""Changes that a person decides: whether they still may, and what the decision rests on.

A server may know people and roles from some seconds ago, so those that decide are read from the store. The change is
written only while who makes it, and each role that was looked at, is as it was read.
"""

from collections.abc import Callable
from typing import TypeVar

from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.errors import Forbidden, Unavailable
from ctrlb.domain.rows import Grounds, Permission, Role
from ctrlb.ports import Moved, Ports

CHANGE_TRIES = 16
"""How often a change is made anew because somebody else's came first."""

T = TypeVar("T")


class Decision:
    """One try of a change: who makes it, as they are kept, and the roles that were looked at for it."""

    def __init__(self, permission: Permission, caller: Caller, ports: Ports) -> None:
        """Raises Forbidden when the caller has lost the permission since they were let in."""
        by = ports.identity.member(caller.workspace, caller.user, fresh=True)
        if by is None or not by.active:
            raise _lost(permission)
        self.by = by
        self._roles: dict[str, Role | None] = {}
        self._ports = ports
        self.permissions = self.permissions_of(by.role) or frozenset()
        if permission not in self.permissions:
            raise _lost(permission)

    def role(self, name: str) -> Role | None:
        """A role of the workspace's own, the same at each call."""
        if name not in self._roles:
            self._roles[name] = self._ports.identity.role(self.by.workspace, name, fresh=True)
        return self._roles[name]

    def permissions_of(self, role: str) -> frozenset[Permission] | None:
        """What a role allows; None for one that is nowhere defined."""
        if role in ROLES:
            return ROLES[role]
        own = self.role(role)
        return own.permissions if own else None

    @property
    def grounds(self) -> Grounds:
        """What the change is to be conditional on."""
        return Grounds(self.by, dict(self._roles))


def decide(permission: Permission, caller: Caller, ports: Ports, once: Callable[[Decision], T]) -> T:
    """What `once` returns, which is called anew as long as it raises Moved, at most CHANGE_TRIES times.

    Raises Forbidden when the caller has not the permission any more, Unavailable when others always come first.
    """
    for _ in range(CHANGE_TRIES):
        try:
            return once(Decision(permission, caller, ports))
        except Moved:
            continue
    raise Unavailable("others are changing the same all the time; nothing was changed, send it again")


def _lost(permission: Permission) -> Forbidden:
    return Forbidden(f"your role does not allow this any more: it needs {permission}")
