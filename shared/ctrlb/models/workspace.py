"""The wire of settings, keys and sign-ins."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ctrlb.domain.rows import EnforceMode
from ctrlb.models.fields import Answer, DatasetName, Id, Label, Request, Whole, no_flag


class GetSettingsRequest(Request):
    """Read the workspace's Relay settings."""


class SettingsAnswer(Answer):
    """The workspace's Relay settings."""

    enforce: EnforceMode
    lease_seconds: int = Field(serialization_alias="leaseSeconds")
    wait_ms: int = Field(serialization_alias="waitMs")
    silent_after_seconds: int = Field(serialization_alias="silentAfterSeconds")
    sessions_dataset: str = Field(serialization_alias="sessionsDataset")
    write_tools: bool = Field(serialization_alias="writeTools")


class ChangeSettingsRequest(Request):
    """Change the workspace's Relay settings. What is left out stays as it is."""

    enforce: EnforceMode | None = None
    lease_seconds: Whole | None = Field(default=None, ge=60, le=86_400, alias="leaseSeconds")
    wait_ms: Whole | None = Field(default=None, ge=1, le=1_000, alias="waitMs")
    silent_after_seconds: Whole | None = Field(default=None, ge=10, le=86_400, alias="silentAfterSeconds")
    sessions_dataset: DatasetName | None = Field(default=None, alias="sessionsDataset")
    write_tools: bool | None = Field(default=None, alias="writeTools")


class CreateKeyRequest(Request):
    """Make a key that acts as you."""

    name: Label
    expires_days: Annotated[Literal[30, 90, 365, 0], BeforeValidator(no_flag)] = Field(
        default=90, description="30, 90 or 365 days; 0 for never."
    )


class KeyInfo(Answer):
    """A key, without its secret."""

    key_id: str
    name: str
    user_name: str
    created: int
    expires: int | None
    revoked: int | None
    last_used: int | None = Field(description="When it was last used, to the hour.")
    stale: bool = Field(description="Your role, grants or status changed after it was made, so it is refused.")


class CreateKeyAnswer(Answer):
    """The key. It is shown this once."""

    key: str
    key_id: str
    name: str
    expires: int | None


class ListKeysRequest(Request):
    """List your keys."""


class ListKeysAnswer(Answer):
    """Your keys, oldest first."""

    keys: list[KeyInfo]


class RevokeKeyRequest(Request):
    """End one of your keys."""

    key_id: Id


class RevokeKeyAnswer(Answer):
    """The key is refused from now on."""

    key_id: str
    revoked: int


class GetSignInRequest(Request):
    """Read how people sign in here."""


class GetSignInAnswer(Answer):
    """By a link of the command line; or with an OpenID Connect issuer, whose names the other fields have."""

    how: Literal["link", "issuer"]
    issuer: str | None = None
    client_id: str | None = None
    scope: str | None = None
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    end_session_endpoint: str | None = None
    end_session_return: str | None = None


class SignInRequest(Request):
    """Exchange the one-time code of the sign-in link for a person's token."""

    code: Annotated[str, Field(min_length=1, max_length=200)]


class SignInAnswer(Answer):
    """Send the token as `Authorization: Bearer`."""

    token: str
    user_name: str
    expires: int


class SignOutRequest(Request):
    """End the session of the token that this request carries."""


class SignOutAnswer(Answer):
    """The token is refused from now on."""

    ok: Literal[True]
