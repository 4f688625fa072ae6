"""Who is calling: from the Authorization header to a Caller. Source: the contract's "Errors"."""

import contextlib
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.errors import (
    AuthUnavailable,
    ForbiddenRole,
    IngestRefused,
    InvalidKey,
    KeyExpired,
    KeyRevoked,
    KeyStale,
    NoCredential,
    SignInRefused,
    Unavailable,
    WorkspaceMismatch,
)
from ctrlb.domain.host_names import host_name
from ctrlb.domain.key_format import INGEST_PREFIX, read_key, secret_hash
from ctrlb.domain.rows import IngestCredential, Key
from ctrlb.ports import Issuer, Ports
from ctrlb.sign_in import SESSION_US, TOKEN_PREFIX

CLIENT_VARIABLE = "OIDC_AUDIENCE"
"""The variable of a gateway's stage that says for whom an issuer's tokens must be."""
LAST_USED_EVERY_US = 3_600_000_000
_NOBODYS_SECRET = hashlib.sha256(b"nobody").hexdigest()
_RENEW = "make a new key in the console"


def identify(authorization: str | None, ports: Ports, host: str = "") -> Caller:
    """The caller behind `Authorization: Bearer <key or person's token>`, who called the address `host`.

    Raises NoCredential without one, a KeyRefused or ForbiddenRole for a key, SignInRefused for a
    token, WorkspaceMismatch for either where the address serves another workspace, AuthUnavailable when the
    store of identities does not answer.
    """
    credential = credential_of(authorization)
    try:
        if credential.startswith(TOKEN_PREFIX):
            return _person(credential, host, ports)
        if ports.issuer is not None and credential.count(".") == 2:  # a JWT; a key has no dot
            return _issuers_person(credential, ports.issuer, host, ports)
        return _key_holder(credential, host, ports)
    except Unavailable as error:
        raise AuthUnavailable("keys cannot be checked right now; send the same again", error.retry_after_s) from None


def credential_of(authorization: str | None) -> str:
    """The key or token that the header carries, however its scheme is spelt. Raises NoCredential."""
    scheme, _, credential = (authorization or "").strip().partition(" ")
    credential = credential.strip()
    if scheme.lower() == "basic":
        raise NoCredential(
            "ingest credentials are for OpenTelemetry logs only: send the header Authorization: Bearer <your key>"
        )
    if scheme.lower() != "bearer" or not credential:
        raise NoCredential("the request carries no user: send the header Authorization: Bearer <your key>")
    return credential


def host_of(event: Mapping[str, Any]) -> str:
    """The host name that was called, in small letters: the gateway's word, else the header's; empty for none."""
    return host_name(event["requestContext"].get("domainName") or event["headers"].get("host", ""))


def with_client(stores: Ports, event: Mapping[str, Any]) -> Ports:
    """The stores, with the client that the gateway's stage names as whom tokens are for, where it names one.

    In AWS the environment of a function cannot: the client knows the address of the API, which knows the functions.
    """
    client_id = (event.get("stageVariables") or {}).get(CLIENT_VARIABLE)
    if not client_id or stores.issuer is None:
        return stores
    return replace(stores, issuer=stores.issuer.of_client(client_id))


def _key_holder(credential: str, host: str, ports: Ports) -> Caller:
    presented = read_key(credential)
    if presented is None:
        raise InvalidKey(f"this is not a key, or it has a typo; {_RENEW}")
    secret_sha256 = secret_hash(presented.secret)
    key = ports.identity.key(presented.workspace, presented.key_id, secret_sha256)
    kept = key.secret_sha256 if key else _NOBODYS_SECRET  # an unknown id costs what a wrong secret does
    if not hmac.compare_digest(secret_sha256, kept) or key is None:
        raise InvalidKey(f"there is no such key; {_RENEW}")
    now_us = ports.clock.now_us()
    if key.revoked_us is not None:
        raise KeyRevoked(f"the key was revoked; {_RENEW}")
    if key.expires_us is not None and key.expires_us <= now_us:
        raise KeyExpired(f"the key has expired; {_RENEW}")
    _check_address(key.workspace, host, ports)
    caller = _active(key.workspace, key.user, "", ports)
    if caller is None:
        raise KeyStale(f"the person behind the key is no longer active; {_RENEW}")
    if caller.outdates(key.created_us):
        raise KeyStale(f"the role, grants or status behind the key changed after it was made; {_RENEW}")
    if not caller.may("mcp.use"):
        raise ForbiddenRole("the role behind the key lacks mcp.use")
    _note_use(key, now_us, ports)
    return caller


