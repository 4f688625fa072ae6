"""An edit of a file that another agent holds: stopped, told of, or neither, as the workspace has set it."""

import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nobody import NOBODY
from tests.real_clients import edits
from tests.real_clients.claude_code import ClaudeCode, run_subagent
from tests.real_clients.client import AGENT
from tests.real_clients.codex import CODE_MODEL, DIRECT_MODEL, Codex
from tests.real_clients.script import Call, Play, Request, Say
from tests.real_clients.server import Server

HOLDER = "rival-7"
CLAUDE_EDITS: dict[str, Callable[[Path], Call]] = {
    "Write": lambda checkout: edits.write(checkout / "app.py", "two\n"),
    "Edit": lambda checkout: edits.edit(checkout / "app.py", "x = 1", "x = 2"),
}
CODEX_EDITS: dict[str, tuple[str, Callable[[str, str], Call]]] = {
    "direct": (DIRECT_MODEL, edits.direct_patch),
    "by script": (CODE_MODEL, edits.patch_by_script),
    "by shell": (DIRECT_MODEL, edits.patch_by_shell),
}


@pytest.fixture
def run() -> str:
    """A run of the test's own."""
    return f"run-{uuid.uuid4().hex[:12]}"


def played(play: Play, client: ClaudeCode | Codex, call: Call, run: str, *options: str) -> Request:
    """Let the model make the call, and return the request that carries its result."""
    read = [edits.read(path) for path in client.checkout.glob("*.*")] if isinstance(client, ClaudeCode) else []
    play.scripts = {"GO": [*([read] if read else []), [call], [Say("Done.")]]}
    ended = client.prompt("GO on", options, environ={"CTRLB_RUN": run, "CTRLB_AGENT": "builder-1"})
    assert ended.status == 0, ended
    return play.prompted("GO")[-1]


@pytest.mark.promise("hook-enforce")
@pytest.mark.parametrize("tool", CLAUDE_EDITS)
def test_in_enforce_mode_claude_codes_edit_is_stopped_and_its_model_told_why(
    claude_code: ClaudeCode, play: Play, ctrlb: Server, run: str, tool: str
) -> None:
    ctrlb.enforce("enforce")
    ctrlb.held_by(run, HOLDER, "app.py")
    request = played(play, claude_code, CLAUDE_EDITS[tool](claude_code.checkout), run)
    assert (claude_code.checkout / "app.py").read_text() == "x = 1\nprint(x)\n"
    assert request.tells(HOLDER)
    assert request.tells("claim")
    assert "CHECK" in [event["kind"] for event in ctrlb.events(run)]


def test_in_enforce_mode_claude_codes_notebook_is_not_changed(
    claude_code: ClaudeCode, play: Play, ctrlb: Server, run: str
) -> None:
    ctrlb.enforce("enforce")
    ctrlb.held_by(run, HOLDER, "plot.ipynb")
    notebook = claude_code.checkout / "plot.ipynb"
    notebook.write_text(edits.NOTEBOOK)
    request = played(play, claude_code, edits.notebook_edit(notebook, "x = 2"), run)
    assert notebook.read_text() == edits.NOTEBOOK
    assert request.tells(HOLDER)


def test_a_subagent_of_claude_code_is_stopped_as_its_session_is(
    claude_code: ClaudeCode, play: Play, ctrlb: Server, run: str
) -> None:
    ctrlb.enforce("enforce")
    ctrlb.held_by(run, "builder-1", "ours.txt")
    ctrlb.held_by(run, HOLDER, "theirs.txt")
    both = [edits.write(claude_code.checkout / name, "one\n") for name in ("ours.txt", "theirs.txt")]
    play.scripts = {
        "GO": [[run_subagent("SUB edit them")], [Say("Done.")]],
        "SUB": [both, [Say("Edited.")]],
    }
    assert claude_code.prompt("GO on", environ={"CTRLB_RUN": run, "CTRLB_AGENT": "builder-1"}).status == 0
    assert sorted(path.name for path in claude_code.checkout.glob("*.txt")) == ["ours.txt"]
    assert play.prompted("SUB")[1].tells(HOLDER)


@pytest.mark.promise("hook-advisory")
def test_in_advisory_mode_claude_codes_edit_goes_ahead_and_its_model_is_told(
    claude_code: ClaudeCode, play: Play, ctrlb: Server, run: str
) -> None:
    ctrlb.held_by(run, HOLDER, "app.py")
    request = played(play, claude_code, edits.edit(claude_code.checkout / "app.py", "x = 1", "x = 2"), run)
    assert (claude_code.checkout / "app.py").read_text() == "x = 2\nprint(x)\n"
    assert request.tells(HOLDER)
    assert request.tells("claim")


@pytest.mark.promise("hook-off")
def test_in_off_mode_claude_code_edits_and_its_model_hears_nothing(
    claude_code: ClaudeCode, play: Play, ctrlb: Server, run: str
) -> None:
    ctrlb.enforce("off")
    ctrlb.held_by(run, HOLDER, "app.py")
    request = played(play, claude_code, edits.edit(claude_code.checkout / "app.py", "x = 1", "x = 2"), run)
    assert (claude_code.checkout / "app.py").read_text() == "x = 2\nprint(x)\n"
    assert not request.tells(HOLDER)


