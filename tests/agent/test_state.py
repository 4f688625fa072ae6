"""The folder of the agents' side: private, whole after a crash, locked by one at a time."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent import state
from ctrlb_agent.settings import Settings, settings_of
from tests.agent.programs import AGENT


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CTRLB_AGENT_HOME", str(folder))
    return folder


def mode_of(file: str | Path) -> int:
    return stat.S_IMODE(Path(file).stat().st_mode)


def test_only_its_user_can_read_it(home: Path) -> None:
    file = state.path("a", "b.json")
    state.write_json(file, {"key": "secret"})
    state.log("a line")

    assert [mode_of(one) for one in (home, home / "a")] == [0o700, 0o700]
    assert [mode_of(one) for one in (file, home / "agent.log")] == [0o600, 0o600]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_could_write_to_becomes_its_users_alone(home: Path, mode: int) -> None:
    for folder in (home, home / "sessions"):
        folder.mkdir()
        folder.chmod(mode)

    state.path("sessions", "a.json")

    assert [mode_of(folder) for folder in (home, home / "sessions")] == [0o700, 0o700]


def test_a_folder_for_everybodys_files_is_refused_and_stays_as_it_is(home: Path) -> None:
    home.mkdir()
    home.chmod(0o1777)
    with pytest.raises(PermissionError, match="everybody"):
        state.home()

    assert home.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("theirs", [".", "sessions"])
def test_the_folder_of_another_user_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, theirs: str) -> None:
    state.path("sessions", "a.json")
    be_another(monkeypatch, home / theirs)
    with pytest.raises(PermissionError, match="belongs to another user"):
        state.path("sessions", "a.json")

    state.log("a line")


def test_what_another_user_put_there_sets_nothing_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.write_json(state.path("config.json"), {"url": "http://theirs"})
    be_another(monkeypatch, home / "config.json")

    assert settings_of({}).url == ""


def be_another(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Let the file belong to somebody else."""
    real, theirs = os.stat, file.stat()

    def stat_of(path: Any, **options: Any) -> os.stat_result:
        found = real(path, **options)
        return os.stat_result([*found[:4], os.geteuid() + 1, *found[5:]]) if found.st_ino == theirs.st_ino else found

    monkeypatch.setattr(os, "stat", stat_of)


def test_what_is_written_is_read_again() -> None:
    file = state.path("a.json")
    state.write_json(file, {"text": "é\n", "number": 1})
    state.write_json(file, {"text": "second"})

    assert state.read_json(file) == {"text": "second"}
    assert [file.name for file in Path(state.home()).iterdir()] == ["a.json"]


def test_a_path_that_is_no_utf_8_is_kept_as_it_is() -> None:
    state.write_json(state.path("a.json"), {"root": "/\udcff/é"})

    assert state.read_json(state.path("a.json")) == {"root": "/\udcff/é"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_a_broken_file_counts_as_none(content: bytes) -> None:
    file = Path(state.path("a.json"))
    file.write_bytes(content)

    assert state.read_json(str(file)) is None
    assert state.read_json(state.path("missing.json")) is None


def test_a_value_that_cannot_be_written_leaves_the_old_one() -> None:
    file = state.path("a.json")
    state.write_json(file, {"old": True})
    with pytest.raises(TypeError):
        state.write_json(file, {"new": object()})

    assert state.read_json(file) == {"old": True}
    assert [file.name for file in Path(state.home()).iterdir()] == ["a.json"]


def test_a_lock_is_held_by_one_process_and_ends_with_it() -> None:
    file = state.path("a.lock")
    code = f"import sys; sys.path.insert(0, {str(AGENT)!r}); from ctrlb_agent import state\n"
    code += f"with state.locked({file!r}, 5): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(state.Busy), state.locked(file, 0.05):
            pass
        other.kill()
        other.wait()
        with state.locked(file, 5):
            assert mode_of(file) == 0o600


def test_the_log_is_bounded_and_one_line_each(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_LOG_BYTES", 1_000)
    for number in range(200):
        state.log(f"line {number}\nof two")

    lines = (home / "agent.log").read_text().splitlines()
    assert lines[-1].endswith(" line 199 of two")
    assert sum(len(file.read_bytes()) for file in home.iterdir()) < 2_200


def test_a_log_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTRLB_AGENT_HOME", "/dev/null/nowhere")

    state.log("a line")

    assert not Path("/dev/null/nowhere").exists()


def test_a_relative_folder_is_decided_on_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTRLB_AGENT_HOME", "relative")
    assert state.home() == str(tmp_path / "relative")

    monkeypatch.chdir(state.home())

    assert state.home() == str(tmp_path / "relative")
    code = "import os; print(os.environ['CTRLB_AGENT_HOME'])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == str(tmp_path / "relative")


def test_the_environment_comes_before_the_plugins_options_and_the_file() -> None:
    state.write_json(state.path("config.json"), {"url": "http://file/", "key": "from-file", "dataset": "d"})
    options = {"CLAUDE_PLUGIN_OPTION_URL": "http://option", "CLAUDE_PLUGIN_OPTION_KEY": "from-option"}

    assert settings_of({}) == Settings("http://file", "from-file", "d")
    assert settings_of(options) == Settings("http://option", "from-option", "d")
    assert settings_of({**options, "CTRLB_URL": "http://env/", "CTRLB_KEY": " from-env "}) == Settings(
        "http://env", "from-env", "d"
    )


def test_a_variable_that_nobody_expanded_counts_as_absent() -> None:
    assert settings_of({"CTRLB_URL": "${CTRLB_URL}", "CTRLB_KEY": ""}) == Settings("", "", "agent_sessions")


def test_a_folder_that_cannot_be_made_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTRLB_AGENT_HOME", "/dev/null/nowhere")

    assert settings_of({"CTRLB_URL": "http://x", "CTRLB_KEY": "k"}) == Settings("http://x", "k", "agent_sessions")
