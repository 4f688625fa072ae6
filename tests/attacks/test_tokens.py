"""People's tokens of an issuer: taken when they are whole, refused all alike when anything about them is not."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.warnings import InsecureKeyLengthWarning

from ctrlb.domain.errors import InvalidKey, SignInRefused
from ctrlb.edge.identity import identify
from ctrlb.ports import Ports
from ctrlb.sign_in import sign_out
from tests.attacks.conftest import trusting
from tests.conftest import add_member
from tests.doors import asked
from tests.issuer import LocalIssuer, base64url, public_jwk, rsa_key

STRANGER = rsa_key()
"""A key that the issuer does not have."""


def refused(token: str, stores: Ports) -> str:
    """What the bearer of the token is told."""
    with pytest.raises(SignInRefused) as error:
        identify(f"Bearer {token}", stores)
    assert error.value.code is None
    return error.value.message


def resigned(token: str, header: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """The token's claims under another header and signature."""
    signed = f"{base64url(json.dumps(header).encode())}.{token.split('.')[1]}"
    return f"{signed}.{base64url(sign(signed.encode()))}"


def test_a_member_whom_the_issuer_signed_in_is_a_person(people: Ports, issuer: LocalIssuer) -> None:
    caller = identify(f"Bearer {issuer.token()}", people)
    assert (caller.workspace, caller.user, caller.is_person) == ("acme", "ada@example.com", True)
    assert caller.may("relay.write")
    assert not caller.may("relay.manage")


@pytest.mark.parametrize("audience", ["the-client", ["another", "the-client"]])
def test_a_token_may_be_for_several_of_whom_we_are_one(people: Ports, issuer: LocalIssuer, audience: Any) -> None:
    assert identify(f"Bearer {issuer.token(aud=audience)}", people).user == "ada@example.com"


def test_an_access_token_of_cognito_names_its_client_elsewhere(stores: Ports, issuer: LocalIssuer) -> None:
    add_member(stores, "ada-1")
    people = trusting(stores, issuer, claim="sub")
    access: dict[str, Any] = {"aud": None, "token_use": "access", "email": None}
    assert identify(f"Bearer {issuer.token(client_id='the-client', **access)}", people).user == "ada-1"
    refused(issuer.token(client_id="another", **access), people)
    refused(issuer.token(client_id="the-client", aud=None, token_use="id"), people)
    refused(issuer.token(client_id="the-client", aud="another", token_use="access"), people)


def test_a_token_by_ecdsa_is_taken_where_the_issuer_says_that_it_signs_so(people: Ports, issuer: LocalIssuer) -> None:
    issuer.keys["curve"] = ec.generate_private_key(ec.SECP256R1())
    issuer.discovery["id_token_signing_alg_values_supported"] = ["RS256", "ES256"]
    assert identify(f"Bearer {issuer.token(key_id='curve')}", people).user == "ada@example.com"


def test_a_token_by_ecdsa_is_refused_where_the_issuer_does_not(people: Ports, issuer: LocalIssuer) -> None:
    issuer.keys["curve"] = ec.generate_private_key(ec.SECP256R1())
    refused(issuer.token(key_id="curve"), people)


NOW_S = int(time.time())  # long before the last of these tests runs, maybe
YEAR_S = 31_536_000
BAD_CLAIMS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example"},
    "an issuer that begins alike": {"iss": "http://127.0.0.1"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "another-client"},
    "an audience that begins alike": {"aud": "the-client-2"},
    "no audience": {"aud": None},
    "an empty list of audiences": {"aud": []},
    "expired": {"exp": NOW_S - 3_600},
    "no expiry": {"exp": None},
    "an expiry that is no number": {"exp": "never"},
    "not valid yet": {"nbf": NOW_S + YEAR_S},
    "issued in the future": {"iat": NOW_S + YEAR_S},
    "an address that is not verified": {"email_verified": False},
    "an address of which nobody says that it is verified": {"email_verified": None},
    "an address that is verified in words": {"email_verified": "yes"},
    "no address": {"email": None},
    "an address that is no text": {"email": ["ada@example.com"]},
    "an address that is no id": {"email": "ada@example.com/../admin"},
    "an address with a line break": {"email": "ada@example.com\n"},
    "nobody's address": {"email": "eve@example.com"},
    "an address in other letters": {"email": "Ada@example.com"},
    "an address with a look-alike": {"email": "\u0430da@example.com"},
}


