"""The hooks of a session's life as processes: what they tell the agent, and what they never cost."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent.session_hooks import PROBE_S, UPLOAD_WAIT_S, first_word
from tests.agent.hook_process import SPARE_S, Finished, Machine, recorded, wait_until
from tests.agent.programs import AGENT
from tests.agent.recorded import DATA
from tests.agent.scripted_server import Behaviour, ScriptedServer, answers, closes, hangs, says
from tests.laptop import Laptop
from tests.nobody import NOBODY

AMISS = f" But this does not work now, and edits are not checked: nothing listens at {NOBODY}. Tell the person."
NO_IDS = {"CTRLB_RUN": "", "CTRLB_AGENT": ""}
LONGEST_NOTE_WORDS = 100


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A home of a user who has set a server up that does not answer."""
    made = Machine(tmp_path / "home", NOBODY, CLAUDE_PID=str(os.getpid()))
    yield made
    made.close()


def note_of(finished: Finished, event: str = "SessionStart") -> str:
    """What the model is told."""
    assert (finished.status, finished.errors) == (0, b"")
    assert list(finished.output) == ["hookEventName", "additionalContext"]
    assert finished.output["hookEventName"] == event
    note: str = finished.output["additionalContext"]
    return note


def ids_in(note: str) -> tuple[str, str]:
    """The run id and the agent id in the note's first sentence."""
    run, _, rest = note.removeprefix("CtrlB Relay: your run id is ").partition(" and your agent id is ")
    return run, rest.partition(". ")[0]


def relay(checkout: Path, arguments: str, **changes: Any) -> dict[str, Any]:
    """The input of `/ctrlb-agent:relay` with these arguments."""
    return recorded("claude", "UserPromptExpansion", cwd=str(checkout), command_args=arguments, **changes)


@pytest.mark.parametrize("client", ["claude", "codex"])
@pytest.mark.parametrize("source", ["startup", "resume", "compact", "fork"])
def test_each_session_is_told_its_ids_though_the_server_is_away(
    machine: Machine, checkout: Path, client: str, source: str
) -> None:
    note = note_of(machine.run(client, "SessionStart", recorded(client, f"SessionStart-{source}", cwd=str(checkout))))
    assert note.startswith("CtrlB Relay: your run id is run-123 and your agent id is agent-7. ")
    assert str(checkout) in note
    for tool in ("peers", "post", "claim", "release", "search_sessions", "find_command", "next_actions"):
        assert tool in note
    assert note.endswith(AMISS)
    assert len(note.removesuffix(AMISS).split()) < LONGEST_NOTE_WORDS


@pytest.mark.parametrize(
    ("key", "amiss"),
    [("", ""), ("ctrlb_typo", "(MCP_INVALID_KEY). Tell the person.")],
    ids=["taken", "refused"],
)
def test_a_session_is_told_whether_its_key_is_taken(
    machine: Machine, checkout: Path, laptop: Laptop, key: str, amiss: str
) -> None:
    hook = recorded("claude", "SessionStart-startup", cwd=str(checkout))
    note = note_of(machine.run("claude", "SessionStart", hook, CTRLB_URL=laptop.url, CTRLB_KEY=key or laptop.key))
    assert note.endswith(amiss or "recall past sessions.")


@pytest.mark.parametrize("state", ["/dev/null/state", "everybodys"])
def test_a_session_whose_state_cannot_be_kept_is_told_that_nothing_is_uploaded(
    machine: Machine, checkout: Path, laptop: Laptop, state: str
) -> None:
    (folder := machine.home / "everybodys").mkdir()
    folder.chmod(0o1777)
    hook = recorded("claude", "SessionStart-startup", cwd=str(checkout))
    server = {"CTRLB_URL": laptop.url, "CTRLB_KEY": laptop.key}
    note = note_of(machine.run("claude", "SessionStart", hook, CTRLB_AGENT_HOME=state, **server))
    assert "recall past sessions. But nothing of this session is uploaded, for nothing can be kept: " in note


@pytest.mark.parametrize("server", [hangs, answers(500, b""), answers(200, b"<html>")], ids=["hangs", "fails", "other"])
def test_a_server_in_trouble_costs_a_start_no_more_than_its_second(
    machine: Machine, checkout: Path, server: Behaviour
) -> None:
    machine.agent = AGENT
    with ScriptedServer(server) as trouble:
        hook = recorded("claude", "SessionStart-startup", cwd=str(checkout))
        told = machine.run("claude", "SessionStart", hook, CTRLB_URL=trouble.url)
    assert note_of(told).startswith("CtrlB Relay: your run id is ")
    assert told.took_s < PROBE_S + SPARE_S


