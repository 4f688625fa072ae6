"""The issuer's keys: no token chooses where they come from or how often, and none are taken from just anywhere."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from ctrlb.adapters import oidc_answers
from ctrlb.adapters.oidc_issuer import Oidc
from ctrlb.domain.errors import AuthUnavailable, Invalid, SignInRefused
from ctrlb.edge.identity import identify
from ctrlb.ports import Ports
from tests.attacks.conftest import trusting
from tests.attacks.test_tokens import refused
from tests.conftest import HandClock, add_member
from tests.issuer import LocalIssuer, public_jwk, rsa_key, send

DISCOVERY, KEYS = "/pool/.well-known/openid-configuration", "/pool/keys"


def let_in(token: str, stores: Ports) -> bool:
    return identify(f"Bearer {token}", stores).user == "ada@example.com"


def unavailable(token: str, stores: Ports) -> None:
    with pytest.raises(AuthUnavailable) as error:
        identify(f"Bearer {token}", stores)
    assert error.value.code == "MCP_AUTH_UNAVAILABLE"
    assert error.value.retry_after_s >= 1


def test_the_issuer_is_asked_once_for_many_tokens(people: Ports, issuer: LocalIssuer) -> None:
    assert all(let_in(issuer.token(), people) for _ in range(5))
    assert issuer.asked == [DISCOVERY, KEYS]


def test_a_new_key_is_taken_within_its_bound(people: Ports, issuer: LocalIssuer, clock: HandClock) -> None:
    assert let_in(issuer.token(), people)
    issuer.keys["second"] = rsa_key()
    clock.move_s(oidc_answers.ASK_EVERY_S)
    assert let_in(issuer.token(key_id="second"), people)
    assert let_in(issuer.token(), people)


def test_a_key_that_the_issuer_withdrew_is_refused_within_the_hour(
    people: Ports, issuer: LocalIssuer, clock: HandClock
) -> None:
    token = issuer.token()
    assert let_in(token, people)
    issuer.keys = {"second": rsa_key()}
    clock.move_s(oidc_answers.FRESH_S - 1)
    assert let_in(token, people)
    clock.move_s(1)
    refused(token, people)


def test_ids_of_keys_that_nobody_has_do_not_have_the_issuer_asked_again(
    people: Ports, issuer: LocalIssuer, clock: HandClock
) -> None:
    assert let_in(issuer.token(), people)
    for number in range(200):
        refused(issuer.token(header={"kid": f"made-up-{number}"}), people)
        clock.move_s(0.1)
    assert issuer.asked == [DISCOVERY, KEYS]
    clock.move_s(oidc_answers.ASK_EVERY_S)
    for number in range(200):
        refused(issuer.token(header={"kid": f"made-up-{number}"}), people)
    assert issuer.asked == [DISCOVERY, KEYS] * 2


@pytest.mark.parametrize(
    "key_id",
    ["", "../../etc/passwd", "http://evil.example/keys", "first\x00", "FIRST", "first' OR '1'='1", "k" * 4_000],
)
def test_the_id_of_a_key_is_only_looked_up(people: Ports, issuer: LocalIssuer, key_id: str) -> None:
    refused(issuer.token(header={"kid": key_id}), people)
    assert set(issuer.asked) <= {DISCOVERY, KEYS}


def test_a_token_that_brings_its_own_key_or_says_where_it_lies_is_not_asked(people: Ports, issuer: LocalIssuer) -> None:
    other = LocalIssuer()
    try:
        brought = {"jwk": public_jwk(other.keys["first"], "first"), "jku": f"{other.url}/keys", "x5u": other.url}
        refused(other.token(iss=issuer.url, header=brought), people)
        assert let_in(issuer.token(header=brought), people)
        assert other.asked == []
        assert set(issuer.asked) == {DISCOVERY, KEYS}
    finally:
        other.stop()


def test_an_issuer_that_is_down_is_not_the_callers_fault(people: Ports, issuer: LocalIssuer) -> None:
    token = issuer.token()
    issuer.stop()
    unavailable(token, people)


def test_an_issuer_that_is_down_is_asked_again_only_after_a_while(
    people: Ports, issuer: LocalIssuer, clock: HandClock
) -> None:
    issuer.answer = lambda handler, path: send(handler, {}, status=503)
    for _ in range(20):
        unavailable(issuer.token(), people)
    assert issuer.asked == [DISCOVERY]
    issuer.answer = None
    clock.move_s(oidc_answers.RETRY_S)
    assert let_in(issuer.token(), people)


def test_known_keys_are_used_for_a_day_while_the_issuer_is_down(
    people: Ports, issuer: LocalIssuer, clock: HandClock
) -> None:
    token = issuer.token()
    assert let_in(token, people)
    issuer.answer = lambda handler, path: send(handler, {}, status=500)
    clock.move_s(oidc_answers.KEPT_S - 1)
    assert let_in(token, people)
    unavailable(issuer.token(header={"kid": "perhaps-new"}), people)
    clock.move_s(1)
    unavailable(token, people)


def _answer(document: object) -> Callable[[BaseHTTPRequestHandler, str], None]:
    return lambda handler, path: send(handler, document)


def _redirect(handler: BaseHTTPRequestHandler, path: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", "/elsewhere")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _too_long(handler: BaseHTTPRequestHandler, path: str) -> None:
    send(handler, {"keys": ["x" * oidc_answers.MAX_DOCUMENT_BYTES]})


def _broken(handler: BaseHTTPRequestHandler, path: str) -> None:
    handler.wfile.write(b"this is no HTTP\r\n\r\n")


def _nested(handler: BaseHTTPRequestHandler, path: str) -> None:
    content = b"[" * 100_000
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


NO_DISCOVERIES = [_answer([]), _answer("keys"), _answer({}), _redirect, _too_long, _broken, _nested]


@pytest.mark.parametrize("answer", NO_DISCOVERIES, ids=["list", "text", "empty", "moved", "long", "broken", "nested"])
def test_an_answer_that_is_no_discovery_is_as_none(people: Ports, issuer: LocalIssuer, answer: Any) -> None:
    issuer.answer = answer
    unavailable(issuer.token(), people)
    assert issuer.asked == [DISCOVERY]


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": 7},
        {"jwks_uri": "http://evil.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "https://user:secret@evil.example/keys"},
        {"jwks_uri": "http://[::1"},
    ],
)
def test_a_discovery_document_that_leads_astray_is_not_followed(
    people: Ports, issuer: LocalIssuer, discovery: dict[str, Any]
) -> None:
    issuer.discovery = discovery
    unavailable(issuer.token(), people)
    assert issuer.asked == [DISCOVERY]


def test_keys_that_cannot_be_used_are_passed_over(people: Ports, issuer: LocalIssuer) -> None:
    good = public_jwk(issuer.keys["first"], "first")
    issuer.listed = [
        "no key",
        {},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {"kty": ["RSA"], "kid": "first"},
        {**good, "use": "enc"},
        {**good, "alg": "RS512"},
        {**good, "kid": 7},
        good,
    ]
    assert let_in(issuer.token(), people)


def test_nobody_waits_for_the_thread_that_asks_once_there_are_keys(
    people: Ports, issuer: LocalIssuer, clock: HandClock
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    assert let_in(issuer.token(), people)
    known, unknown = issuer.token(), issuer.token(header={"kid": "unknown"})

    def slowly(handler: BaseHTTPRequestHandler, path: str) -> None:
        asked.set()
        assert go_on.wait(timeout=60)
        send(handler, issuer.document(path))

    issuer.answer = slowly
    clock.move_s(oidc_answers.ASK_EVERY_S)
    outcome: list[type[Exception]] = []

    def ask() -> None:
        try:
            identify(f"Bearer {unknown}", people)
        except Exception as error:
            outcome.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked.wait(timeout=60)
    assert let_in(known, people)
    unavailable(unknown, people)  # it may be among what is just being read
    go_on.set()
    thread.join(timeout=60)
    assert outcome == [SignInRefused]


@pytest.mark.parametrize(
    "issuer_url",
    ["http://id.example.com", "ftp://id.example.com", "id.example.com", "https://a:b@id.example.com", "https://", ""],
)
def test_an_issuer_that_others_could_speak_for_is_not_trusted(issuer_url: str, clock: HandClock) -> None:
    with pytest.raises(Invalid, match="https"):
        oidc_answers.IssuerReader(issuer_url, clock)


def test_an_issuer_is_named_whole_or_the_server_does_not_start() -> None:
    named = {"OIDC_ISSUER": "https://id.example.com", "OIDC_AUDIENCE": "client", "OIDC_WORKSPACE": "acme"}
    assert Oidc.named(named) == Oidc("https://id.example.com", "client", "email", "acme")
    for faulty in ({"OIDC_AUDIENCE": ""}, {"OIDC_WORKSPACE": ""}, {"OIDC_CLAIM": "preferred_username"}):
        with pytest.raises(Invalid, match="OIDC_ISSUER needs"):
            Oidc.named(named | faulty)


def test_the_subject_names_the_member_where_the_deployment_says_so(stores: Ports, issuer: LocalIssuer) -> None:
    add_member(stores, "ada-1")
    people = trusting(stores, issuer, claim="sub")
    assert identify(f"Bearer {issuer.token(email_verified=False)}", people).user == "ada-1"
    assert json.dumps(issuer.asked) == json.dumps([DISCOVERY, KEYS])
