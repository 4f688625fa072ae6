"""Guessing keys: nothing that is told, and no work that is done, says how near a guess was."""

import hmac
import string
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from ctrlb.domain.errors import InvalidKey
from ctrlb.domain.key_format import ALPHABET, CHECKSUM_CHARS, read_key, secret_hash, written_key
from ctrlb.edge import identity
from ctrlb.edge.identity import identify
from ctrlb.keys import create_key, revoke_key
from ctrlb.laptop import owner
from ctrlb.models import CreateKeyRequest, RevokeKeyRequest
from ctrlb.ports import Ports
from tests.conftest import HandClock

OTHER_SECRET = "x" * 43


class Counted:
    """A store that counts what it is asked."""

    def __init__(self, inner: object, asked: Counter[str]) -> None:
        self._inner = inner
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        self._asked[name] += 1
        return getattr(self._inner, name)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is hashed and compared, counted."""
    counted: Counter[str] = Counter()

    def counting(name: str, inner: Any) -> Any:
        def call(*arguments: Any) -> Any:
            counted[name] += 1
            return inner(*arguments)

        return call

    monkeypatch.setattr(identity, "secret_hash", counting("hash", secret_hash))
    monkeypatch.setattr(hmac, "compare_digest", counting("compare", hmac.compare_digest))
    return counted


def key_of(stores: Ports) -> str:
    return create_key(CreateKeyRequest(name="k", expires_days=30), owner(stores), stores).key


def parts(key: str) -> tuple[str, str, str]:
    found = read_key(key)
    assert found is not None
    return found.workspace, found.key_id, found.secret


def refused(key: str, stores: Ports) -> str:
    with pytest.raises(InvalidKey) as error:
        identify(f"Bearer {key}", stores)
    return error.value.message


def test_an_unknown_key_costs_what_a_wrong_secret_does_and_is_told_the_same(stores: Ports, work: Counter[str]) -> None:
    workspace, key_id, secret = parts(key_of(stores))
    guesses = {
        "wrong secret": written_key(workspace, key_id, OTHER_SECRET),
        "nearly right": written_key(workspace, key_id, secret[:-1] + ("a" if secret[-1] != "a" else "b")),
        "unknown id": written_key(workspace, "a" * 12, secret),
        "unknown workspace": written_key("elsewhere", key_id, secret),
    }
    costs, told = [], set()
    for guess in guesses.values():
        work.clear()
        asked: Counter[str] = Counter()
        told.add(refused(guess, replace(stores, identity=Counted(stores.identity, asked))))
        costs.append((dict(asked), dict(work)))
    assert costs == [({"key": 1}, {"hash": 1, "compare": 1})] * len(guesses)
    assert len(told) == 1


def test_only_who_has_the_secret_learns_that_a_key_ended(stores: Ports, clock: HandClock) -> None:
    revoked, expired = key_of(stores), key_of(stores)
    unknown = refused(written_key("local", "a" * 12, OTHER_SECRET), stores)
    revoke_key(RevokeKeyRequest(key_id=parts(revoked)[1]), owner(stores), stores)
    clock.move_s(31 * 86_400)
    for key in (revoked, expired):
        workspace, key_id, _ = parts(key)
        assert refused(written_key(workspace, key_id, OTHER_SECRET), stores) == unknown


def test_a_key_with_any_other_character_is_refused(stores: Ports) -> None:
    key = key_of(stores)
    for place, letter in enumerate(key):
        other = next(each for each in ALPHABET if each != letter)
        refused(key[:place] + other + key[place + 1 :], stores)


def test_letters_of_a_key_are_told_apart_by_case(stores: Ports) -> None:
    workspace, key_id, secret = parts(key_of(stores))
    for other_id, other_secret in ((key_id.swapcase(), secret), (key_id, secret.swapcase())):
        refused(written_key(workspace, other_id, other_secret), stores)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: key + "\n",
        lambda key: key + "\u200b",
        lambda key: key.replace("ctrlb_", "\uff43trlb_"),
        lambda key: key[:-1] + chr(ord(key[-1]) + 0xFEE0),
        lambda key: key[:-CHECKSUM_CHARS],
        lambda key: f"{key},{key}",
        lambda key: f"{key} {key}",
        lambda key: f'"{key}"',
        lambda key: key.replace("_", "%5F"),
        lambda key: key + "\x00",
        lambda key: "ctrlb___" + "a" * 49,
        lambda key: "ctrlb_" + string.printable * 1_000,
        lambda key: "ctrlb_*_%_" + "a" * 49,
    ],
    ids=range(13),
)
def test_what_only_looks_like_a_key_is_refused_without_a_look_at_the_store(stores: Ports, spoil: Any) -> None:
    key = key_of(stores)
    asked: Counter[str] = Counter()
    spoilt = spoil(key)
    if spoilt.strip() != key:  # white space around it is the header's
        refused(spoilt, replace(stores, identity=Counted(stores.identity, asked)))
        assert not asked


def test_a_workspace_in_a_key_reaches_no_other(stores: Ports) -> None:
    """The workspace is the first part of every look-up, and the checksum is no secret: it can be made for any."""
    workspace, key_id, secret = parts(key_of(stores))
    for other in ("acme", "loca", "local-", "l", "local1"):
        assert other != workspace
        refused(written_key(other, key_id, secret), stores)
    for no_workspace in ("LOCAL", "local%", "lo_cal", "local#", "", "l" * 33, "lo\u0441al"):
        refused(written_key(no_workspace, key_id, secret), stores)