def test_claude_codes_own_claim_and_a_free_file_do_not_stop_it(
    claude_code: ClaudeCode, play: Play, ctrlb: Server, run: str
) -> None:
    ctrlb.enforce("enforce")
    ctrlb.held_by(run, "builder-1", "app.py")
    ctrlb.held_by(run, HOLDER, "other.py")
    request = played(play, claude_code, edits.edit(claude_code.checkout / "app.py", "x = 1", "x = 2"), run)
    assert (claude_code.checkout / "app.py").read_text() == "x = 2\nprint(x)\n"
    assert not request.tells(HOLDER)


@pytest.mark.promise("hook-enforce")
@pytest.mark.parametrize("way", CODEX_EDITS)
def test_in_enforce_mode_codexs_edit_is_stopped_and_its_model_told_why(
    codex_exec: Codex, play: Play, ctrlb: Server, run: str, way: str
) -> None:
    ctrlb.enforce("enforce")
    ctrlb.held_by(run, HOLDER, "src/notes.txt")
    model, edit = CODEX_EDITS[way]
    request = played(play, codex_exec, edit("src/notes.txt", "one"), run, "--model", model)
    assert not (codex_exec.checkout / "src").exists()
    assert request.tells(HOLDER)
    assert request.tells("claim")


@pytest.mark.promise("hook-advisory")
@pytest.mark.parametrize("way", CODEX_EDITS)
def test_in_advisory_mode_codexs_edit_goes_ahead_and_its_model_is_told(
    codex_exec: Codex, play: Play, ctrlb: Server, run: str, way: str
) -> None:
    ctrlb.held_by(run, HOLDER, "src/notes.txt")
    model, edit = CODEX_EDITS[way]
    request = played(play, codex_exec, edit("src/notes.txt", "one"), run, "--model", model)
    assert (codex_exec.checkout / "src" / "notes.txt").read_text() == "one\n"
    assert request.tells(HOLDER)


@pytest.mark.promise("hook-off")
def test_in_off_mode_codex_edits_and_its_model_hears_nothing(
    codex_exec: Codex, play: Play, ctrlb: Server, run: str
) -> None:
    ctrlb.enforce("off")
    ctrlb.held_by(run, HOLDER, "src/notes.txt")
    request = played(play, codex_exec, edits.direct_patch("src/notes.txt", "one"), run)
    assert (codex_exec.checkout / "src" / "notes.txt").read_text() == "one\n"
    assert not request.tells(HOLDER)


def test_with_the_server_down_claude_code_edits(claude_code: ClaudeCode, play: Play, run: str) -> None:
    claude_code.environ["CTRLB_URL"] = NOBODY
    played(play, claude_code, edits.edit(claude_code.checkout / "app.py", "x = 1", "x = 2"), run)
    assert (claude_code.checkout / "app.py").read_text() == "x = 2\nprint(x)\n"
    assert (claude_code.home / ".ctrlb-agent" / "agent.log").read_text()


def test_with_the_server_down_codex_edits(codex_exec: Codex, play: Play, run: str) -> None:
    codex_exec.environ["CTRLB_URL"] = NOBODY
    played(play, codex_exec, edits.direct_patch("notes.txt", "one"), run)
    assert (codex_exec.checkout / "notes.txt").read_text() == "one\n"
    assert (codex_exec.home / ".ctrlb-agent" / "agent.log").read_text()


@pytest.mark.parametrize("missing", ["ctrlb_agent/hook.py", "ctrlb_agent", "hooks/ctrlb-hook"])
def test_a_plugin_that_lost_a_part_stops_no_edit(
    claude_code: ClaudeCode, play: Play, run: str, tmp_path: Path, missing: str
) -> None:
    broken = Path(shutil.copytree(AGENT, tmp_path / "ctrlb-agent"))
    lost = broken / missing
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    client = replace(claude_code, plugin=broken)
    played(play, client, edits.edit(client.checkout / "app.py", "x = 1", "x = 2"), run)
    assert (client.checkout / "app.py").read_text() == "x = 2\nprint(x)\n"


def test_a_python_that_fails_stops_no_edit(claude_code: ClaudeCode, play: Play, run: str, tmp_path: Path) -> None:
    claude_code.environ["PATH"] = failing_python(tmp_path)
    played(play, claude_code, edits.edit(claude_code.checkout / "app.py", "x = 1", "x = 2"), run)
    assert (claude_code.checkout / "app.py").read_text() == "x = 2\nprint(x)\n"


def failing_python(folder: Path) -> str:
    """A PATH whose only Pythons end with 2, which both clients would take for a denial."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("python3", "python"):
        (programs / name).write_text("#!/bin/sh\nexit 2\n")
        (programs / name).chmod(0o755)
    return f"{programs}:/usr/bin:/bin"
