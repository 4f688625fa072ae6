"""Forks of Claude Code's sessions: their rows are uploaded once, and name the session that they came from."""

import json
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from ctrlb_agent.transcripts.claude_transcript import about_file, first_memory
from tests.agent.recorded import DATA, Json, about, lines, rows_of

FORKS = {
    "transcript-forked.jsonl": None,
    "transcript-fork.jsonl": "transcript-forked.jsonl",
    "transcript-fork-of-fork.jsonl": "transcript-fork.jsonl",
    "transcript-compacted-forked.jsonl": None,
    "transcript-compacted-fork.jsonl": "transcript-compacted-forked.jsonl",
    "transcript.jsonl": None,
}
"""Recorded transcripts, each with the one that it was forked from."""
COPIED = {"transcript-fork.jsonl": 21, "transcript-fork-of-fork.jsonl": 25, "transcript-compacted-fork.jsonl": 13}
"""The last line of each fork that is its parent's."""


def session_of(name: str) -> str:
    return str(lines("claude", name)[0]["sessionId"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project's transcripts."""
    for name in FORKS:
        (tmp_path / f"{session_of(name)}.jsonl").write_bytes((DATA / "claude" / name).read_bytes())
    return tmp_path


def rows_in(path: Path) -> list[Json]:
    whose = about_file(str(path))
    parts = [json.loads(line) for line in path.read_text().splitlines()]
    return rows_of("claude", parts, about(*whose), first_memory(str(path)))


@pytest.mark.parametrize("name", FORKS)
def test_a_fork_is_known_by_its_first_messages(project: Path, name: str) -> None:
    parent = FORKS[name]
    memory = first_memory(str(project / f"{session_of(name)}.jsonl"))
    expected = (session_of(parent), COPIED[name]) if parent else (None, None)
    assert (memory.get("parent"), memory.get("copied_lines")) == expected


def test_a_project_of_forks_has_each_message_once(project: Path) -> None:
    rows = [row for path in project.iterdir() for row in rows_in(path)]
    messages = [(row["uuid"], row["block_idx"]) for row in rows if row["uuid"]]
    written = {
        line["uuid"] for name in FORKS for line in lines("claude", name) if line["type"] in ("user", "assistant")
    }
    assert {uuid for uuid, _ in messages} == written
    assert max(Counter(messages).values()) == 1


def test_rows_of_a_fork_name_its_parent_and_begin_behind_what_was_copied(project: Path) -> None:
    rows = rows_in(project / f"{session_of('transcript-fork.jsonl')}.jsonl")
    assert {row["parent_session"] for row in rows} == {session_of("transcript-forked.jsonl")}
    assert [row["body"][:6] for row in rows[:1]] == ["TWO go"]
    assert rows[0]["seq"] == 22


@pytest.mark.parametrize(
    ("names", "responses"),
    [
        (("transcript-forked.jsonl", "transcript-fork.jsonl", "transcript-fork-of-fork.jsonl"), 6),
        (("transcript-compacted-forked.jsonl", "transcript-compacted-fork.jsonl"), 7),
    ],
)
def test_what_the_parent_spent_is_not_spent_again_by_the_fork(
    project: Path, names: tuple[str, ...], responses: int
) -> None:
    rows = [row for name in names for row in rows_in(project / f"{session_of(name)}.jsonl")]
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(responses * 0.00274)


def test_a_copy_is_a_fork_of_one_and_the_other_is_none(tmp_path: Path) -> None:
    message = {"type": "user", "uuid": "u-1", "message": {"content": "Hello."}, "timestamp": "2026-11-30T08:00:00Z"}
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(message) + "\n")
    forks = [first_memory(str(tmp_path / f"{name}.jsonl")).get("parent") for name in ("a", "b")]
    assert forks == [None, "a"]


def test_a_folder_of_broken_files_has_no_fork(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type": "user", "uuid": "u-1", "message": {"content": "Hello."}}\n')
    (tmp_path / "b.jsonl").write_bytes(b'\xff"u-1"\n[]\n{"uuid": ["u-1"]}\n' + b"[" * 5_000 + b"\n")
    (tmp_path / "c.jsonl").write_bytes(b"")
    (tmp_path / "d.jsonl").mkdir()
    (tmp_path / "e.jsonl").symlink_to(tmp_path / "gone.jsonl")
    assert [first_memory(str(tmp_path / f"{name}.jsonl")) for name in "abc"] == [{}, {}, {}]


def test_a_link_beside_it_that_leads_nowhere_does_not_keep_a_transcript_from_being_read(project: Path) -> None:
    for name, target in (("circle.jsonl", "circle.jsonl"), ("lost.jsonl", "no-such-file")):
        (project / name).symlink_to(target)
    rows = rows_in(project / f"{session_of('transcript-fork.jsonl')}.jsonl")
    assert {row["parent_session"] for row in rows} == {session_of("transcript-forked.jsonl")}


def test_a_line_that_is_too_long_is_passed_over_and_not_held_whole(project: Path) -> None:
    path = project / f"{session_of('transcript-fork.jsonl')}.jsonl"
    content = path.read_bytes()
    with path.open("wb") as stream:
        stream.write(b'{"type": "blob", "text": "')
        for _ in range(40):
            stream.write(b"x" * 1_000_000)
        stream.write(b'"}\n' + content)
    tracemalloc.start()
    try:
        memory = first_memory(str(path))
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    parent = session_of("transcript-forked.jsonl")
    assert (memory["parent"], memory["copied_lines"]) == (parent, COPIED["transcript-fork.jsonl"] + 1)
    assert most_bytes < 35_000_000