def test_a_session_without_variables_is_told_ids_that_were_made_for_it(machine: Machine, checkout: Path) -> None:
    first = recorded("claude", "SessionStart-startup", cwd=str(checkout))
    second = recorded("codex", "SessionStart-startup", cwd=str(checkout))
    run, agent = ids_in(note_of(machine.run("claude", "SessionStart", first, **NO_IDS)))
    other_run, other_agent = ids_in(note_of(machine.run("codex", "SessionStart", second, **NO_IDS)))
    assert run == other_run
    assert run.startswith("app-")
    assert (agent.split("-")[0], other_agent.split("-")[0]) == ("claude", "codex")


def test_a_subagent_is_told_that_it_acts_as_its_session(machine: Machine, checkout: Path) -> None:
    session = recorded("claude", "SessionStart-startup", cwd=str(checkout))
    of_session = note_of(machine.run("claude", "SessionStart", session, **NO_IDS))
    subagent = recorded("claude", "SubagentStart", cwd=str(checkout), session_id=session["session_id"])
    assert note_of(
        machine.run("claude", "SubagentStart", subagent, **NO_IDS), "SubagentStart"
    ) == of_session.removesuffix(AMISS)


@pytest.mark.parametrize("missing", ["CTRLB_URL", "CTRLB_KEY"])
@pytest.mark.parametrize("event", ["SessionStart", "SubagentStart"])
def test_without_a_server_or_key_nothing_is_said_to_the_agent(
    machine: Machine, checkout: Path, missing: str, event: str
) -> None:
    name = {"SessionStart": "SessionStart-startup"}.get(event, event)
    assert machine.run("claude", event, recorded("claude", name, cwd=str(checkout)), **{missing: ""}).is_silent


def test_without_a_server_or_key_the_log_says_so(machine: Machine, checkout: Path) -> None:
    machine.run("claude", "SessionStart", recorded("claude", "SessionStart-startup", cwd=str(checkout)), CTRLB_KEY="")
    assert "not set up" in machine.log()


def test_the_plugins_options_set_it_up_as_well(machine: Machine, checkout: Path) -> None:
    options = {"CLAUDE_PLUGIN_OPTION_URL": NOBODY, "CLAUDE_PLUGIN_OPTION_KEY": "a-key"}
    sent = recorded("claude", "SessionStart-startup", cwd=str(checkout))
    assert note_of(machine.run("claude", "SessionStart", sent, CTRLB_URL="", CTRLB_KEY="", **options))


def test_the_relay_command_puts_the_session_into_the_run(machine: Machine, checkout: Path) -> None:
    note = note_of(
        machine.run("claude", "UserPromptExpansion", relay(checkout, "run-9 extra words")), "UserPromptExpansion"
    )
    assert ids_in(note) == ("run-9", "agent-7")
    assert "still says run run-123, so always pass run_id yourself" in note
    session = recorded("claude", "SessionStart-resume", cwd=str(checkout), session_id=relay(checkout, "")["session_id"])
    assert ids_in(note_of(machine.run("claude", "SessionStart", session))) == ("run-9", "agent-7")


def test_where_no_variable_names_a_run_the_relay_command_warns_of_none(machine: Machine, checkout: Path) -> None:
    note = note_of(
        machine.run("claude", "UserPromptExpansion", relay(checkout, "run-9"), **NO_IDS), "UserPromptExpansion"
    )
    assert ids_in(note)[0] == "run-9"
    assert "still says" not in note


@pytest.mark.parametrize("run", ["a/b", "x" * 201])
def test_a_run_id_that_cannot_be_one_is_named_and_changes_nothing(machine: Machine, checkout: Path, run: str) -> None:
    note = note_of(machine.run("claude", "UserPromptExpansion", relay(checkout, run)), "UserPromptExpansion")
    assert ids_in(note) == ("run-123", "agent-7")
    assert "The run was not changed: a run id " in note


def test_the_relay_command_without_a_run_id_tells_the_run_that_there_is(machine: Machine, checkout: Path) -> None:
    note = note_of(machine.run("claude", "UserPromptExpansion", relay(checkout, "  ")), "UserPromptExpansion")
    assert ids_in(note) == ("run-123", "agent-7")
    assert "No run id was given" in note


