"""The issuer that the environment names: where people sign in, and their tokens, checked by PyJWT with its keys.

PyJWT and cryptography cost a tenth of a second to import, so they are only when a token is there to be checked.
"""

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from ctrlb.adapters.oidc_answers import IssuerReader, Kept
from ctrlb.adapters.oidc_keys import IssuerKeys
from ctrlb.adapters.oidc_sign_in import read_places
from ctrlb.domain.errors import Invalid
from ctrlb.domain.ids import id_fault
from ctrlb.ports import Clock, SignInPlaces

OIDC_ISSUER = "OIDC_ISSUER"
"""The issuer, spelt as in its tokens."""
OIDC_AUDIENCE = "OIDC_AUDIENCE"
"""Whom its tokens must be for: the client's id."""
OIDC_CLAIM = "OIDC_CLAIM"
"""The claim that names the member: `email` (the default), which must be verified, or `sub`."""
OIDC_WORKSPACE = "OIDC_WORKSPACE"
"""The workspace whose members its people are."""

CLAIMS = ("email", "sub")
MAX_TOKEN_CHARS = 8_192
LEEWAY_S = 30
"""How far the issuer's clock may be from ours."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""A logout token, say, is signed by the issuer too, and signs nobody in."""


@dataclass(frozen=True, slots=True)
class Oidc:
    """Which issuer is trusted, and for what."""

    issuer: str
    audience: str
    claim: str
    workspace: str

    @classmethod
    def named(cls, variables: Mapping[str, str], *, audience_comes_later: bool = False) -> "Oidc":
        """The issuer that the variables name. Raises Invalid when they do so in part.

        Without an audience, which may come with the first request, no token is for us.
        """
        issuer, audience = variables[OIDC_ISSUER], variables.get(OIDC_AUDIENCE, "")
        claim = variables.get(OIDC_CLAIM) or CLAIMS[0]
        if not (audience or audience_comes_later) or not variables.get(OIDC_WORKSPACE) or claim not in CLAIMS:
            raise Invalid(
                f"{OIDC_ISSUER} needs {OIDC_AUDIENCE} and {OIDC_WORKSPACE}, and {OIDC_CLAIM} is {' or '.join(CLAIMS)}"
            )
        return cls(issuer, audience, claim, variables[OIDC_WORKSPACE])


class OidcIssuer:
    """The port Issuer on OpenID Connect."""

    def __init__(self, oidc: Oidc, clock: Clock) -> None:
        self.address = oidc.issuer
        self.workspace = oidc.workspace
        self._oidc = oidc
        reader = IssuerReader(oidc.issuer, clock)
        self._keys = IssuerKeys(reader, clock)
        self._places = Kept(lambda: read_places(oidc.issuer, reader), clock)

    @property
    def client_id(self) -> str:
        """See Issuer.client_id."""
        return self._oidc.audience

    @property
    def scope(self) -> str:
        """See Issuer.scope."""
        return "openid email" if self._oidc.claim == "email" else "openid"

    def of_client(self, client_id: str) -> "OidcIssuer":
        """See Issuer.of_client."""
        other = copy(self)
        other._oidc = replace(self._oidc, audience=client_id)
        return other

    def places(self) -> SignInPlaces:
        """See Issuer.places."""
        places = self._places.find(lambda places: places)
        assert places is not None  # a reading has them
        return places

    def user(self, token: str) -> str | None:
        """See Issuer.user."""
        if len(token) > MAX_TOKEN_CHARS or not _TOKEN.fullmatch(token):
            return None
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            key_id, kind = header.get("kid"), header.get("typ", "JWT")
            if not isinstance(key_id, str) or not isinstance(kind, str) or kind.lower() not in _TYPES:
                return None
            key = self._keys.find(key_id)
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],  # the key's own, whatever the token says
                issuer=self._oidc.issuer,
                leeway=LEEWAY_S,
                # The audience is checked below: Cognito names it elsewhere in some tokens.
                options={"require": ["exp", "iss"], "verify_aud": False, "enforce_minimum_key_length": True},
            )
        except (jwt.PyJWTError, ValueError, RecursionError):  # the last two by JSON that no issuer would write
            return None
        is_of_a_person = "events" not in claims  # a logout token is told by them, whatever its header says
        return self._named_by(claims) if is_of_a_person and self._is_for_us(claims) else None

    def _is_for_us(self, claims: Mapping[str, Any]) -> bool:
        audience = claims.get("aud")
        if audience is None and claims.get("token_use") == "access":
            audience = claims.get("client_id")  # an access token of Cognito
        audiences = audience if isinstance(audience, list) else [audience]
        return bool(self._oidc.audience) and self._oidc.audience in audiences

    def _named_by(self, claims: Mapping[str, Any]) -> str | None:
        user = claims.get(self._oidc.claim)
        if self._oidc.claim == "email" and claims.get("email_verified") not in (True, "true"):
            return None  # anybody could have written it
        return user if isinstance(user, str) and id_fault(user) is None else None
