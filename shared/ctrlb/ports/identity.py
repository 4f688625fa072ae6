"""What the operations ask about people: who they are, what they may do, and with what they come."""

from dataclasses import dataclass
from typing import Protocol

from ctrlb.domain.rows import Audit, Grounds, IngestCredential, Key, Member, Role, Settings, SignIn

MAX_LIVE_KEYS = 100
"""How many keys of a person may be neither revoked nor expired at once."""


class TooManyKeys(Exception):
    """The person has MAX_LIVE_KEYS already; nothing was written."""


class Moved(Exception):
    """What was to be replaced is not as it was read: somebody changed it meanwhile. Nothing was written."""


class RoleGiven(Exception):
    """People have the role that was to be removed; nothing was written."""

    def __init__(self, people: int) -> None:
        """`people` says how many, active or not."""
        super().__init__(people)
        self.people = people


class IdentityStore(Protocol):
    """Workspaces' members, roles, keys, settings and sign-ins, and who changed what."""

    def key(self, workspace: str, key_id: str, presented_sha256: str = "") -> Key | None:
        """The key as it is stored, revoked or not.

        Only where `presented_sha256` is its own may it be known from some seconds ago: so a wrong secret costs what
        an unknown id does, and no time tells which ids there are.
        """

    def add_key(self, key: Key, audit: Audit) -> None:
        """Write a new key, or raise TooManyKeys; its id is random and taken to be new."""

    def keys(self, workspace: str, user: str) -> list[Key]:
        """The user's keys, oldest first, revoked ones too. However many others have, it takes no longer."""

    def revoke_key(self, workspace: str, key_id: str, revoked_us: int, audit: Audit) -> None:
        """Mark the key revoked; one that is revoked already keeps its first time."""

    def touch_key(self, workspace: str, key_id: str, used_us: int) -> None:
        """Note that the key was used; callers do so at most once an hour for a key."""

    def member(self, workspace: str, user: str, *, fresh: bool = False) -> Member | None:
        """The person, active or not; unless a `fresh` one is asked for, perhaps as they were some seconds ago."""

    def members(self, workspace: str) -> list[Member]:
        """The workspace's people by name, active or not."""

    def change_member(self, before: Member | None, after: Member, by: Grounds | None, audit: Audit) -> None:
        """Replace `before` by `after`, or add `after` where there was nobody; or raise Moved and write nothing.

        It moved as well when `by`, what somebody else decided it by, is no longer as given; None is the command line.
        """

    def role(self, workspace: str, name: str, *, fresh: bool = False) -> Role | None:
        """The role as the workspace has defined it, `fresh` or not as with `member`; built-in roles are not kept."""

    def roles(self, workspace: str) -> list[Role]:
        """The roles that the workspace has defined, by name."""

    def change_role(self, before: Role | None, after: Role, by: Grounds, audit: Audit) -> None:
        """Replace or add a role as `change_member` does a person."""

    def remove_role(self, role: Role, by: Grounds, audit: Audit) -> None:
        """Remove the role, or raise Moved and write nothing, as `change_role` does.

        Raises RoleGiven, and writes nothing, while a person, active or not, has it. Of two calls, one that removes it
        and one that gives it to somebody, only one succeeds.
        """

    def settings(self, workspace: str) -> Settings:
        """The workspace's settings; the defaults when it has changed none."""

    def change_settings(
        self, workspace: str, before: Settings, after: Settings, by: Grounds | None, audit: Audit
    ) -> None:
        """Replace `before` by `after`, or raise Moved and write nothing, as `change_member` does."""

    def ingest_credential(
        self, workspace: str, credential_id: str, presented_sha256: str = ""
    ) -> IngestCredential | None:
        """The credential as it is stored, revoked or not; known from before as `key` is."""

    def ingest_credentials(self, workspace: str) -> list[IngestCredential]:
        """The workspace's credentials, oldest first, revoked ones too."""

    def add_ingest_credential(self, credential: IngestCredential, by: Grounds, audit: Audit) -> None:
        """Write a new credential, whose id is random and taken to be new; or raise Moved, as `change_member` does."""

    def revoke_ingest_credential(
        self, workspace: str, credential_id: str, revoked_us: int, by: Grounds, audit: Audit
    ) -> None:
        """Mark the credential revoked; one that is revoked already keeps its first time.

        Raises Moved, and writes nothing, as `change_member` does, and where there is no such credential.
        """

    def audits(self, workspace: str, before: tuple[int, str] | None, limit: int, user: str | None) -> list[Audit]:
        """The newest `limit` changes in the workspace, newest first, with every one that has returned.

        Those below `before`, the time and name of one, if it is given; by `user` alone, if one is named. Equal times
        are in the same order at each call. However many others there are, it takes no longer.
        """

    def add_sign_in(self, sign_in: SignIn, *, once: bool) -> None:
        """Keep a session (`once=False`) or a one-time code (`once=True`)."""

    def sign_in(self, token_sha256: str) -> SignIn | None:
        """The session with this token's hash, expired or not."""

    def use_code(self, token_sha256: str) -> SignIn | None:
        """Take a one-time code: of any number of callers, one gets it."""

    def remove_sign_in(self, token_sha256: str) -> None:
        """End a session; one that is unknown is no error."""


@dataclass(frozen=True, slots=True)
class SignInPlaces:
    """The addresses of an issuer that a browser goes to. The names are OpenID Connect's."""

    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str | None
    end_session_return: str
    """The parameter in which end_session_endpoint takes the address to come back to."""


class Issuer(Protocol):
    """Who signs a deployment's people in."""

    @property
    def address(self) -> str:
        """The issuer's own, where people sign out again."""

    @property
    def workspace(self) -> str:
        """The workspace whose members they are, at an address that serves every workspace."""

    @property
    def client_id(self) -> str:
        """As which of its clients people sign in here: its tokens are for that one."""

    @property
    def scope(self) -> str:
        """What to ask it for, so that a token names the member."""

    def of_client(self, client_id: str) -> "Issuer":
        """The same issuer, with what is known of it, for another client."""

    def places(self) -> SignInPlaces:
        """Where people sign in and out. Raises Unavailable when it does not answer, or says so of no safe place."""

    def user(self, token: str) -> str | None:
        """The person that the token names; None when it is not the issuer's for us, or has ended.

        Raises Unavailable when the issuer's keys cannot be had.
        """
