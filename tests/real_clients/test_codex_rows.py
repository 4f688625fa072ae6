"""After a session of Codex, the rows in the store are its rollout: what was said, and each tool call once."""

import json
from pathlib import Path

import pytest

from tests.acceptance.calls import Json, eventually
from tests.real_clients import edits
from tests.real_clients.codex import CODE_MODEL, Codex, spawn_agent, wait_for_agent
from tests.real_clients.script import Call, Play, Say, Think
from tests.real_clients.server import Server
from tests.real_clients.transcripts import codex_calls, codex_messages

IN_RUN = {"CTRLB_RUN": "rows-2", "CTRLB_AGENT": "builder-1"}
SAID = ("text", "thinking")


def uploaded(ctrlb: Server, thread_id: str, rollout: Path) -> list[Json]:
    """The rows of the thread, once they say what its rollout says."""

    def look() -> list[Json]:
        rows = ctrlb.records(thread_id)
        assert [(row["block_type"], row["body"]) for row in rows if row["block_type"] in SAID] == list(
            codex_messages(rollout)
        )
        for kind in ("tool_use", "tool_result"):
            ids = [row["tool_use_id"] for row in rows if row["block_type"] == kind]
            assert sorted(ids) == sorted(codex_calls(rollout))  # each once
        return rows

    return eventually(look)


def edited(rows: list[Json]) -> list[str]:
    """The paths that the tool calls of the rows have edited."""
    return [
        path for row in rows if row["block_type"] == "tool_use" and row["paths"] for path in json.loads(row["paths"])
    ]


@pytest.mark.promise("harness-names")
def test_every_block_of_a_thread_is_in_the_store(codex_exec: Codex, play: Play, ctrlb: Server) -> None:
    play.scripts = {
        "GO": [
            [
                Think("Where to begin?"),
                Say("Two things at once."),
                Call("exec_command", {"cmd": "echo one"}),
                Call("exec_command", {"cmd": "exit 3"}),
            ],
            [edits.direct_patch("src/notes.txt", "é")],
            [edits.patch_by_shell("by_shell.txt", "two")],
            [Call("mcp__ctrlb/claim", {"resource": "src/notes.txt"})],
            [Say("Done.")],
        ]
    }
    ended = codex_exec.prompt("GO on", environ=IN_RUN)
    thread_id = ended.session_id
    rows = uploaded(ctrlb, thread_id, codex_exec.rollout(thread_id))
    assert edited(rows) == ["src/notes.txt", "by_shell.txt"]
    commands = {row["tool_use_id"]: row["command"] for row in rows if row["block_type"] == "tool_use"}
    assert {"echo one", "exit 3"} < set(commands.values())
    failed = [commands[row["tool_use_id"]] for row in rows if row["block_type"] == "tool_result" and row["is_error"]]
    assert failed == ["exit 3"]
    kept = ctrlb.rows(thread_id)
    assert {(row.harness, row.run_id, row.agent, row.cwd) for row in kept} == {
        ("codex", "rows-2", "builder-1", str(codex_exec.checkout))
    }
    assert sum(row.input_tokens for row in kept) == 5 * 1300.0


def test_every_call_from_a_script_is_in_the_store_once(codex_exec: Codex, play: Play, ctrlb: Server) -> None:
    shell = 'const done = await tools.exec_command({cmd: "echo one"});\ntext(done.output);'
    play.scripts = {
        "GO": [[Say("A note."), edits.patch_by_script("notes.txt", "one")], [Call("exec", shell)], [Say("Done.")]]
    }
    ended = codex_exec.prompt("GO on", ["--model", CODE_MODEL], environ=IN_RUN)
    thread_id = ended.session_id
    rows = uploaded(ctrlb, thread_id, codex_exec.rollout(thread_id))
    assert edited(rows) == ["notes.txt"]
    assert "echo one" in [row["command"] for row in rows]


def test_a_subagents_rows_name_the_thread_that_started_it(codex_exec: Codex, play: Play, ctrlb: Server) -> None:
    play.scripts = {
        "GO": [[spawn_agent("SUB look around")], wait_for_agent, [Say("Done.")]],
        "SUB": [[edits.direct_patch("sub.txt", "one")], [Say("Looked around.")]],
    }
    ended = codex_exec.prompt("GO on", environ=IN_RUN)
    thread_id, child_id = ended.session_id, play.prompted("SUB")[0].headers["thread-id"]
    assert child_id != thread_id
    rows = uploaded(ctrlb, child_id, codex_exec.rollout(child_id))
    assert edited(rows) == ["sub.txt"]
    assert {(row.parent_session, row.agent_id, row.run_id, row.agent) for row in ctrlb.rows(child_id)} == {
        (thread_id, child_id, "rows-2", "builder-1")
    }
    assert ctrlb.rows_up_to(thread_id, "Done.")


def test_a_resumed_thread_goes_on_in_the_store_and_a_fork_is_not_doubled(
    codex_exec: Codex, play: Play, ctrlb: Server
) -> None:
    play.scripts = {"GO": [[Say("Hello.")]], "AGAIN": [[Say("Hello again.")]], "FORK": [[Say("Forked.")]]}
    thread_id = codex_exec.prompt("GO on").session_id
    uploaded(ctrlb, thread_id, codex_exec.rollout(thread_id))
    assert codex_exec.run("exec", "resume", "--json", thread_id, "AGAIN go on").status == 0
    uploaded(ctrlb, thread_id, codex_exec.rollout(thread_id))
    forked = codex_exec.run("exec", "fork", "--json", thread_id, "FORK off")
    fork_id = forked.session_id
    rows = uploaded(ctrlb, fork_id, codex_exec.rollout(fork_id))
    assert [row["body"] for row in rows if row["block_type"] == "text"] == ["FORK off", "Forked."]


def test_a_compacted_thread_goes_on_in_the_store(codex_exec: Codex, play: Play, ctrlb: Server) -> None:
    play.scripts = {
        "GO": [[Call("exec_command", {"cmd": "echo one"})], [Say("Done.")]],
        "You": [[Say("One was said.")]],
    }
    ended = codex_exec.prompt("GO on", ["-c", "model_auto_compact_token_limit=1000"])
    thread_id = ended.session_id
    rows = uploaded(ctrlb, thread_id, codex_exec.rollout(thread_id))
    assert "echo one" in [row["command"] for row in rows]
    (summary,) = (row for row in ctrlb.rows(thread_id) if row.is_summary)
    assert "One was said." in summary.body
