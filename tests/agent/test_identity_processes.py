"""Who a session is when several processes ask at once, and which process its client is."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from ctrlb_agent import state
from ctrlb_agent.sessions import identity, processes
from ctrlb_agent.sessions.identity import Identity
from tests.agent.programs import AGENT, PYTHON, logged
from tests.agent.sessions import CLAUDE, Hook, end, hook, start


def test_the_end_of_one_of_two_clients_in_a_session_does_not_end_it(checkout: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        before = start("one", checkout, environ={"CLAUDE_PID": str(other.pid)})
        end("one", checkout)
        assert start("two", checkout).run == before.run
        other.kill()


def test_a_process_that_is_gone_or_whose_id_is_used_again_does_not_run() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        began = processes.started(process.pid)
        assert began
        assert processes.is_running(process.pid, began)
        assert not processes.is_running(process.pid, "at another time")
        process.kill()
    assert not processes.is_running(process.pid, began)


def test_a_number_that_no_process_can_have_is_no_process() -> None:
    assert not processes.is_running(10**30, "")


def test_a_client_that_does_not_say_its_process_is_found_by_its_name(tmp_path: Path) -> None:
    client = tmp_path / "codex"
    client.symlink_to("/bin/sh")
    (tmp_path / "hook.py").write_text(
        "from ctrlb_agent.sessions import processes\nprint(processes.client_pid('codex'))\n"
    )
    script = 'echo $$; sh -c \'"$PYTHON" "$HOOK"; :\'; :'
    environ = {**os.environ, "PYTHONPATH": str(AGENT), "PYTHON": PYTHON, "HOOK": str(tmp_path / "hook.py")}
    told = subprocess.run([client, "-c", script], env=environ, capture_output=True, text=True, check=True).stdout
    its_own, found = told.split()
    assert found == its_own


FIRST_HOOK = """
import json, os, sys
from ctrlb_agent.sessions import identity
identity.LOCK_WAIT_S = identity.START_LOCK_WAIT_S = 60
sys.stdout.write("ready\\n"); sys.stdout.flush()
hook = json.loads(sys.stdin.readline())
print(json.dumps(identity.identity_of(hook, os.environ, "claude")))
"""


def first_hooks(hooks: list[Hook]) -> list[Identity]:
    """What processes answer, each to the first hook that it gets, all at once."""
    environ = {**os.environ, **CLAUDE, "PYTHONPATH": str(AGENT)}
    started = [
        subprocess.Popen(
            [PYTHON, "-c", FIRST_HOOK], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in hooks
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process, given in zip(started, hooks, strict=True):
        assert process.stdin
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
    return [Identity(*json.loads(process.communicate(timeout=60)[0])) for process in started]


@pytest.mark.races
def test_eight_sessions_that_begin_at_once_agree_on_a_run_and_share_no_id(checkout: Path) -> None:
    told = first_hooks([hook(f"session-{number}", checkout) for number in range(8)])
    assert len({who.run for who in told}) == 1
    assert len({who.agent for who in told}) == 8


def test_a_start_waits_for_its_turn_so_that_all_agree_on_a_run(
    checkout: Path, agent_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert identity.START_LOCK_WAIT_S > identity.LOCK_WAIT_S * 2
    monkeypatch.setattr(identity, "START_LOCK_WAIT_S", 60.0)
    with state.locked(state.path("sessions.lock"), 0):
        waiting = threading.Thread(target=lambda: told.append(start("one", checkout)))
        told: list[Identity] = []
        waiting.start()
        waiting.join(identity.LOCK_WAIT_S * 2)
        assert waiting.is_alive()
        assert told == []
    waiting.join()
    assert told
    assert logged(agent_home) == ""


@pytest.mark.races
def test_eight_first_hooks_of_one_session_agree_on_who_it_is(checkout: Path) -> None:
    told = first_hooks([hook("one", checkout, event) for event in ["SessionStart", "PreToolUse"] * 4])
    assert len(set(told)) == 1
