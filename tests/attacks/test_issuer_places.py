"""Where people sign in is what the issuer says, and is told without a look at any store."""

import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from ctrlb.adapters import oidc_answers, oidc_sign_in
from ctrlb.edge.identity import with_client
from ctrlb.operations import operation_of
from ctrlb.ports import Ports
from ctrlb.sign_in import get_sign_in
from tests.attacks.conftest import trusting
from tests.conftest import HandClock
from tests.doors import Doors, Reply
from tests.issuer import AUDIENCE, LocalIssuer, send

DISCOVERY = "/pool/.well-known/openid-configuration"
STORES = ("relay", "runs", "sessions", "index", "identity")


@pytest.fixture
def doors(people: Ports, monkeypatch: pytest.MonkeyPatch) -> Doors:
    """A deployment whose people the issuer signs in, and whose stores cannot be asked."""
    doors = Doors(people, monkeypatch)
    for store in STORES:
        object.__setattr__(people, store, None)
    return doors


def told(doors: Doors) -> Reply:
    return doors.http(operation_of(get_sign_in), "", {})


def test_without_an_issuer_people_sign_in_by_a_link(stores: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(Doors(stores, monkeypatch)).answer == {"how": "link"}


def test_with_an_issuer_its_places_are_told_to_anybody(doors: Doors, issuer: LocalIssuer) -> None:
    reply = told(doors)
    assert (reply.status, reply.answer) == (
        200,
        {
            "how": "issuer",
            "issuer": issuer.url,
            "client_id": AUDIENCE,
            "scope": "openid email",
            "authorization_endpoint": f"{issuer.url}/authorization",
            "token_endpoint": f"{issuer.url}/token",
            "end_session_endpoint": f"{issuer.url}/end_session",
            "end_session_return": "post_logout_redirect_uri",
        },
    )


def test_an_address_is_not_asked_for_where_members_are_named_by_subject(
    stores: Ports, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(Doors(trusting(stores, issuer, claim="sub"), monkeypatch)).answer["scope"] == "openid"


def test_the_issuer_is_asked_once_an_hour_and_its_keys_not_at_all(
    doors: Doors, issuer: LocalIssuer, clock: HandClock
) -> None:
    for _ in range(20):
        assert told(doors).status == 200
    assert issuer.asked == [DISCOVERY]
    clock.move_s(oidc_answers.FRESH_S)
    issuer.discovery = {"token_endpoint": f"{issuer.url}/moved"}
    assert told(doors).answer["token_endpoint"] == f"{issuer.url}/moved"
    assert issuer.asked == [DISCOVERY] * 2


def test_while_the_issuer_is_down_it_is_503_and_what_is_known_holds_for_a_day(
    doors: Doors, issuer: LocalIssuer, clock: HandClock
) -> None:
    issuer.answer = lambda handler, path: send(handler, {}, status=500)
    for _ in range(20):
        reply = told(doors)
        assert (reply.status, reply.answer["code"]) == (503, "MCP_AUTH_UNAVAILABLE")
        assert int(reply.headers["Retry-After"]) >= 1
    assert issuer.asked == [DISCOVERY]
    issuer.answer = None
    clock.move_s(oidc_answers.RETRY_S)
    assert told(doors).status == 200
    issuer.stop()
    clock.move_s(oidc_answers.KEPT_S - 1)
    assert told(doors).status == 200
    clock.move_s(1)
    assert told(doors).status == 503


def test_a_head_that_never_ends_keeps_one_thread_waiting_and_not_all(
    doors: Doors, issuer: LocalIssuer, clock: HandClock
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def without_end(handler: BaseHTTPRequestHandler, path: str) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        asked.set()
        go_on.wait(timeout=oidc_answers.TIMEOUT_S)

    issuer.answer = without_end
    first = threading.Thread(target=told, args=(doors,))
    first.start()
    assert asked.wait(timeout=60)
    clock.move_s(oidc_answers.MAX_ASKING_S)
    assert told(doors).status == 503
    assert first.is_alive()
    go_on.set()
    first.join(timeout=60)
    assert not first.is_alive()


@pytest.mark.parametrize(
    "faulty",
    [
        None,
        7,
        "/authorize",
        "http://evil.example/authorize",
        "javascript:alert(1)",
        "https://user@evil.example/",
        "https://evil.example;script-src/",
        "https://evil.example /",
    ],
)
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "end_session_endpoint"])
def test_a_place_where_others_could_answer_is_not_told(
    doors: Doors, issuer: LocalIssuer, name: str, faulty: Any
) -> None:
    issuer.discovery = {name: faulty}
    reply = told(doors)
    if name == "end_session_endpoint":
        assert (reply.status, reply.answer[name]) == (200, None)
    else:
        assert reply.status == 503


def test_cognitos_logout_is_beside_its_authorization_whether_it_is_named_or_not() -> None:
    pool, domain = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_a", "https://acme.auth.example.com"
    named = {"authorization_endpoint": f"{domain}/oauth2/authorize", "token_endpoint": f"{domain}/oauth2/token"}
    for discovery in (named, named | {"end_session_endpoint": f"{domain}/logout"}):
        places = oidc_sign_in.places_of(pool, discovery.get)
        assert (places.end_session_endpoint, places.end_session_return) == (f"{domain}/logout", "logout_uri")


def test_tokens_are_for_the_client_that_the_gateway_names(people: Ports, issuer: LocalIssuer) -> None:
    """And without one for nobody: an empty audience is none."""
    assert people.issuer
    other = people.issuer.of_client("another")
    assert (other.client_id, people.issuer.client_id) == ("another", AUDIENCE)
    assert other.user(issuer.token(aud="another")) == "ada@example.com"
    assert other.user(issuer.token()) is None
    at_the_gateway = {"stageVariables": {"OIDC_AUDIENCE": "another"}}
    issuer_there = with_client(people, at_the_gateway).issuer
    assert issuer_there
    assert issuer_there.client_id == "another"
    assert with_client(people, {"headers": {"oidc_audience": "evil"}}) is people
    for nobody in ("", [""], None):
        assert people.issuer.of_client("").user(issuer.token(aud=nobody)) is None
