"""The note that tells an agent who it is stands in its model's context, from the first request on."""

import re

import pytest

from tests.real_clients import edits
from tests.real_clients.claude_code import COMPACTION, RELAY_COMMAND, ClaudeCode, run_subagent
from tests.real_clients.codex import CODE_MODEL, Codex, spawn_agent, wait_for_agent
from tests.real_clients.script import Call, Json, Play, Request, Say, texts
from tests.real_clients.server import Server

NOTE = re.compile(r"CtrlB Relay: your run id is (\S+) and your agent id is (\S+)\. ")
OWN = {"CTRLB_RUN": "nightly-refactor-1", "CTRLB_AGENT": "builder-1"}


def told(request: Request) -> tuple[str, str]:
    """The run and the agent that the model is told in the request, once."""
    found = [match.groups() for text in texts(request.said) for match in NOTE.finditer(text)]
    assert len(found) == 1, texts(request.said)
    return found[0][0], found[0][1]


@pytest.mark.promise("session-start-note")
def test_claude_codes_model_is_told_the_run_and_agent_that_were_exported(claude_code: ClaudeCode, play: Play) -> None:
    play.scripts = {"GO": [[Say("Hello.")]]}
    assert claude_code.prompt("GO on", environ=OWN).status == 0
    assert told(play.prompted("GO")[0]) == ("nightly-refactor-1", "builder-1")


@pytest.mark.promise("session-start-note")
@pytest.mark.parametrize("model", ["gpt-5.5", CODE_MODEL])
def test_codexs_model_is_told_the_run_and_agent_that_were_exported(codex_exec: Codex, play: Play, model: str) -> None:
    play.scripts = {"GO": [[Say("Hello.")]]}
    assert codex_exec.prompt("GO on", ["--model", model], environ=OWN).status == 0
    assert told(play.prompted("GO")[0]) == ("nightly-refactor-1", "builder-1")


def test_agents_that_work_in_one_checkout_at_once_share_a_run_and_no_agent_id(
    claude_code: ClaudeCode, codex_exec: Codex, play: Play
) -> None:
    def meanwhile(_: Json) -> list[Say]:
        assert claude_code.prompt("SECOND go on").status == 0
        assert codex_exec.prompt("THIRD go on").status == 0
        return [Say("Hello.")]

    play.scripts = {"FIRST": [meanwhile], "SECOND": [[Say("Hello.")]], "THIRD": [[Say("Hello.")]]}
    assert claude_code.prompt("FIRST go on").status == 0
    notes = [told(play.prompted(word)[0]) for word in ("FIRST", "SECOND", "THIRD")]
    assert len({run for run, _ in notes}) == 1, notes
    assert len({agent for _, agent in notes}) == 3, notes


def test_a_resumed_session_stays_the_same_agent(claude_code: ClaudeCode, play: Play) -> None:
    play.scripts = {"GO": [[Say("Hello.")]], "AGAIN": [[Say("Hello again.")]]}
    session_id = claude_code.prompt("GO on").session_id
    assert claude_code.prompt("AGAIN go on", ["--resume", session_id]).status == 0
    before, after = play.prompted("GO")[0], play.prompted("AGAIN")[0]
    assert set(NOTE.findall("\n".join(texts(after.said)))) == {told(before)}


def test_a_resumed_thread_of_codex_stays_the_same_agent(codex_exec: Codex, play: Play) -> None:
    play.scripts = {"GO": [[Say("Hello.")]], "AGAIN": [[Say("Hello again.")]]}
    thread_id = codex_exec.prompt("GO on").session_id
    assert codex_exec.run("exec", "resume", "--json", thread_id, "AGAIN go on").status == 0
    before, after = play.prompted("GO")[0], play.prompted("AGAIN")[0]
    assert set(NOTE.findall("\n".join(texts(after.said)))) == {told(before)}


def test_after_a_compaction_claude_codes_model_is_told_again(claude_code: ClaudeCode, play: Play) -> None:
    play.scripts = {"GO": [[Say("Hello.")]], COMPACTION: [[Say("<summary>Hello.</summary>")]], "AGAIN": [[Say("Yes.")]]}
    session_id = claude_code.prompt("GO on").session_id
    assert claude_code.prompt("/compact", ["--resume", session_id]).status == 0
    assert claude_code.prompt("AGAIN go on", ["--resume", session_id]).status == 0
    before, after = play.prompted("GO")[0], play.prompted("AGAIN")[0]
    assert not after.tells("GO on")
    assert set(NOTE.findall("\n".join(texts(after.said)))) == {told(before)}


def test_after_a_compaction_codexs_model_is_told_again(codex_exec: Codex, play: Play) -> None:
    play.scripts = {"GO": [[Call("exec_command", {"cmd": "echo one"})], [Say("Done.")]], "You": [[Say("One.")]]}
    assert codex_exec.prompt("GO on", ["-c", "model_auto_compact_token_limit=1000"]).status == 0
    before, after = play.prompted("GO")[0], play.requests[-1]
    assert after.tells("Another language model")
    assert set(NOTE.findall("\n".join(texts(after.said)))) == {told(before)}


def test_a_subagent_of_claude_code_is_told_the_ids_of_its_session(claude_code: ClaudeCode, play: Play) -> None:
    play.scripts = {
        "GO": [[run_subagent("SUB look around")], [Say("Done.")]],
        "SUB": [[Say("Looked around.")]],
    }
    assert claude_code.prompt("GO on").status == 0
    assert told(play.prompted("SUB")[0]) == told(play.prompted("GO")[0])


def test_a_subagent_of_codex_is_told_the_ids_of_its_thread(codex_exec: Codex, play: Play) -> None:
    play.scripts = {
        "GO": [[spawn_agent("SUB look around")], wait_for_agent, [Say("Done.")]],
        "SUB": [[Say("Looked around.")]],
    }
    assert codex_exec.prompt("GO on").status == 0
    assert told(play.prompted("SUB")[0]) == told(play.prompted("GO")[0])


@pytest.mark.promise("relay-command")
def test_the_relay_command_joins_the_run_and_loads_the_rules(
    claude_code: ClaudeCode, play: Play, ctrlb: Server
) -> None:
    run = f"run-{claude_code.home.name}"
    ctrlb.enforce("enforce")
    ctrlb.held_by(run, "rival-7", "notes.txt")
    play.scripts = {RELAY_COMMAND: [[edits.write(claude_code.checkout / "notes.txt", "one\n")], [Say("I leave it.")]]}
    ended = claude_code.prompt(f"/ctrlb-agent:relay {run}")
    assert ended.status == 0, ended
    first, second = play.prompted(RELAY_COMMAND)
    said = " ".join(texts(first.said))
    assert f"your run id is {run} " in said
    for tool in ("peers", "post", "claim", "release"):
        assert f"`{tool}`" in said
    assert second.tells("rival-7")
    assert not (claude_code.checkout / "notes.txt").exists()
    assert {row.run_id for row in ctrlb.rows_up_to(ended.session_id, "I leave it.")} == {run}
