"""The keys that an OpenID Connect issuer signs with, read from where its discovery document says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ctrlb.adapters.oidc_answers import IssuerFault, IssuerReader, Kept
from ctrlb.ports import Clock

if TYPE_CHECKING:
    from jwt import PyJWK

MAX_KEYS = 100
_KINDS = {("RSA", ""): "RS256", ("EC", "P-256"): "ES256"}
"""The kinds of keys that are taken, each for one algorithm: a token does not choose."""
_ALWAYS = ["RS256"]
"""What an issuer that says nothing signs with. Source: OpenID Connect Discovery 1.0, section 3."""


class IssuerKeys:
    """The keys of one issuer, kept by the process."""

    def __init__(self, reader: IssuerReader, clock: Clock) -> None:
        self._reader = reader
        self._kept = Kept(self._read, clock)

    def find(self, key_id: str) -> "PyJWK | None":
        """The key of that id; None when the issuer has none. Raises Unavailable when they cannot be had now."""
        return self._kept.find(lambda keys: keys.get(key_id))

    def _read(self) -> "Mapping[str, PyJWK]":
        discovery = self._reader.discovery()
        address = self._reader.place(discovery, "jwks_uri")
        if address is None:
            raise IssuerFault("the discovery document names no safe place for keys")
        algorithms = discovery.get("id_token_signing_alg_values_supported")
        return _usable(self._reader.document(address), algorithms if isinstance(algorithms, list) else _ALWAYS)


def _usable(document: Mapping[str, Any], algorithms: list[Any]) -> dict[str, "PyJWK"]:
    """The keys for signatures of the issuer's algorithms, by their ids. Others are passed over."""
    import jwt

    listed = document.get("keys")
    if not isinstance(listed, list):
        raise IssuerFault("the key set has no keys")
    keys: dict[str, jwt.PyJWK] = {}
    for each in listed[:MAX_KEYS]:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig" or not isinstance(each.get("kid"), str):
            continue
        algorithm = _KINDS.get((str(each.get("kty")), str(each.get("crv", ""))))
        if algorithm is None or algorithm not in algorithms or each.get("alg", algorithm) != algorithm:
            continue
        try:
            keys.setdefault(each["kid"], jwt.PyJWK(each, algorithm))
        except jwt.PyJWTError:
            continue
    return keys
