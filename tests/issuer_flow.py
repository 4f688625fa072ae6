"""What a browser asks an issuer for: to sign a person in, tokens for the code, and the end of the session.

As strict as the standards want it: OAuth 2.0 (RFC 6749), PKCE (RFC 7636), OpenID Connect's core and its logout.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

Fields = dict[str, str]
ASKED = {
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
}


class Misused(Exception):
    """The browser was sent with what no client should send; the text says what."""


class SignInFlow:
    """The issuer's side of signing in one client's people, who agree to everything at once."""

    def __init__(self, client_id: str, token: Callable[..., str], base64url: Callable[[bytes], str]) -> None:
        self.redirect_uris: set[str] = set()
        """Where the client may be come back to."""
        self.claims: dict[str, Any] = {}
        """Who signs in, where it is not Ada, and what else is said of them."""
        self.answer: Fields = {}
        """What is sent back in place of a code or state, or an error."""
        self.tokens: list[str] = []
        """All that were given."""
        self.ends = 0
        """How many sessions were ended."""
        self._client_id = client_id
        self._token = token
        self._base64url = base64url
        self._grants: dict[str, Fields] = {}

    def authorize(self, asked: Fields) -> str:
        """Where the browser is sent back to. Raises Misused."""
        if asked.keys() != ASKED or asked["client_id"] != self._client_id:
            raise Misused(f"asked with {sorted(asked)}")
        if (asked["response_type"], asked["code_challenge_method"]) != ("code", "S256"):
            raise Misused("only codes with PKCE are given")
        if len(asked["code_challenge"]) != 43 or min(len(asked["state"]), len(asked["nonce"])) < 22:
            raise Misused("a value is too short to be random")
        self._check_uri(asked["redirect_uri"])
        code = secrets.token_urlsafe()
        self._grants[code] = asked
        answer = {"code": code, "state": asked["state"], **self.answer}
        if "error" in answer:
            del answer["code"]
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def exchange(self, sent: Fields) -> tuple[int, dict[str, Any]]:
        """The status and answer to a request for tokens. A code is good once, for who asked for it."""
        granted = self._grants.pop(sent.get("code", ""), None)
        proof = self._base64url(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        expected = {"grant_type": "authorization_code", "client_id": self._client_id}
        if granted is None or any(sent.get(name) != value for name, value in expected.items()):
            return 400, {"error": "invalid_grant", "error_description": "the code was used, or is another's"}
        if sent.get("redirect_uri") != granted["redirect_uri"] or proof != granted["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "the code was asked for by somebody else"}
        self.tokens.append(self._token(**{"nonce": granted["nonce"], **self.claims}))
        return 200, {"token_type": "Bearer", "expires_in": 3600, "id_token": self.tokens[-1]}

    def end_session(self, asked: Fields) -> str:
        """Where the browser is sent back to. Raises Misused."""
        if asked.keys() != {"client_id", "post_logout_redirect_uri"} or asked["client_id"] != self._client_id:
            raise Misused(f"asked with {sorted(asked)}")
        self._check_uri(asked["post_logout_redirect_uri"])
        self.ends += 1
        return asked["post_logout_redirect_uri"]

    def allowed_origin(self, origin: str) -> str | None:
        """The origin, where its pages may read answers."""
        return origin if any(uri.startswith(f"{origin}/") for uri in self.redirect_uris) else None

    def _check_uri(self, uri: str) -> None:
        if uri not in self.redirect_uris:
            raise Misused(f"{uri} is not registered")