@pytest.mark.parametrize("what", BAD_CLAIMS)
def test_a_token_with_a_claim_that_is_wrong_is_refused_as_a_stranger_is(
    people: Ports, issuer: LocalIssuer, what: str
) -> None:
    stranger = refused(issuer.token(email="nobody@example.com"), people)
    assert refused(issuer.token(**BAD_CLAIMS[what]), people) == stranger


@pytest.mark.parametrize("late_s", [0, 20])
def test_clocks_may_differ_a_little(people: Ports, issuer: LocalIssuer, late_s: int) -> None:
    now_s = int(time.time())
    assert identify(f"Bearer {issuer.token(exp=now_s + 5 - late_s, nbf=now_s + late_s)}", people).workspace == "acme"


def test_a_member_who_is_no_longer_active_is_refused_as_a_stranger_is(people: Ports, issuer: LocalIssuer) -> None:
    add_member(people, "ada@example.com", active=False)
    assert refused(issuer.token(), people) == refused(issuer.token(email="nobody@example.com"), people)


def test_a_member_of_another_workspace_is_refused(people: Ports, issuer: LocalIssuer) -> None:
    add_member(people, "bob@example.com", "Admin", workspace="other")
    refused(issuer.token(email="bob@example.com"), people)


def test_an_address_of_a_workspace_lets_its_own_members_in(people: Ports, issuer: LocalIssuer) -> None:
    add_member(people, "bob@example.com", "Admin", workspace="other")
    bound = replace(people, workspace_hosts={"other.example.com": "other"})
    bearer = f"Bearer {issuer.token(email='bob@example.com')}"
    assert identify(bearer, bound, "other.example.com").workspace == "other"
    for token, host in ((bearer, "elsewhere.example.com"), (f"Bearer {issuer.token()}", "other.example.com")):
        with pytest.raises(SignInRefused):
            identify(token, bound, host)


def test_a_token_without_a_signature_is_refused(people: Ports, issuer: LocalIssuer) -> None:
    for algorithm in ("none", "None", "NONE", "nOnE"):
        unsigned = resigned(issuer.token(), {"alg": algorithm, "kid": "first"}, lambda signed: b"")
        with pytest.raises((SignInRefused, InvalidKey)):
            identify(f"Bearer {unsigned}", people)
        refused(resigned(issuer.token(), {"alg": algorithm, "kid": "first"}, lambda signed: b"x"), people)


@pytest.mark.parametrize("encoding", ["pem", "jwk", "modulus"])
def test_a_token_signed_with_the_public_key_as_a_shared_secret_is_refused(
    people: Ports, issuer: LocalIssuer, encoding: str
) -> None:
    jwk = public_jwk(issuer.keys["first"], "first")
    forms, kind = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    secret = {
        "pem": issuer.keys["first"].public_key().public_bytes(forms, kind),
        "jwk": json.dumps(jwk).encode(),
        "modulus": base64.urlsafe_b64decode(jwk["n"] + "=="),
    }[encoding]
    forged = resigned(
        issuer.token(),
        {"alg": "HS256", "kid": "first"},
        lambda signed: hmac.digest(secret, signed, hashlib.sha256),
    )
    refused(forged, people)


def test_a_shared_secret_that_the_issuer_publishes_is_no_key(people: Ports, issuer: LocalIssuer) -> None:
    issuer.listed = [{"kty": "oct", "kid": "shared", "alg": "HS256", "k": base64url(b"k" * 32)}]
    refused(jwt.encode(issuer.claims(), b"k" * 32, "HS256", headers={"kid": "shared"}), people)


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256"])
def test_a_good_signature_of_another_algorithm_is_refused(people: Ports, issuer: LocalIssuer, algorithm: str) -> None:
    key = issuer.keys["first"]
    refused(jwt.encode(issuer.claims(), key, algorithm, headers={"kid": "first"}), people)


