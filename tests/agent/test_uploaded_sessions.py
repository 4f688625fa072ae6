"""Sessions that the clients recorded, uploaded as they grew: the store then holds what their files say."""

import itertools
import os
import random
import shutil
from pathlib import Path

import pytest

from ctrlb_agent.sessions.identity import identity_of
from ctrlb_agent.transcripts import claude_transcript, codex_rollout
from ctrlb_agent.uploading import upload
from ctrlb_agent.uploading.transcript import Parser, about_of
from tests.agent.programs import TIMEOUT_S
from tests.agent.recorded import DATA
from tests.agent.transcripts import as_fetched, expected, settings, stored, without_time
from tests.laptop import Laptop

RECORDED = [
    ("claude", path) for path in sorted(DATA.glob("claude/transcript*.jsonl")) if "subagent" not in path.stem
] + [("codex", path) for path in sorted(DATA.glob("codex/rollout*.jsonl"))]


@pytest.mark.usefixtures("agent_home")
@pytest.mark.parametrize(("client", "source"), RECORDED, ids=lambda one: one if isinstance(one, str) else one.stem)
def test_the_store_holds_a_recorded_session_as_its_file_does_however_it_grew(
    laptop: Laptop, tmp_path: Path, client: str, source: Path
) -> None:
    parser: Parser = claude_transcript if client == "claude" else codex_rollout
    path = tmp_path / f"rollout-{client}-{source.name}"
    content = source.read_bytes()
    random_of_file = random.Random(source.name)
    cuts = sorted({random_of_file.randrange(len(content)) for _ in range(6)} | {0, len(content)})
    for start, end in itertools.pairwise(cuts):
        with path.open("ab") as stream:
            stream.write(content[start:end])
        assert upload.upload([str(path)], client, settings(laptop), TIMEOUT_S).reason == ""
    rows = expected(path, parser)
    assert rows
    for session_id in {row["session_id"] for row in rows}:
        wanted = [as_fetched(row) for row in rows if row["session_id"] == session_id]
        assert without_time(stored(laptop, session_id)) == wanted


@pytest.mark.usefixtures("agent_home")
def test_a_fork_has_only_its_own_rows_and_its_parent_is_uploaded_too(laptop: Laptop, tmp_path: Path) -> None:
    parent, fork = tmp_path / "parent.jsonl", tmp_path / "fork.jsonl"
    shutil.copy(DATA / "claude" / "transcript-forked.jsonl", parent)
    shutil.copy(DATA / "claude" / "transcript-fork.jsonl", fork)
    assert upload.upload([str(fork)], "claude", settings(laptop), TIMEOUT_S).reason == ""
    for path in (parent, fork):
        rows = expected(path, claude_transcript)
        assert without_time(stored(laptop, path.stem)) == [as_fetched(row) for row in rows]
    assert {row["parent_session"] for row in expected(fork, claude_transcript)} == {"parent"}
    uuids = [{row["uuid"] for row in expected(path, claude_transcript) if row["uuid"]} for path in (parent, fork)]
    assert uuids[0]
    assert not uuids[0] & uuids[1]


@pytest.mark.usefixtures("agent_home")
@pytest.mark.parametrize("lines_at_first", [1, 4, 12])
def test_a_fork_that_is_read_while_its_parents_rows_are_copied_has_only_its_own(
    laptop: Laptop, tmp_path: Path, lines_at_first: int
) -> None:
    parent, fork = tmp_path / "parent.jsonl", tmp_path / f"fork-{lines_at_first}.jsonl"
    shutil.copy(DATA / "claude" / "transcript-forked.jsonl", parent)
    lines = (DATA / "claude" / "transcript-fork.jsonl").read_bytes().splitlines(keepends=True)
    for some in (lines[:lines_at_first], lines[lines_at_first:]):
        with fork.open("ab") as stream:
            stream.writelines(some)
        assert upload.upload([str(fork)], "claude", settings(laptop), TIMEOUT_S).reason == ""
    rows = expected(fork, claude_transcript)
    assert min(row["seq"] for row in rows) > lines_at_first, "the first read saw copied lines only"
    assert without_time(stored(laptop, fork.stem)) == [as_fetched(row) for row in rows]


@pytest.mark.parametrize("known", [True, False], ids=["known-session", "unknown-session"])
@pytest.mark.usefixtures("agent_home")
def test_the_rows_name_the_machine_as_the_sessions_of_the_hooks_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    whole = os.uname_result(("Linux", "box.office.example.com", "6", "1", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: whole)
    path = tmp_path / "s.jsonl"
    path.touch()
    if known:
        hook = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "SessionStart"}
        identity_of(hook, {"HOME": str(tmp_path)}, "claude")
    about = about_of(str(path), claude_transcript)
    assert (about.host, bool(about.agent)) == ("box", known)
