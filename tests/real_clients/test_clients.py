"""The rig itself: each client runs its script to the end, without anything of ours."""

from pathlib import Path

from tests.real_clients.claude_code import ClaudeCode
from tests.real_clients.codex import Codex
from tests.real_clients.script import Call, Play, Say, Think


def test_claude_code_plays_a_script_and_edits_a_file(bare_claude_code: ClaudeCode, play: Play, checkout: Path) -> None:
    path = str(checkout / "notes.txt")
    play.scripts = {
        "GO": [
            [Think("Where to begin?"), Say("A note."), Call("Write", {"file_path": path, "content": "one\n"})],
            [Say("Written.")],
        ]
    }
    ended = bare_claude_code.prompt("GO write a note")
    assert ended.status == 0, ended
    assert (checkout / "notes.txt").read_text() == "one\n"
    assert ended.events[-1]["result"] == "Written."
    assert bare_claude_code.transcript(ended.session_id).is_file()
    assert len(play.prompted("GO")) == 2


def test_codex_plays_a_script_and_edits_a_file(bare_codex_exec: Codex, play: Play, checkout: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: notes.txt\n+one\n*** End Patch"
    play.scripts = {"GO": [[Think("Where to begin?"), Call("apply_patch", patch)], [Say("Written.")]]}
    ended = bare_codex_exec.prompt("GO write a note")
    assert ended.status == 0, ended
    assert (checkout / "notes.txt").read_text() == "one\n"
    assert bare_codex_exec.rollout(ended.session_id).is_file()
    assert len(play.prompted("GO")) == 2
