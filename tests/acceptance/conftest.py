"""The suite that any deployment must pass. It needs CTRLB_TEST_URL and CTRLB_TEST_KEY, a key of an Admin.

Where they are not set it starts laptop mode for itself. Those without TEST in their names are of a person's own work.
"""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest

from tests.laptop import Laptop


@dataclass(frozen=True)
class Deployment:
    """Where the system is, and a key to it."""

    url: str
    key: str


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The deployment under test."""
    if "CTRLB_TEST_URL" in os.environ:
        yield Deployment(os.environ["CTRLB_TEST_URL"], os.environ["CTRLB_TEST_KEY"])
        return
    laptop = Laptop(tmp_path_factory.mktemp("acceptance"))
    yield Deployment(laptop.url, laptop.key)
    laptop.stop()


@pytest.fixture(scope="session")
def http(deployment: Deployment) -> Iterator[httpx2.Client]:
    """A client that sends the key with every request."""
    headers = {"Authorization": f"Bearer {deployment.key}"}
    with httpx2.Client(base_url=deployment.url, headers=headers, timeout=60) as client:
        yield client


@pytest.fixture
def run_id() -> str:
    """A run that no other test, nor an earlier start of this one, has used."""
    return f"run-{uuid.uuid4().hex}"


@pytest.fixture
def session_id() -> str:
    """A session that no other test, nor an earlier start of this one, has used."""
    return f"session-{uuid.uuid4().hex}"
