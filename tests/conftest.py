"""What the suites share: embedded stores in a folder of their own, and a clock that a test moves."""

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest

from ctrlb.adapters.system import SystemRandomness
from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.rows import Audit, Member, Settings
from ctrlb.ports import Ports
from ctrlb.wiring import embedded
from tests import server_limits, surroundings
from tests.aws.emulator import REGION, Emulator
from tests.opensearch.node import OpenSearchNode, ToolMissing

collect_ignore = [] if importlib.util.find_spec("playwright") else ["console"]
"""What drives a browser is installed by `make test-console` alone."""

NOW_US = 1_793_000_000_000_000

surroundings.settle()  # before any module of tests is imported

# How fast the machine is decides nothing, nor what an earlier run left, and every run tries the same.
hypothesis.settings.register_profile(
    "anywhere",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("anywhere")


class HandClock:
    """A clock that stands still unless somebody waits or moves it. `on_wait` lets a rival in meanwhile."""

    def __init__(self) -> None:
        self.us = NOW_US
        self.on_wait: Callable[[], None] = lambda: None

    def now_us(self) -> int:
        return self.us

    def elapsed_s(self) -> float:
        return self.us / 1_000_000

    def wait_ms(self, ms: int) -> None:
        self.us += ms * 1_000
        self.on_wait()

    def move_s(self, seconds: float) -> None:
        self.us += int(seconds * 1_000_000)


class CountedRandomness(SystemRandomness):
    """Request ids in a known order."""

    def __init__(self, name: str = "request") -> None:
        self._name = name
        self._numbers = itertools.count()

    def request_id(self) -> str:
        return f"{self._name}-{next(self._numbers)}"


@pytest.fixture(scope="session", autouse=True)
def time_enough() -> None:
    """The stores of this process take as long as the machine needs."""
    server_limits.extend()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def stores(tmp_path: Path, clock: HandClock) -> Iterator[Ports]:
    """The embedded stores, with a clock that the test moves."""
    with embedded(tmp_path) as ports:
        yield replace(ports, clock=clock, random=CountedRandomness())


@pytest.fixture(scope="session")
def opensearch_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchNode]:
    """A real OpenSearch node, one for all tests. Where Java is missing they are skipped, but never in CI."""
    try:
        node = OpenSearchNode(tmp_path_factory.mktemp("opensearch"))
    except ToolMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    yield node
    node.stop()


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator of AWS, one for all tests."""
    running = Emulator(tmp_path_factory.mktemp("emulator"))
    yield running
    running.stop()


@pytest.fixture
def on_emulator(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS is the emulator, for this process and those that it starts."""
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def on_moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """AWS is moto, in this process alone and for one thread."""
    from moto import mock_aws  # it takes a second to import

    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        yield


def caller_named(user: str, role: str = "Member", settings: Settings | None = None) -> Caller:
    """A caller of the workspace `acme`, by key."""
    return Caller("acme", user, ROLES[role], settings or Settings())


def add_member(stores: Ports, user: str, role: str = "Member", *, active: bool = True, workspace: str = "acme") -> None:
    """Add the person, or change their role or status, at another server than the one that is tested."""
    audit = Audit(workspace, stores.clock.now_us(), "test", "change_member", before="", after=user)
    before = stores.identity.member(workspace, user)
    after = Member(workspace, user, role, active, changed_us=stores.clock.now_us() if before else 0)
    stores.identity.change_member(before, after, None, audit)
