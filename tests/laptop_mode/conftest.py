"""A laptop-mode server for each module of tests, with its folder, a key and its person signed in."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from ctrlb.domain.key_format import secret_hash, written_key
from ctrlb.domain.rows import Audit, Key, Member
from ctrlb.laptop import WORKSPACE
from ctrlb.ports import Ports
from ctrlb.wiring import embedded
from tests.laptop import Laptop

DEFAULTS = {
    "enforce": "advisory",
    "leaseSeconds": 600,
    "waitMs": 20,
    "silentAfterSeconds": 120,
    "sessionsDataset": "agent_sessions",
    "writeTools": True,
}


def client(laptop: Laptop, credential: str) -> httpx2.Client:
    """A client that sends the key or token with every request."""
    return httpx2.Client(base_url=laptop.url, headers={"Authorization": f"Bearer {credential}"}, timeout=60)


@contextmanager
def running(folder: Path, port: int = 0) -> Iterator[Laptop]:
    """A server on the folder, which is stopped in the end unless the test ended it."""
    laptop = Laptop(folder, port)
    try:
        yield laptop
    finally:
        laptop.stop()


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A server of the module's own."""
    with running(tmp_path_factory.mktemp("laptop")) as server:
        yield server


@pytest.fixture(scope="module")
def http(laptop: Laptop) -> Iterator[httpx2.Client]:
    """A client with the first key."""
    with client(laptop, laptop.key) as keyed:
        yield keyed


@pytest.fixture(scope="module")
def token(laptop: Laptop) -> str:
    """The token that the sign-in link gives its person."""
    answer = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code})
    assert answer.status_code == 200, answer.text
    signed_in: str = answer.json()["token"]
    return signed_in


@pytest.fixture(scope="module")
def signed_in(laptop: Laptop, token: str) -> Iterator[httpx2.Client]:
    """A client of the signed-in person."""
    with client(laptop, token) as person:
        yield person


@pytest.fixture
def person(signed_in: httpx2.Client) -> Iterator[httpx2.Client]:
    """A client of the signed-in person, who leaves the settings as they are by default."""
    yield signed_in
    assert signed_in.put("/ai/relay/settings", json=DEFAULTS).json() == DEFAULTS


@pytest.fixture
def stores(laptop: Laptop) -> Iterator[Ports]:
    """The stores of the running server, opened beside it as the command line does."""
    with embedded(laptop.folder) as ports:
        yield ports


def add_member(stores: Ports, user: str, role: str = "Member", *, active: bool = True) -> None:
    """Add the person, or change their role or status."""
    now_us, before = stores.clock.now_us(), stores.identity.member(WORKSPACE, user)
    after = Member(WORKSPACE, user, role, active, changed_us=now_us if before else 0)
    audit = Audit(WORKSPACE, now_us, "test", "change_member", before="", after=json.dumps({"user_name": user}))
    stores.identity.change_member(before, after, None, audit)


def add_key(stores: Ports, user: str, expires_us: int | None = None) -> str:
    """Write a key of the user's as it is stored, and return it as its owner would send it."""
    secret, key_id = stores.random.secret(), stores.random.key_id()
    now_us = stores.clock.now_us()
    key = Key(WORKSPACE, key_id, user, "a key", secret_hash(secret), now_us, expires_us)
    audit = Audit(WORKSPACE, now_us, "test", "create_key", before="", after=json.dumps({"key_id": key_id}))
    stores.identity.add_key(key, audit)
    return written_key(WORKSPACE, key_id, secret)
