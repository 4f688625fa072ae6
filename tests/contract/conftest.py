"""One fixture for each port, made once with every adapter that there is."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ctrlb.ports import Ports, RelayStore
from ctrlb.wiring import embedded
from tests.aws.stores import aws_stores
from tests.contract.indexed_sessions import opensearch_sessions
from tests.contract.relay_adapters import RELAY_ADAPTERS, Opening
from tests.contract.session_adapters import STORE_ADAPTERS, SessionOpening, StoreOpening, sqlite_sessions

ON_AWS = ["moto", pytest.param("dynamodb", marks=pytest.mark.emulator)]
"""Where the adapters of AWS are tested: moto is quick, but checks and then writes, so nothing races on it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the races on moto."""
    items[:] = [item for item in items if not (item.get_closest_marker("races") and "moto" in item.name)]


def name_of(request: pytest.FixtureRequest) -> str:
    """The fixture's parameter, with the AWS behind it that it names."""
    behind = {"moto": "on_moto", "dynamodb": "on_emulator"}
    if request.param in behind:
        request.getfixturevalue(behind[request.param])
    return str(request.param)


@pytest.fixture(params=["sqlite", *ON_AWS])
def relay_adapter(request: pytest.FixtureRequest) -> str:
    """The name of an adapter of RelayStore."""
    return name_of(request)


@pytest.fixture
def open_relay(relay_adapter: str) -> Opening:
    """Opens the adapter's store in a folder, as often as the test wants."""
    return RELAY_ADAPTERS[relay_adapter]


@pytest.fixture
def relay(open_relay: Opening, tmp_path: Path) -> Iterator[RelayStore]:
    """An empty store."""
    with open_relay(tmp_path) as store:
        yield store


@pytest.fixture(params=["sqlite", *ON_AWS])
def all_stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ports]:
    """Empty stores that belong together: what one writes, RunStore shows."""
    opened = embedded if name_of(request) == "sqlite" else aws_stores
    with opened(tmp_path) as ports:
        yield ports


@pytest.fixture(params=["sqlite", *ON_AWS])
def open_store(request: pytest.FixtureRequest) -> StoreOpening:
    """Opens an adapter's SessionStore in a folder, as often as the test wants."""
    return STORE_ADAPTERS[name_of(request)]


@pytest.fixture(params=["sqlite", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def open_index(request: pytest.FixtureRequest) -> SessionOpening:
    """Opens an adapter's SessionIndex in a folder, with the store beside it, as often as the test wants."""
    if request.param == "sqlite":
        return sqlite_sessions
    return partial(opensearch_sessions, request.getfixturevalue("opensearch_node").url)
