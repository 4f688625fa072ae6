"""A hook costs nobody a turn, whatever is wrong with its input, its machine or its installation."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ctrlb_agent import hook as hook_module
from tests.agent.hook_process import (
    SPARE_S,
    Machine,
    encoded,
    has_ended,
    kill,
    recorded,
    wait_until,
    write_of,
)
from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S
from tests.agent.scripted_server import ScriptedServer
from tests.agent.verdicts import HELD, verdict

ODD_INPUTS = {
    "nothing": b"",
    "no JSON": b"\x00\xffhello",
    "a list": b"[1]",
    "deeply nested": b"[" * 1_000_000,
    "half": encoded(recorded("claude", "PreToolUse-Write"))[:-20],
    "no fields": b"{}",
    "fields of other kinds": b'{"tool_name": ["Write"], "tool_input": "x", "cwd": 7, "session_id": {}}',
    "an edit of nothing": b'{"tool_name": "Write", "tool_input": {"file_path": null}, "cwd": null}',
}


@pytest.mark.parametrize("sent", ODD_INPUTS.values(), ids=ODD_INPUTS)
@pytest.mark.parametrize("event", ["PreToolUse", "Stop", "NoSuchEvent"])
def test_an_input_that_no_client_sends_costs_nobody_a_turn(machine: Machine, sent: bytes, event: str) -> None:
    done = machine.run("claude", event, sent)
    assert (done.status, done.printed) == (0, b"")


def test_an_input_without_an_end_is_not_read_for_ever(machine: Machine) -> None:
    machine.agent = AGENT
    process = machine.start("claude", "PreToolUse")
    assert process.stdin
    process.stdin.write(b'{"tool_name": "Write"')
    process.stdin.flush()
    assert has_ended(process.pid, hook_module.TOTAL_S + SPARE_S)
    assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
    assert process.returncode == 0
    assert "gave up after" in machine.log()


def test_an_input_that_takes_long_to_read_is_passed_over(machine: Machine) -> None:
    done = machine.before_edit(b'{"a":[' + b"{}," * (hook_module.MAX_INPUT_BYTES // 3) + b"{}]}")
    assert (done.status, done.printed) == (0, b"")
    assert "the input is over 16,777,216 bytes" in machine.log()


def test_a_client_that_does_not_read_is_not_waited_for(machine: Machine) -> None:
    machine.agent = AGENT
    long = {**HELD, "key": "path:" + "x" * 4_000, "path": "é" * 4_000}
    with ScriptedServer(verdict(*[{**long, "held_by": f"agent-{n}"} for n in range(50)])) as server:
        process = machine.asking(recorded("claude", "PreToolUse-Write"), CTRLB_URL=server.url)
        assert process.stdout
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4_096)
        assert has_ended(process.pid, hook_module.TOTAL_S + SPARE_S)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_a_client_that_hung_up_is_no_error(machine: Machine) -> None:
    with ScriptedServer(verdict(HELD)) as server:
        process = machine.start("claude", "PreToolUse", CTRLB_URL=server.url)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(encoded(recorded("claude", "PreToolUse-Write")))
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0
        assert process.stderr.read() == b""
        process.stderr.close()


@pytest.mark.parametrize("redirection", ["<&-", "<&- >&-", "<&- >&- 2>&-", "</dev/null", ">/dev/full"])
def test_without_stdin_or_stdout_it_ends_with_0(machine: Machine, redirection: str) -> None:
    line = f'"$0" claude PreToolUse {redirection}'
    command = ["sh", "-c", line, *machine.command("claude", "PreToolUse")[:1]]
    done = subprocess.run(command, env=machine.environ, cwd=machine.home, capture_output=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("arguments", [[], ["claude"], ["claude", "PreToolUse", "more"]])
def test_wrong_arguments_end_with_0(machine: Machine, arguments: list[str]) -> None:
    script = machine.command("claude", "PreToolUse")[0]
    done = subprocess.run(
        [script, *arguments], env=machine.environ, input=b"{}", capture_output=True, timeout=TIMEOUT_S
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("event", ["PreToolUse", "SessionStart", "Stop"])
@pytest.mark.parametrize("state", ["/dev/null/state", "/proc/state", "a file"])
def test_a_state_folder_that_cannot_be_written_costs_nobody_a_turn(machine: Machine, state: str, event: str) -> None:
    (machine.home / "a file").touch()
    with ScriptedServer(verdict()) as server:
        sent = write_of("a.py", machine.home, hook_event_name=event, source="startup")
        done = machine.run("claude", event, sent, CTRLB_AGENT_HOME=state, CTRLB_URL=server.url)
    assert done.status == 0


@pytest.mark.parametrize("named", ["CTRLB_AGENT_HOME", "HOME"])
def test_a_relative_state_folder_is_the_same_for_every_process(machine: Machine, named: str) -> None:
    relative = {"CTRLB_AGENT_HOME": "rel" if named == "CTRLB_AGENT_HOME" else "", "HOME": "rel"}
    machine.state = machine.home / ("rel" if named == "CTRLB_AGENT_HOME" else "rel/.ctrlb-agent")
    transcript = machine.home / "one.jsonl"
    transcript.write_text(encoded(recorded("claude", "PreToolUse-Write")).decode() + "\n")
    with ScriptedServer(verdict(HELD)) as server:
        machine.environ |= {"CTRLB_URL": server.url, **relative}
        machine.before_edit(write_of("a.py", machine.home))
        wait_until(lambda: machine.daemon_pid() > 0)
        sent = write_of("a.py", machine.home, hook_event_name="Stop", transcript_path=str(transcript))
        assert machine.run("claude", "Stop", sent).status == 0
        kill(machine.daemon_pid())
    assert not list(machine.state.rglob("rel"))
    assert {"python", "sessions"} < {file.name for file in machine.state.iterdir()}


def test_a_held_file_is_refused_though_nothing_can_be_kept(machine: Machine) -> None:
    with ScriptedServer(verdict(HELD, mode="enforce")) as server:
        done = machine.before_edit(write_of("a.py", machine.home), CTRLB_AGENT_HOME="/proc", CTRLB_URL=server.url)
    assert done.output["permissionDecision"] == "deny"


def test_a_full_disk_costs_nobody_a_turn(machine: Machine) -> None:
    with ScriptedServer(verdict(HELD, mode="enforce")) as server:
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 0; exec "$0" claude PreToolUse', machine.command("claude", "")[0]],
            env={**machine.environ, "CTRLB_URL": server.url},
            input=encoded(write_of("a.py", machine.home)),
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    assert done.returncode == 0
    assert b'"deny"' in done.stdout


@pytest.mark.parametrize("event", ["PreToolUse", "SessionStart", "Stop"])
def test_without_a_home_it_ends_with_0(machine: Machine, event: str) -> None:
    environ = {"PATH": machine.environ["PATH"], "CTRLB_AGENT_HOME": str(machine.state)}
    command = machine.command("claude", event)
    sent = encoded(write_of("a.py", machine.home, hook_event_name=event))
    done = subprocess.run(command, env=environ, input=sent, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0


def test_a_working_folder_that_was_removed_is_worked_from_too(machine: Machine) -> None:
    (gone := machine.home / "gone").mkdir()
    line = 'cd "$1" && rmdir "$1" && exec "$0" claude PreToolUse'
    with ScriptedServer(verdict(HELD)) as server:
        done = subprocess.run(
            ["sh", "-c", line, machine.command("claude", "")[0], str(gone)],
            env={**machine.environ, "CTRLB_URL": server.url},
            input=encoded(recorded("claude", "PreToolUse-Write")),
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    assert done.returncode == 0
    assert b"is held by agent-b" in done.stdout


@pytest.mark.parametrize("known", ["/no/such/python\n", "", "/tmp\n", "\n\n", "state/python3\n"])
def test_the_interpreter_is_found_again_when_it_has_moved(machine: Machine, known: str) -> None:
    (machine.state / "python").write_text(known)
    with ScriptedServer(verdict(HELD)) as server:
        path = f"{Path(PYTHON).parent}:{machine.environ['PATH']}"
        done = machine.before_edit(recorded("claude", "PreToolUse-Write"), CTRLB_URL=server.url, PATH=path)
    assert done.output["additionalContext"]
    assert os.access((machine.state / "python").read_text().rstrip("\n"), os.X_OK)


@pytest.mark.parametrize("theirs", ["python", "."])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_program_that_another_user_named_is_not_run(machine: Machine, theirs: str) -> None:
    (planted := machine.home / "planted").write_text(f"#!/bin/sh\ntouch {machine.home}/ran\n")
    planted.chmod(0o755)
    (machine.state / "python").write_text(f"{planted}\n")
    os.chown(machine.state / theirs, 65_534, 65_534)
    path = f"{Path(PYTHON).parent}:{machine.environ['PATH']}"
    with ScriptedServer(verdict(HELD)) as server:
        done = machine.before_edit(recorded("claude", "PreToolUse-Write"), CTRLB_URL=server.url, PATH=path)
        if theirs == ".":
            os.chown(machine.state, 0, 0)
    assert done.output["additionalContext"]
    assert not (machine.home / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_nothing_is_told_to_a_socket_of_another_user(machine: Machine) -> None:
    with machine.planted_socket() as planted, ScriptedServer(verdict(HELD)) as server:
        os.chown(machine.state / os.fsdecode(hook_module.SOCKET), 65_534, 65_534)
        assert machine.before_edit(recorded("claude", "PreToolUse-Write"), CTRLB_URL=server.url).output
        with pytest.raises(BlockingIOError):
            planted.accept()


def test_an_interpreter_that_does_not_work_is_forgotten(machine: Machine) -> None:
    (machine.state / "python").write_text("/bin/false\n")
    path = f"{Path(PYTHON).parent}:{machine.environ['PATH']}"
    with ScriptedServer(verdict(HELD)) as server:
        environ = {"CTRLB_URL": server.url, "PATH": path}
        assert machine.before_edit(recorded("claude", "PreToolUse-Write"), **environ).is_silent
        assert machine.before_edit(recorded("claude", "PreToolUse-Write"), **environ).output["additionalContext"]


def test_without_any_interpreter_it_ends_with_0(machine: Machine) -> None:
    (machine.state / "python").unlink()
    (empty := machine.home / "empty").mkdir()
    assert machine.before_edit(b"{}", PATH=str(empty)).is_silent


@pytest.mark.parametrize("damage", ["no package", "no module", "no sense", "not readable"])
def test_an_installation_that_is_broken_ends_with_0(machine: Machine, damage: str) -> None:
    installed = machine.home / "installed"
    shutil.copytree(AGENT / "hooks", installed / "hooks")
    if damage != "no package":
        shutil.copytree(AGENT / "ctrlb_agent", installed / "ctrlb_agent", ignore=shutil.ignore_patterns("__pycache__"))
        module = installed / "ctrlb_agent" / "hook.py"
        module.unlink()
        if damage == "no sense":
            module.write_text("this is = no python\n")
        if damage == "not readable":
            module.mkdir()
    command = [str(installed / "hooks" / "ctrlb-hook"), "claude", "PreToolUse"]
    done = subprocess.run(command, env=machine.environ, input=b"{}", capture_output=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("status", [1, 2, 127])
def test_an_interpreter_that_fails_refuses_no_edit(machine: Machine, status: int) -> None:
    broken = machine.home / "python3"
    broken.write_text(f"#!/bin/sh\nexit {status}\n")
    broken.chmod(0o700)
    (machine.state / "python").write_text(f"{broken}\n")
    assert machine.before_edit(recorded("claude", "PreToolUse-Write")).is_silent