def test_the_relay_command_says_what_is_missing_where_nothing_is_set_up(machine: Machine, checkout: Path) -> None:
    finished = machine.run("claude", "UserPromptExpansion", relay(checkout, "run-9"), CTRLB_KEY="")
    assert "CTRLB_URL and CTRLB_KEY" in note_of(finished, "UserPromptExpansion")


def test_other_commands_are_none_of_its_business(machine: Machine, checkout: Path) -> None:
    assert machine.run("claude", "UserPromptExpansion", relay(checkout, "run-9", command_name="other:relay")).is_silent


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("run-9 extra words", "run-9"),
        ("  run-9\n", "run-9"),
        ('"my run" now', "my run"),
        ("'my run'", "my run"),
        ('"open', "open"),
        ("", ""),
        ("''", "''"),
    ],
)
def test_the_run_id_is_the_first_word_or_what_is_quoted(text: str, word: str) -> None:
    assert first_word(text) == word


@pytest.mark.parametrize("event", sorted(UPLOAD_WAIT_S))
def test_a_server_that_never_answers_keeps_a_turn_no_longer_than_said(
    tmp_path: Path, checkout: Path, event: str
) -> None:
    transcript = DATA / "claude" / "transcript.jsonl"
    sent = recorded("claude", event, cwd=str(checkout), transcript_path=str(transcript))
    with ScriptedServer(hangs) as server:
        finished = Machine(tmp_path / "home", server.url).run("claude", event, sent)
        assert finished.is_silent
        assert finished.took_s < UPLOAD_WAIT_S[event] + SPARE_S
        wait_until(lambda: server.connections > 0)


FAILURES = {"gone": closes, "rubbish": says(b"rubbish"), "broken": answers(500, b"{}"), "half": answers(200, b"[")}


@pytest.mark.parametrize("behaviour", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("event", ["SessionStart-startup", "Stop", "SubagentStop", "SessionEnd"])
def test_a_server_that_fails_costs_no_hook_anything(tmp_path: Path, checkout: Path, event: str, behaviour: Any) -> None:
    transcript = DATA / "claude" / "transcript.jsonl"
    sent = recorded("claude", event, cwd=str(checkout), transcript_path=str(transcript))
    with ScriptedServer(behaviour) as server:
        machine = Machine(tmp_path / "home", server.url)
        finished = machine.run("claude", event.partition("-")[0], sent)
        machine.close()
    assert (finished.status, finished.errors) == (0, b"")
    assert bool(finished.printed) == event.startswith("SessionStart")


@pytest.mark.parametrize(
    "sent", [b"", b"{", b"[]", b"null", b'{"session_id": 5, "cwd": [], "reason": {}}', b"\xff\xfe"]
)
@pytest.mark.parametrize(
    "event", ["SessionStart", "SubagentStart", "UserPromptExpansion", "Stop", "SessionEnd", "Else"]
)
def test_rubbish_from_a_client_stops_nobody(machine: Machine, event: str, sent: bytes) -> None:
    finished = machine.run("claude", event, sent)
    assert (finished.status, finished.errors) == (0, b"")
    if finished.printed:
        assert json.loads(finished.printed)["hookSpecificOutput"]["hookEventName"] == event


@pytest.mark.parametrize("event", ["SessionStart-startup", "UserPromptExpansion", "Stop", "SessionEnd"])
def test_a_state_folder_that_cannot_be_written_costs_no_hook_anything(
    machine: Machine, checkout: Path, tmp_path: Path, event: str
) -> None:
    (tmp_path / "a-file").write_text("")
    sent = recorded("claude", event, cwd=str(checkout))
    finished = machine.run("claude", event.partition("-")[0], sent, CTRLB_AGENT_HOME=str(tmp_path / "a-file"))
    assert (finished.status, finished.errors) == (0, b"")


def test_an_ended_session_no_longer_holds_the_run_of_its_checkout(machine: Machine, checkout: Path) -> None:
    start, end = (recorded("claude", name, cwd=str(checkout)) for name in ("SessionStart-startup", "SessionEnd"))
    run, _ = ids_in(note_of(machine.run("claude", "SessionStart", start, **NO_IDS)))
    assert machine.run("claude", "SessionEnd", end, **NO_IDS).is_silent
    other = {**start, "session_id": "another"}
    assert ids_in(note_of(machine.run("claude", "SessionStart", other, **NO_IDS)))[0] != run