def _person(token: str, host: str, ports: Ports) -> Caller:
    token_sha256 = secret_hash(token)
    session = ports.identity.sign_in(token_sha256)
    if session is None or session.expires_us <= ports.clock.now_us():
        raise SignInRefused("the session has ended; sign in again")
    _check_address(session.workspace, host, ports)
    caller = _active(session.workspace, session.user, token_sha256, ports)
    if caller is None:
        raise SignInRefused("this person is no longer active in the workspace")
    if caller.outdates(session.expires_us - SESSION_US):  # as a key is stale, which else would outlive a deactivation
        raise SignInRefused("the person's role, grants or status changed after they signed in; sign in again")
    return caller


def _issuers_person(token: str, issuer: Issuer, host: str, ports: Ports) -> Caller:
    """Whom the issuer signed in, in the workspace of the address that they called, if it has one of its own.

    A token that is not to be trusted and a person who is no member are not told apart.
    """
    user = issuer.user(token)
    workspace = ports.workspace_hosts.get(host, issuer.workspace)
    caller = _active(workspace, user, secret_hash(token), ports) if user is not None else None
    if caller is None:
        raise SignInRefused("this sign-in is not accepted, or has ended; sign in again, or ask an Admin to add you")
    return replace(caller, issuer=issuer.address)


def _check_address(workspace: str, host: str, ports: Ports) -> None:
    if ports.workspace_hosts.get(host, workspace) != workspace:
        raise WorkspaceMismatch("this address serves another workspace; use the address of your own")


def _active(workspace: str, user: str, token_sha256: str, ports: Ports) -> Caller | None:
    """The person as a caller, if they are active. What is known of them may be some seconds old.

    What a caller may do goes by these rows, not by when they changed: two clocks that differ refuse a key at worst.
    """
    member = ports.identity.member(workspace, user)
    if member is None or not member.active:
        return None
    permissions, changed_us = ROLES.get(member.role), member.changed_us
    if permissions is None:
        role = ports.identity.role(workspace, member.role)
        permissions = role.permissions if role else frozenset()
        changed_us = max(changed_us, role.changed_us if role else 0)
    settings = ports.identity.settings(workspace)
    return Caller(workspace, user, permissions, settings, token_sha256, member.grants, changed_us=changed_us)


def identify_ingest(authorization: str | None, dataset: str, ports: Ports) -> IngestCredential:
    """The credential behind `Authorization: Basic <ingest credential>`, where it is the dataset's.

    Raises NoCredential without one, IngestRefused for any other, AuthUnavailable when the store does not answer.
    """
    scheme, _, credential = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic" or not credential.strip():
        raise NoCredential("send the header Authorization: Basic <ingest credential>; keys are not taken here")
    presented = read_key(credential.strip(), INGEST_PREFIX)
    if presented is None:
        raise IngestRefused("this is not an ingest credential, or it has a typo")
    secret_sha256 = secret_hash(presented.secret)
    try:
        found = ports.identity.ingest_credential(presented.workspace, presented.key_id, secret_sha256)
    except Unavailable as error:
        raise AuthUnavailable("credentials cannot be checked right now; send it again", error.retry_after_s) from None
    kept = found.secret_sha256 if found else _NOBODYS_SECRET  # an unknown id costs what a wrong secret does
    if not hmac.compare_digest(secret_sha256, kept) or found is None or found.dataset != dataset:
        raise IngestRefused("there is no such ingest credential for this dataset")
    if found.revoked_us is not None:
        raise IngestRefused("the ingest credential was revoked")
    return found


def _note_use(key: Key, now_us: int, ports: Ports) -> None:
    if key.last_used_us is None or now_us - key.last_used_us >= LAST_USED_EVERY_US:
        with contextlib.suppress(Unavailable):  # a call is not refused because its use could not be noted
            ports.identity.touch_key(key.workspace, key.key_id, now_us)
