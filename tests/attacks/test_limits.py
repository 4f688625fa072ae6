"""Limits: by key, by person, and by the address of refused credentials; none is met by a team at work."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ctrlb.__main__ import main
from ctrlb.domain.errors import (
    CtrlbError,
    ForbiddenRole,
    InvalidKey,
    NoCredential,
    SignInRefused,
    TooManyRequests,
    WorkspaceMismatch,
)
from ctrlb.domain.key_format import written_key
from ctrlb.edge import limits
from ctrlb.edge.limits import Limits, let_in
from ctrlb.keys import create_key
from ctrlb.laptop import owner
from ctrlb.models import CreateKeyRequest
from ctrlb.ports import Ports
from tests.conftest import HandClock, add_member
from tests.issuer import LocalIssuer
from tests.laptop import Laptop

ADDRESS = "192.0.2.1"
WRONG = f"Bearer {written_key('local', 'a' * 12, 'b' * 43)}"


def key_of(stores: Ports) -> str:
    return "Bearer " + create_key(CreateKeyRequest(name="k"), owner(stores), stores).key


def key_of_nobody(stores: Ports) -> str:
    """A key of a person whose role allows nothing."""
    add_member(stores, "nobody", "Nobody", workspace="local")
    return "Bearer " + create_key(CreateKeyRequest(name="k"), replace(owner(stores), user="nobody"), stores).key


def calls(counted: Limits, stores: Ports, authorization: str | None, times: int, address: str = ADDRESS) -> None:
    for _ in range(times):
        counted.caller(authorization, address, stores)


def refusals(counted: Limits, stores: Ports, times: int, address: str = ADDRESS) -> None:
    for _ in range(times):
        with pytest.raises(InvalidKey):
            counted.caller(WRONG, address, stores)


def too_many(counted: Limits, stores: Ports, authorization: str, address: str = ADDRESS) -> TooManyRequests:
    with pytest.raises(TooManyRequests) as error:
        counted.caller(authorization, address, stores)
    assert error.value.code is None
    assert error.value.retry_after_s >= 1
    return error.value


def test_a_key_over_its_burst_waits_for_its_rate(stores: Ports, clock: HandClock) -> None:
    key, counted = key_of(stores), Limits(2, clock.elapsed_s)
    calls(counted, stores, key, 10)
    assert too_many(counted, stores, key).retry_after_s == 1
    calls(counted, stores, key_of(stores), 10)  # another key is not concerned
    clock.move_s(0.5)
    calls(counted, stores, key, 1)
    too_many(counted, stores, key)


def test_a_key_is_counted_once_however_its_header_is_spelt(stores: Ports, clock: HandClock) -> None:
    key, counted = key_of(stores), Limits(1, clock.elapsed_s)
    secret = key.removeprefix("Bearer ")
    for spelt in (key, f"bearer {secret}", f"BEARER   {secret} ", f"  Bearer {secret}", f"bEaReR {secret}"):
        calls(counted, stores, spelt, 1)
    too_many(counted, stores, f"beareR  {secret}")


def test_a_person_is_counted_whatever_token_they_come_with(
    people: Ports, issuer: LocalIssuer, clock: HandClock
) -> None:
    counted = Limits(1, clock.elapsed_s)
    for number in range(5):
        calls(counted, people, f"Bearer {issuer.token(jti=str(number))}", 1)
    too_many(counted, people, f"Bearer {issuer.token(jti='another')}")


def test_an_address_that_guesses_keys_is_stopped_before_the_store_is_asked(stores: Ports, clock: HandClock) -> None:
    counted = Limits(200, clock.elapsed_s)
    refusals(counted, stores, limits.REFUSALS.burst)
    good = key_of(stores)
    too_many(counted, stores, WRONG)
    too_many(counted, stores, good)  # nobody learns from a 429 whether a guess was right
    calls(counted, stores, good, 1, address="192.0.2.2")
    clock.move_s(1.001 / limits.REFUSALS.per_s)
    refusals(counted, stores, 1)
    too_many(counted, stores, WRONG)


def test_a_key_that_is_known_works_while_somebody_guesses_from_the_same_address(
    stores: Ports, clock: HandClock
) -> None:
    key, counted = key_of(stores), Limits(200, clock.elapsed_s)
    calls(counted, stores, key, 1)
    refusals(counted, stores, limits.REFUSALS.burst)
    too_many(counted, stores, WRONG)
    calls(counted, stores, key, 3)


def test_a_request_without_a_key_counts_as_no_guess(stores: Ports, clock: HandClock) -> None:
    counted = Limits(200, clock.elapsed_s)
    for _ in range(limits.REFUSALS.burst + 10):
        with pytest.raises(NoCredential):
            counted.caller(None, ADDRESS, stores)
    refusals(counted, stores, 1)


def test_refused_tokens_of_people_count_as_guesses(people: Ports, issuer: LocalIssuer, clock: HandClock) -> None:
    counted = Limits(200, clock.elapsed_s)
    for _ in range(limits.REFUSALS.burst):
        with pytest.raises(SignInRefused):
            counted.caller("Bearer ctrlbs_guess", ADDRESS, people)
    too_many(counted, people, f"Bearer {issuer.token()}")


@pytest.mark.parametrize("refused", [ForbiddenRole, WorkspaceMismatch])
def test_keys_that_are_good_but_not_let_in_count_as_refused(
    stores: Ports, clock: HandClock, refused: type[CtrlbError]
) -> None:
    key, host, counted = key_of(stores), "", Limits(200, clock.elapsed_s)
    calls(counted, stores, key, 1)
    if refused is ForbiddenRole:
        key = key_of_nobody(stores)
    else:
        stores, host = replace(stores, workspace_hosts={"beta.example.com": "beta"}), "beta.example.com"
    for _ in range(limits.REFUSALS.burst):
        with pytest.raises(refused):
            counted.caller(key, ADDRESS, stores, host)
    too_many(counted, stores, WRONG)
    too_many(counted, stores, key)  # one that was let in before, and is not any more, waits as well


def test_the_addresses_of_one_subscriber_count_as_one(stores: Ports, clock: HandClock) -> None:
    counted = Limits(200, clock.elapsed_s)
    for number in range(limits.REFUSALS.burst):
        refusals(counted, stores, 1, address=f"2001:db8:0:1::{number:x}")
    too_many(counted, stores, WRONG, address="2001:db8:0:1:ffff::1%eth0")
    refusals(counted, stores, 1, address="2001:db8:0:2::1")


def test_an_ipv4_address_is_the_same_one_however_it_is_written_and_no_other(stores: Ports, clock: HandClock) -> None:
    counted = Limits(200, clock.elapsed_s)
    refusals(counted, stores, limits.REFUSALS.burst, address="::ffff:192.0.2.1")
    too_many(counted, stores, WRONG, address="192.0.2.1")
    refusals(counted, stores, 1, address="::ffff:192.0.2.2")


def test_what_is_no_address_counts_as_one(stores: Ports, clock: HandClock) -> None:
    """Else whoever could write it would have a new name for each guess, and as long a one as they like."""
    counted = Limits(200, clock.elapsed_s)
    for number in range(limits.REFUSALS.burst):
        refusals(counted, stores, 1, address=f"{number}:no-address")
    for address in ("", "not:an:address", "1.2.3.4.5", "192.0.2.01", "x" * 10_000):
        too_many(counted, stores, WRONG, address=address)
    refusals(counted, stores, 1)


@pytest.fixture
def counts_anew() -> Iterator[None]:
    """This process has counted nothing yet, and forgets afterwards what it has."""
    limits.limits_here.cache_clear()
    yield
    limits.limits_here.cache_clear()


def event(authorization: str, **headers: str) -> dict[str, Any]:
    http = {"method": "GET", "path": "/", "sourceIp": ADDRESS}
    return {"headers": {"authorization": authorization, **headers}, "requestContext": {"http": http}}


def test_a_header_that_names_another_address_is_not_believed(
    stores: Ports, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Limits(200, clock.elapsed_s)
    monkeypatch.setattr(limits, "limits_here", lambda: counted)
    for number in range(limits.REFUSALS.burst):
        with pytest.raises(InvalidKey):
            let_in(event(WRONG, **{"x-forwarded-for": f"198.51.100.{number}", "forwarded": f"for={number}"}), stores)
    with pytest.raises(TooManyRequests):
        let_in(event(WRONG, **{"x-forwarded-for": "203.0.113.9", "x-real-ip": "203.0.113.9"}), stores)


FEW = 20
FEW_GUESSES = f"from ctrlb.edge import limits; limits.REFUSALS = limits.Rate(per_s=0.001, burst={FEW})"
"""So slow that no guess comes back while a test runs, however slow the machine is."""


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Laptop]:
    """A server that lets an address guess only a few times."""
    laptop = Laptop(tmp_path, changes=FEW_GUESSES)
    yield laptop
    laptop.stop()


def test_a_running_server_believes_no_header_that_names_another_address(strict: Laptop) -> None:
    with httpx2.Client(base_url=strict.url, headers={"Authorization": WRONG}, timeout=60) as http:
        told = [
            http.get("/ai/keys", headers={"X-Forwarded-For": client, "Forwarded": f"for={client}"}).status_code
            for client in (f"203.0.113.{number}" for number in range(FEW + 1))
        ]
    assert told == [401] * FEW + [429]


def test_an_address_that_guesses_sign_in_codes_is_stopped(strict: Laptop) -> None:
    known = {"Authorization": f"Bearer {strict.key}"}
    with httpx2.Client(base_url=strict.url, timeout=60) as http:
        assert http.get("/ai/relay/settings", headers=known).status_code == 200
        told = [http.post("/ai/sign-in", json={"code": f"guess {number}"}) for number in range(FEW + 1)]
        assert [each.status_code for each in told] == [401] * FEW + [429]
        assert set(told[-1].json()) == {"error"}
        assert int(told[-1].headers["Retry-After"]) >= 1
        assert http.get("/ai/keys", headers={"Authorization": WRONG}).status_code == 429
        assert http.get("/ai/relay/settings", headers=known).status_code == 200
        assert http.get("/health").status_code == 200


@pytest.mark.usefixtures("counts_anew")
def test_limits_can_be_switched_off(stores: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.REQUESTS_PER_S, "0")
    for _ in range(limits.REFUSALS.burst + 10):
        with pytest.raises(InvalidKey):
            let_in(event(WRONG), stores)


@pytest.mark.usefixtures("counts_anew")
@pytest.mark.parametrize("said", ["many", "-1", "nan", "inf", "1,000"])
def test_a_limit_that_is_no_number_is_said_before_the_server_starts(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(limits.REQUESTS_PER_S, said)
    assert main(["serve", "--port", "0", "--data", str(tmp_path / "data")]) == 1
    assert f"REQUESTS_PER_S should be a number from 0 on, not {said}" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.promise("limit-429")
def test_over_the_limit_every_door_answers_429_in_the_one_shape(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limits.REQUESTS_PER_S, "0.0001")  # so slow that the test ends before a token comes back
    laptop = Laptop(tmp_path_factory.mktemp("limited"))
    try:
        with httpx2.Client(base_url=laptop.url, headers={"Authorization": f"Bearer {laptop.key}"}, timeout=60) as http:
            assert http.get("/ai/relay/settings").status_code == 200
            for answered in (http.get("/ai/relay/settings"), http.post("/mcp", json={})):
                assert answered.status_code == 429, answered.text
                assert set(answered.json()) == {"error"}
                assert 1 <= int(answered.headers["Retry-After"]) <= 10_000
        assert httpx2.get(f"{laptop.url}/health").status_code == 200
    finally:
        laptop.stop()
