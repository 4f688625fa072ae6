"""After a session of Claude Code, the rows in the store are its transcript, block by block."""

import json
from pathlib import Path

import pytest

from tests.acceptance.calls import Json, eventually, search
from tests.real_clients import edits
from tests.real_clients.claude_code import COMPACTION, ClaudeCode, run_subagent
from tests.real_clients.script import Call, Play, Say, Think
from tests.real_clients.server import Server
from tests.real_clients.transcripts import Block, claude_blocks

RESULT = "result"
"""The kind of a row that tells what the session has cost, which is no block of the transcript."""
SUMMARY = "<summary>The notes were written.</summary>"


def block_of(row: Json) -> Block:
    """The row as the block that it is said to be."""
    content = json.loads(row["body"]) if row["block_type"] == "tool_use" else row["body"]
    return Block(row["seq"], row["role"], row["block_type"], row["tool_use_id"], content)


def uploaded(ctrlb: Server, session_id: str, transcript: Path) -> list[Json]:
    """The rows of the session, once they are the blocks of its transcript."""

    def look() -> list[Json]:
        rows = ctrlb.records(session_id)
        assert [block_of(row) for row in rows if row["block_type"] != RESULT] == claude_blocks(transcript)
        return rows

    return eventually(look)


@pytest.mark.promise("harness-names")
def test_every_block_of_a_session_is_in_the_store(claude_code: ClaudeCode, play: Play, ctrlb: Server) -> None:
    checkout = claude_code.checkout
    play.scripts = {
        "GO": [
            [Think("Where to begin?"), Say("A note, then two things at once."), edits.write(checkout / "a.txt", "é\n")],
            [
                Call("Bash", {"command": "echo one; exit 3", "description": "Fail"}),
                Call("Read", {"file_path": str(checkout / "app.py")}),
            ],
            [edits.edit(checkout / "app.py", "x = 1", "x = 2")],
            [Say("Done.")],
        ]
    }
    session_id = claude_code.prompt("GO on", environ={"CTRLB_RUN": "rows-1", "CTRLB_AGENT": "builder-1"}).session_id
    rows = uploaded(ctrlb, session_id, claude_code.transcript(session_id))
    calls = [row for row in rows if row["block_type"] == "tool_use"]
    assert [json.loads(row["paths"]) for row in calls if row["tool_name"] in ("Write", "Edit")] == [
        ["a.txt"],
        ["app.py"],
    ]
    assert [row["command"] for row in calls if row["tool_name"] == "Bash"] == ["echo one; exit 3"]
    assert sum(row["is_error"] for row in rows) == 1
    kept = ctrlb.rows(session_id)
    assert {(row.harness, row.run_id, row.agent) for row in kept} == {("claude", "rows-1", "builder-1")}
    assert {(row.git_branch, row.cwd) for row in kept if row.block_type != RESULT} == {("main", str(checkout))}
    assert sum(row.input_tokens for row in kept) == 4 * 1200.0  # once a message
    assert sum(row.cost_usd for row in kept) > 0


@pytest.mark.promise("redacted")
def test_a_secret_never_reaches_the_store(claude_code: ClaudeCode, play: Play, ctrlb: Server) -> None:
    secret = "AKIA" + "Q3X7ZL5M2N8P4RTV"
    call = Call("Bash", {"command": f"echo AWS_ACCESS_KEY_ID={secret}", "description": "Show"})
    play.scripts = {"GO": [[Say(f"The key is {secret}."), call], [Say("Done.")]]}
    session_id = claude_code.prompt("GO on").session_id
    assert secret in claude_code.transcript(session_id).read_text()
    kept = repr(ctrlb.rows_up_to(session_id, "Done."))
    assert secret not in kept
    assert kept.count("[REDACTED]") >= 3


def test_a_subagents_rows_name_the_session_that_started_it(claude_code: ClaudeCode, play: Play, ctrlb: Server) -> None:
    play.scripts = {
        "GO": [[run_subagent("SUB look around")], [Say("Done.")]],
        "SUB": [[edits.write(claude_code.checkout / "sub.txt", "one\n")], [Say("Looked around.")]],
    }
    session_id = claude_code.prompt("GO on").session_id
    transcript = claude_code.transcript(session_id)
    uploaded(ctrlb, session_id, transcript)
    (file,) = (transcript.parent / session_id / "subagents").glob("agent-*.jsonl")
    uploaded(ctrlb, file.stem, file)
    kept = ctrlb.rows(file.stem)
    (agent,) = {row.agent for row in ctrlb.rows(session_id)}
    assert {(row.parent_session, f"agent-{row.agent_id}", row.agent) for row in kept} == {
        (session_id, file.stem, agent)
    }


def test_a_compacted_and_resumed_session_goes_on_in_the_store(
    claude_code: ClaudeCode, play: Play, ctrlb: Server
) -> None:
    play.scripts = {
        "GO": [[edits.write(claude_code.checkout / "a.txt", "one\n")], [Say("Done.")]],
        COMPACTION: [[Say(SUMMARY)]],
        "AGAIN": [[edits.write(claude_code.checkout / "b.txt", "two\n")], [Say("Done again.")]],
    }
    session_id = claude_code.prompt("GO on").session_id
    transcript = claude_code.transcript(session_id)
    uploaded(ctrlb, session_id, transcript)
    assert claude_code.prompt("/compact", ["--resume", session_id]).status == 0
    assert claude_code.prompt("AGAIN go on", ["--resume", session_id]).status == 0
    uploaded(ctrlb, session_id, transcript)
    (summary,) = (row for row in ctrlb.rows(session_id) if row.is_summary)
    assert "The notes were written." in summary.body


def test_a_fork_is_not_doubled(claude_code: ClaudeCode, play: Play, ctrlb: Server) -> None:
    play.scripts = {"GO": [[Say("Xylophones are tuned.")]], "FORK": [[Say("Forked.")]]}
    session_id = claude_code.prompt("GO on").session_id
    fork_id = claude_code.prompt("FORK off", ["--resume", session_id, "--fork-session"]).session_id
    assert fork_id != session_id
    uploaded(ctrlb, session_id, claude_code.transcript(session_id))

    def look() -> None:
        rows = ctrlb.records(fork_id)
        assert [row["body"] for row in rows if row["block_type"] != RESULT] == ["FORK off", "Forked."]

    eventually(look)
    assert {row.parent_session for row in ctrlb.rows(fork_id)} == {session_id}
    assert search(ctrlb.http, "Xylophones")["total"] == 1
