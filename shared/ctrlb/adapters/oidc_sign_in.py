"""Where an OpenID Connect issuer signs people in and out, as its discovery document says."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from ctrlb.adapters.oidc_answers import IssuerFault, IssuerReader
from ctrlb.ports import SignInPlaces

COGNITO = re.compile(r"cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")
"""The host of a user pool's address. A pool need not name its logout, and has a parameter of its own there."""
_AUTHORIZE = "/oauth2/authorize"
"""How a pool's authorization endpoint ends; `/logout` is at the same base."""


def read_places(issuer: str, reader: IssuerReader) -> SignInPlaces:
    """Ask the issuer where people sign in. Raises what `IssuerReader.discovery` does."""
    discovery = reader.discovery()
    return places_of(issuer, lambda name: reader.place(discovery, name))


def places_of(issuer: str, place: Callable[[str], str | None]) -> SignInPlaces:
    """What the issuer's discovery document, which has a safe `place` or none of each name, says of signing in.

    Raises IssuerFault where there is no place for that.
    """
    authorization, token = place("authorization_endpoint"), place("token_endpoint")
    if authorization is None or token is None:
        raise IssuerFault("the discovery document names no safe place to sign in")
    if COGNITO.fullmatch(urlsplit(issuer).hostname or ""):
        return SignInPlaces(authorization, token, _logout(authorization), "logout_uri")
    return SignInPlaces(authorization, token, place("end_session_endpoint"), "post_logout_redirect_uri")


def _logout(authorization: str) -> str | None:
    base = authorization.removesuffix(_AUTHORIZE)
    return f"{base}/logout" if base != authorization else None