def test_a_token_of_a_stranger_under_a_known_id_is_refused(people: Ports, issuer: LocalIssuer) -> None:
    refused(jwt.encode(issuer.claims(), STRANGER, "RS256", headers={"kid": "first"}), people)


def test_a_short_key_is_refused(people: Ports, issuer: LocalIssuer) -> None:
    issuer.keys["short"] = rsa_key(1_024)
    with pytest.warns(InsecureKeyLengthWarning):
        token = issuer.token(key_id="short")
    refused(token, people)


def test_a_changed_claim_breaks_the_signature(people: Ports, issuer: LocalIssuer) -> None:
    head, _, signature = issuer.token().split(".")
    other = base64url(json.dumps(issuer.claims(email="root@example.com")).encode())
    add_member(people, "root@example.com", "Admin")
    refused(f"{head}.{other}.{signature}", people)


@pytest.mark.parametrize("kind", ["logout+jwt", "secevent+jwt", "dpop+jwt", 7, None, ["JWT"]])
def test_what_the_issuer_signed_for_another_purpose_signs_nobody_in(
    people: Ports, issuer: LocalIssuer, kind: Any
) -> None:
    signer = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
    key = issuer.keys["first"]
    refused(
        resigned(
            issuer.token(),
            {"alg": "RS256", "kid": "first", "typ": kind},
            lambda signed: signer.sign(signed, key),  # type: ignore[arg-type]
        ),
        people,
    )


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"]},
        {"crit": []},
        {"b64": False, "crit": ["b64"]},
        {"crit": ["http://openid.example/must-understand"]},
    ],
)
def test_a_header_that_must_be_understood_and_is_not_is_refused(
    people: Ports, issuer: LocalIssuer, header: dict[str, Any]
) -> None:
    signer = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
    key = issuer.keys["first"]
    written = {"alg": "RS256", "kid": "first", **header}
    refused(resigned(issuer.token(), written, lambda signed: signer.sign(signed, key)), people)  # type: ignore[arg-type]


def _nested(depth: int) -> str:
    return base64url(b'{"alg":"RS256","kid":"first","x":' + b"[" * depth + b"]" * depth + b"}")


@pytest.mark.parametrize(
    "token",
    [
        "..",
        "a.b.c",
        "e30.e30.e30",
        f"{base64url(b'[]')}.e30.AAAA",
        f"{base64url(b'null')}.e30.AAAA",
        f"{base64url(b'{')}.e30.AAAA",
        f"{base64url(bytes(range(128, 200)))}.e30.AAAA",
        f"{_nested(2_500)}.e30.AAAA",
        f"{base64url(json.dumps({'alg': 'RS256', 'kid': 'first', 'n': 10**300}).encode())}.e30.AAAA",
        f"{base64url(json.dumps({'alg': 'RS256', 'kid': {'$ne': 1}}).encode())}.e30.AAAA",
        f"{base64url(json.dumps({'alg': ['RS256'], 'kid': 'first'}).encode())}.e30.AAAA",
        f"{base64url(json.dumps({'kid': 'first'}).encode())}.e30.AAAA",
        "a.\u00e9.c",
        "a.b c.d",
    ],
    ids=range(14),
)
def test_what_only_looks_like_a_token_is_refused(people: Ports, issuer: LocalIssuer, token: str) -> None:
    refused(token, people)


def test_a_token_over_its_bound_is_refused_unread(people: Ports, issuer: LocalIssuer) -> None:
    refused(issuer.token(groups=["g" * 40] * 250), people)
    assert issuer.asked == []


def test_a_token_is_a_key_with_a_typo_where_no_issuer_is_trusted(stores: Ports, issuer: LocalIssuer) -> None:
    with pytest.raises(InvalidKey):
        identify(f"Bearer {issuer.token()}", stores)


def test_who_the_issuer_signed_in_is_told_to_sign_out_there(people: Ports, issuer: LocalIssuer) -> None:
    """The token goes on working until it expires: an answer that all is well would be believed."""
    ada = identify(f"Bearer {issuer.token()}", people)
    status, refused = asked(sign_out, ada, people)
    assert status == 400
    assert f"sign out at {issuer.url}" in refused["error"]
