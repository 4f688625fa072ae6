"""The real clients, each in a home of its own, and the scripted models that they speak to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_clients import claude_code, codex
from tests.real_clients.client import new_checkout
from tests.real_clients.messages_api import MessagesHandler
from tests.real_clients.model_server import serving
from tests.real_clients.responses_api import ResponsesHandler
from tests.real_clients.script import Play


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder, so that `make test` leaves it out."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("clients")


@pytest.fixture
def play() -> Play:
    """What the model says, and what it was asked."""
    return Play()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with one file, app.py."""
    return new_checkout(tmp_path / "work" / "app")


@pytest.fixture
def claude(tmp_path: Path, checkout: Path, play: Play) -> Iterator[claude_code.ClaudeCode]:
    """Claude Code, without any plugin."""
    home = tmp_path / "home"
    home.mkdir()
    with serving(MessagesHandler, play) as url:
        yield claude_code.ClaudeCode(claude_code.PROGRAM, home, checkout, url)


@pytest.fixture
def codex_client(tmp_path: Path, checkout: Path, play: Play) -> Iterator[codex.Codex]:
    """Codex, without any hook."""
    home = tmp_path / "home"
    home.mkdir()
    with serving(ResponsesHandler, play) as url:
        client = codex.Codex(codex.PROGRAM, home, checkout, url)
        client.configure()
        yield client
