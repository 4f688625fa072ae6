"""How people sign in, and their session on a laptop: a one-time code, printed by the server, becomes a bearer token."""

from dataclasses import asdict

from ctrlb.domain.access import Caller
from ctrlb.domain.errors import AuthUnavailable, Invalid, SignInRefused, Unavailable
from ctrlb.domain.key_format import secret_hash
from ctrlb.domain.rows import SignIn
from ctrlb.models import (
    GetSignInAnswer,
    GetSignInRequest,
    SignInAnswer,
    SignInRequest,
    SignOutAnswer,
    SignOutRequest,
)
from ctrlb.ports import Ports

TOKEN_PREFIX = "ctrlbs_"
CODE_US = 600_000_000
"""A code is good for ten minutes."""
SESSION_US = 12 * 3_600_000_000
"""A person's session ends after twelve hours."""


def new_code(workspace: str, user: str, ports: Ports) -> str:
    """Make a code that signs `user` in, once."""
    code = ports.random.secret()
    sign_in = SignIn(secret_hash(code), workspace, user, ports.clock.now_us() + CODE_US)
    ports.identity.add_sign_in(sign_in, once=True)
    return code


def get_sign_in(request: GetSignInRequest, caller: Caller | None, ports: Ports) -> GetSignInAnswer:
    """Tell where people sign in, and as which client. No store is asked, and the issuer within its bounds.

    Raises AuthUnavailable while it does not answer.
    """
    issuer = ports.issuer
    if issuer is None:
        return GetSignInAnswer(how="link")
    try:
        places = issuer.places()
    except Unavailable as error:
        raise AuthUnavailable(
            "the issuer does not answer right now; send the same again", error.retry_after_s
        ) from None
    return GetSignInAnswer(
        how="issuer", issuer=issuer.address, client_id=issuer.client_id, scope=issuer.scope, **asdict(places)
    )


def sign_in(request: SignInRequest, caller: Caller | None, ports: Ports) -> SignInAnswer:
    """Take the code, which nobody can use again, and open a session of its person's, if they are active."""
    code = ports.identity.use_code(secret_hash(request.code))
    now_us = ports.clock.now_us()
    if code is None or code.expires_us <= now_us:
        raise SignInRefused(
            "the code was used or has expired; for a new link run what the server printed at its start: "
            "`python -m ctrlb sign-in --data <its folder>`"
        )
    member = ports.identity.member(code.workspace, code.user, fresh=True)
    if member is None or not member.active:
        raise SignInRefused("this person is no longer active in the workspace")
    token = TOKEN_PREFIX + ports.random.secret()
    session = SignIn(secret_hash(token), code.workspace, code.user, now_us + SESSION_US)
    ports.identity.add_sign_in(session, once=False)
    return SignInAnswer(token=token, user_name=code.user, expires=session.expires_us)


def sign_out(request: SignOutRequest, caller: Caller, ports: Ports) -> SignOutAnswer:
    """End the session that the call was made in. Raises Invalid for one that is not ours to end."""
    if caller.issuer:
        raise Invalid(
            f"this session is not ours: sign out at {caller.issuer}; until the token expires it goes on working"
        )
    ports.identity.remove_sign_in(caller.token_sha256)
    return SignOutAnswer(ok=True)
