"""Who is calling: from the Authorization header to a Caller. Source: the contract's "Errors"."""

import contextlib
import hashlib
import hmac

from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.errors import (
    AuthUnavailable,
    ForbiddenRole,
    InvalidKey,
    KeyExpired,
    KeyRevoked,
    KeyStale,
    NoCredential,
    SignInRefused,
    Unavailable,
)
from ctrlb.domain.key_format import read_key, secret_hash
from ctrlb.domain.rows import Key
from ctrlb.ports import Issuer, Ports
from ctrlb.sign_in import TOKEN_PREFIX

LAST_USED_EVERY_US = 3_600_000_000
_NOBODYS_SECRET = hashlib.sha256(b"nobody").hexdigest()
_RENEW = "make a new key on the Connect screen"


def identify(authorization: str | None, ports: Ports) -> Caller:
    """The caller behind `Authorization: Bearer <key or person's token>`.

    Raises NoCredential without one, a KeyRefused or ForbiddenRole for a key, SignInRefused for a
    token, AuthUnavailable when the store of identities does not answer.
    """
    scheme, _, credential = (authorization or "").strip().partition(" ")
    credential = credential.strip()
    if scheme.lower() != "bearer" or not credential:
        raise NoCredential("the request carries no user: send the header Authorization: Bearer <your key>")
    try:
        if credential.startswith(TOKEN_PREFIX):
            return _person(credential, ports)
        if ports.issuer is not None and credential.count(".") == 2:  # a JWT; a key has no dot
            return _issuers_person(credential, ports.issuer, ports)
        return _key_holder(credential, ports)
    except Unavailable as error:
        raise AuthUnavailable("keys cannot be checked right now; send the same again", error.retry_after_s) from None


def _key_holder(credential: str, ports: Ports) -> Caller:
    presented = read_key(credential)
    if presented is None:
        raise InvalidKey(f"this is not a key, or it has a typo; {_RENEW}")
    key = ports.identity.key(presented.workspace, presented.key_id)
    kept = key.secret_sha256 if key else _NOBODYS_SECRET  # an unknown id costs what a wrong secret does
    if not hmac.compare_digest(secret_hash(presented.secret), kept) or key is None:
        raise InvalidKey(f"there is no such key; {_RENEW}")
    now_us = ports.clock.now_us()
    if key.revoked_us is not None:
        raise KeyRevoked(f"the key was revoked; {_RENEW}")
    if key.expires_us is not None and key.expires_us <= now_us:
        raise KeyExpired(f"the key has expired; {_RENEW}")
    caller = _caller(key.workspace, key.user, "", ports)
    if caller is None:
        raise KeyStale(f"the person behind the key is no longer active; {_RENEW}")
    if not caller.may("mcp.use"):
        raise ForbiddenRole("the role behind the key lacks mcp.use")
    _note_use(key, now_us, ports)
    return caller


def _person(token: str, ports: Ports) -> Caller:
    token_sha256 = secret_hash(token)
    session = ports.identity.sign_in(token_sha256)
    if session is None or session.expires_us <= ports.clock.now_us():
        raise SignInRefused("the session has ended; sign in again")
    caller = _caller(session.workspace, session.user, token_sha256, ports)
    if caller is None:
        raise SignInRefused("this person is no longer active in the workspace")
    return caller


def _issuers_person(token: str, issuer: Issuer, ports: Ports) -> Caller:
    """Whom the issuer signed in. A token that is not to be trusted and a person who is no member are not told apart."""
    user = issuer.user(token)
    caller = _caller(issuer.workspace, user, secret_hash(token), ports) if user is not None else None
    if caller is None:
        raise SignInRefused("this sign-in is not accepted, or has ended; sign in again, or ask an Admin to add you")
    return caller


def _caller(workspace: str, user: str, token_sha256: str, ports: Ports) -> Caller | None:
    member = ports.identity.member(workspace, user)
    if member is None or not member.active:
        return None
    permissions = ROLES.get(member.role, frozenset())
    return Caller(workspace, user, permissions, ports.identity.settings(workspace), token_sha256)


def _note_use(key: Key, now_us: int, ports: Ports) -> None:
    if key.last_used_us is None or now_us - key.last_used_us >= LAST_USED_EVERY_US:
        with contextlib.suppress(Unavailable):  # a call is not refused because its use could not be noted
            ports.identity.touch_key(key.workspace, key.key_id, now_us)
