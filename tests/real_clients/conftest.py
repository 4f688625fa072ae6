"""The real clients, each in a home of its own, and the scripted models that they speak to."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.patience import patient_agent
from tests.real_clients import claude_code as claude_program
from tests.real_clients import codex as codex_program
from tests.real_clients import model_server, server
from tests.real_clients.claude_code import ClaudeCode
from tests.real_clients.client import end_what_runs_in, installed_program, new_checkout
from tests.real_clients.codex import Codex
from tests.real_clients.messages_api import MessagesHandler
from tests.real_clients.responses_api import ResponsesHandler
from tests.real_clients.script import Play
from tests.real_clients.server import Server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder, so that `make test` leaves it out."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("clients")


@pytest.fixture(scope="session")
def claude() -> Path:
    """The program of Claude Code."""
    return installed_program(claude_program.PROGRAM)


@pytest.fixture(scope="session")
def codex() -> Path:
    """The program of Codex."""
    return installed_program(codex_program.PROGRAM)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One CtrlB server for all tests: each has runs and sessions of its own."""
    with server.serving(tmp_path_factory.mktemp("ctrlb")) as running:
        yield running


@pytest.fixture
def ctrlb(shared_server: Server) -> Iterator[Server]:
    """The CtrlB server, with its settings as they are by default."""
    yield shared_server
    shared_server.reset()


@pytest.fixture
def play() -> Iterator[Play]:
    """What the model says, and what it was asked."""
    played = Play()
    yield played
    for failure in played.failures:
        raise failure


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of a user, under a path as short as users' are: a socket's may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="home-"))
    yield folder
    end_what_runs_in(folder)
    log = folder / ".ctrlb-agent" / "agent.log"
    logged = log.read_text() if log.exists() else ""
    shutil.rmtree(folder)
    assert "mistake of ours" not in logged, logged


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with one file, app.py."""
    return new_checkout(tmp_path / "work" / "app")


@pytest.fixture
def bare_claude_code(claude: Path, home: Path, checkout: Path, play: Play) -> Iterator[ClaudeCode]:
    """Claude Code, without any plugin."""
    with model_server.serving(MessagesHandler, play) as url:
        yield ClaudeCode(claude, home, checkout, url)


@pytest.fixture
def claude_code(bare_claude_code: ClaudeCode, ctrlb: Server) -> ClaudeCode:
    """Claude Code with the plugin, for a user who has exported the server's address and key."""
    bare_claude_code.environ.update(ctrlb.environ)
    return replace(bare_claude_code, plugin=patient_agent())


@pytest.fixture
def bare_codex_exec(codex: Path, home: Path, checkout: Path, play: Play) -> Iterator[Codex]:
    """Codex, without any hook."""
    with model_server.serving(ResponsesHandler, play) as url:
        client = Codex(codex, home, checkout, url)
        client.configure()
        yield client


@pytest.fixture
def codex_exec(bare_codex_exec: Codex, ctrlb: Server) -> Codex:
    """Codex with the hooks that the installer has set up, for a user who has exported the server's key."""
    bare_codex_exec.environ.update(ctrlb.environ)
    installed = bare_codex_exec.install("--url", ctrlb.laptop.url, "--trust")
    assert installed.status == 0, installed
    return bare_codex_exec
