"""A person's keys: made, listed, revoked. The key itself is shown once; only a hash of it is kept."""

from ctrlb.domain.access import Caller
from ctrlb.domain.audits import audit_of
from ctrlb.domain.errors import Invalid, NotFound
from ctrlb.domain.key_format import secret_hash, written_key
from ctrlb.domain.rows import Audit, Key
from ctrlb.models import (
    CreateKeyAnswer,
    CreateKeyRequest,
    KeyInfo,
    ListKeysAnswer,
    ListKeysRequest,
    RevokeKeyAnswer,
    RevokeKeyRequest,
)
from ctrlb.ports import MAX_LIVE_KEYS, Ports, TooManyKeys

DAY_US = 86_400_000_000


def create_key(request: CreateKeyRequest, caller: Caller, ports: Ports) -> CreateKeyAnswer:
    """Make a key that acts as the caller, who may have MAX_LIVE_KEYS of them."""
    now_us = ports.clock.now_us()
    secret = ports.random.secret()
    key = Key(
        workspace=caller.workspace,
        key_id=ports.random.key_id(),
        user=caller.user,
        name=request.name,
        secret_sha256=secret_hash(secret),
        created_us=now_us,
        expires_us=now_us + request.expires_days * DAY_US if request.expires_days else None,
    )
    try:
        ports.identity.add_key(key, _audit("create_key", caller, key, now_us))
    except TooManyKeys:
        raise Invalid(
            f"you have {MAX_LIVE_KEYS} keys that are neither revoked nor expired, and may have no more; "
            "revoke one that is not used any more: GET /ai/keys lists them"
        ) from None
    return CreateKeyAnswer(
        key=written_key(key.workspace, key.key_id, secret), key_id=key.key_id, name=key.name, expires=key.expires_us
    )


def list_keys(request: ListKeysRequest, caller: Caller, ports: Ports) -> ListKeysAnswer:
    """The caller's keys, oldest first, those too that are refused: revoked, expired, or stale."""
    keys = ports.identity.keys(caller.workspace, caller.user)
    return ListKeysAnswer(
        keys=[
            KeyInfo(
                key_id=key.key_id,
                name=key.name,
                user_name=key.user,
                created=key.created_us,
                expires=key.expires_us,
                revoked=key.revoked_us,
                last_used=key.last_used_us,
                stale=caller.outdates(key.created_us),
            )
            for key in keys
        ]
    )


def revoke_key(request: RevokeKeyRequest, caller: Caller, ports: Ports) -> RevokeKeyAnswer:
    """End a key of the caller's. Revoking it again keeps the first time."""
    key = ports.identity.key(caller.workspace, request.key_id)
    if key is None or key.user != caller.user:
        raise NotFound(f"you have no key {request.key_id}; GET /ai/keys lists yours")
    if key.revoked_us is not None:
        return RevokeKeyAnswer(key_id=key.key_id, revoked=key.revoked_us)
    now_us = ports.clock.now_us()
    ports.identity.revoke_key(caller.workspace, request.key_id, now_us, _audit("revoke_key", caller, key, now_us))
    kept = ports.identity.key(caller.workspace, request.key_id)
    return RevokeKeyAnswer(key_id=request.key_id, revoked=kept.revoked_us if kept and kept.revoked_us else now_us)


def _audit(action: str, caller: Caller, key: Key, now_us: int) -> Audit:
    """Of a key that is made, or else revoked."""
    shown = {"key_id": key.key_id, "name": key.name, "user_name": key.user, "expires": key.expires_us}
    made, revoked = {**shown, "revoked": False}, {**shown, "revoked": True}
    before, after = (None, made) if action == "create_key" else (made, revoked)
    return audit_of(action, caller, now_us, before, after)
