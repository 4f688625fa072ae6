"""A laptop-mode server for all tests, and a state folder for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.codex_user import ORIGINAL, User
from tests.agent.hook_process import Machine
from tests.agent.shell import Shell
from tests.laptop import Laptop


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A server for all: each test has run ids and session ids of its own."""
    server = Laptop(tmp_path_factory.mktemp("laptop"))
    yield server
    server.stop()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A user's machine without a server."""
    made = Machine(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def agent_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder that this process, and those it starts, use."""
    folder = tmp_path / "agent-home"
    monkeypatch.setenv("CTRLB_AGENT_HOME", str(folder))
    return folder


@pytest.fixture
def transcript(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where a session of the test's own is written."""
    return tmp_path / f"{request.node.name[:120].translate(str.maketrans('[]/', '---'))}.jsonl"


@pytest.fixture
def checkout(tmp_path: Path, agent_home: Path) -> Path:
    """The root of a checkout called app, for agents that have been told nothing yet."""
    folder = tmp_path / "app"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Somebody who uses Codex."""
    someone = User(tmp_path)
    someone.config.parent.mkdir()
    someone.config.write_text(ORIGINAL)
    return someone


@pytest.fixture
def shell(tmp_path: Path, laptop: Laptop, request: pytest.FixtureRequest) -> Shell:
    """A checkout in which two agents share a run of the test's own."""
    return Shell(tmp_path, laptop, f"run of {request.node.name}"[:100].replace("/", "-"))
