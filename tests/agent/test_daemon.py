"""The background process behind the hooks: fast for each, there for all, gone when nobody needs it."""

import os
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ctrlb_agent import hook
from ctrlb_agent.edit_check import daemon
from tests.agent.hook_process import Machine, encoded, has_ended, kill, recorded, wait_until, write_of
from tests.agent.patience import patient_agent
from tests.agent.programs import TIMEOUT_S, logged
from tests.agent.scripted_server import ScriptedServer, hangs
from tests.agent.verdicts import HELD, verdict

WRITE = recorded("claude", "PreToolUse-Write")
MANY = 16


def test_the_first_hook_starts_it_for_those_that_follow(machine: Machine) -> None:
    with ScriptedServer(verdict(HELD)) as server:
        machine.environ["CTRLB_URL"] = server.url
        assert machine.before_edit(WRITE).output["additionalContext"]
        wait_until(lambda: machine.daemon_pid() > 0)
        assert machine.before_edit(WRITE).output["additionalContext"]
        assert machine.before_edit(WRITE).output["additionalContext"]
        assert server.connections == 2  # the first hook's own, and the one that is kept
        machine.close()


@pytest.mark.parametrize("command", [["./ctrlb-hook"], ["sh", "ctrlb-hook"]])
def test_it_works_wherever_the_first_hook_was_started_from(machine: Machine, command: list[str]) -> None:
    subprocess.run(
        [*command, "claude", "PreToolUse"],
        cwd=machine.agent / "hooks",
        env=machine.environ,
        input=encoded(WRITE),
        timeout=TIMEOUT_S,
        check=True,
    )
    wait_until(lambda: machine.daemon_pid() > 0)
    with ScriptedServer(verdict(HELD)) as server:
        sent = write_of("a.py", machine.home)  # of a session that is new to it
        assert machine.before_edit(sent, CTRLB_URL=server.url).output["additionalContext"]
        assert machine.before_edit(sent, CTRLB_URL=server.url).output["additionalContext"]
        machine.close()
    assert server.connections == 1


def test_a_session_that_starts_starts_it(machine: Machine) -> None:
    machine.run("claude", "SessionStart", recorded("claude", "SessionStart-startup"))
    wait_until(lambda: machine.daemon_pid() > 0)


def test_it_is_no_part_of_the_session_that_started_it(machine: Machine) -> None:
    machine.environ["CTRLB_KEY"] = "sk-secret-of-the-user"
    read_end, write_end = os.pipe()
    command = machine.command("claude", "PreToolUse")
    process = subprocess.Popen(
        command, env=machine.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[write_end]
    )
    os.close(write_end)
    process.communicate(encoded(WRITE), TIMEOUT_S)
    wait_until(lambda: machine.daemon_pid() > 0)
    pid = machine.daemon_pid()

    assert os.read(read_end, 1) == b""  # a pipe that it had kept open would not have ended
    os.close(read_end)
    assert os.getsid(pid) == pid
    assert b"sk-secret-of-the-user" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert {Path(f"/proc/{pid}/fd/{number}").readlink() for number in (0, 1, 2)} == {Path("/dev/null")}


def test_nobody_else_can_reach_it(machine: Machine) -> None:
    machine.start_daemon()
    mode = (machine.state / os.fsdecode(hook.SOCKET)).stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_it_answers_no_other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert daemon.is_our_user(ours)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not daemon.is_our_user(ours)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to_is_not_trusted(machine: Machine, mode: int) -> None:
    machine.state.chmod(mode)
    with machine.planted_socket() as planted, ScriptedServer(verdict(HELD)) as server:
        assert machine.before_edit(WRITE, CTRLB_URL=server.url).output["additionalContext"]
        with pytest.raises(BlockingIOError):
            planted.accept()
    assert stat.S_IMODE(machine.state.stat().st_mode) == 0o700


def test_a_folder_with_a_path_of_any_length_will_do(tmp_path: Path) -> None:
    machine = Machine(tmp_path / ("long" * 50) / "home")
    try:
        machine.start_daemon()
        with ScriptedServer(verdict()) as server:
            assert machine.before_edit(WRITE, CTRLB_URL=server.url).is_silent
            assert machine.before_edit(WRITE, CTRLB_URL=server.url).is_silent
            machine.close()
        assert server.connections == 1
    finally:
        machine.close()


def test_an_upgrade_starts_its_own() -> None:
    from ctrlb_agent import __version__

    assert __version__.encode() in hook.SOCKET
    assert __version__.encode() in hook.LOCK


def test_of_many_that_start_at_once_one_remains(machine: Machine) -> None:
    for starting in [machine.spawn_daemon() for _ in range(8)]:
        assert starting.wait(TIMEOUT_S) == 0
    wait_until(lambda: machine.daemon_pid() > 0)
    wait_until(lambda: machine.daemons() == [machine.daemon_pid()])
    assert list(machine.state.glob("*.sock*")) == [machine.state / os.fsdecode(hook.SOCKET)]


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_hooks_that_come_all_at_once_are_all_answered(machine: Machine, start: str) -> None:
    if start == "warm":
        machine.start_daemon()
    with ScriptedServer(verdict(HELD, mode="enforce")) as server:
        hooks = [machine.start("claude", "PreToolUse", CTRLB_URL=server.url) for _ in range(MANY)]
        sent = encoded(WRITE)
        for process in hooks:
            assert process.stdin
            process.stdin.write(sent)
            process.stdin.flush()
        answered = [process.communicate(timeout=TIMEOUT_S) for process in hooks]
        machine.close()

    assert {process.returncode for process in hooks} == {0}
    assert {errors for _, errors in answered} == {b""}
    if start == "warm":
        assert all(b'"deny"' in printed for printed, _ in answered)
        assert server.connections <= MANY
        assert len(server.requests) == MANY


def test_after_it_was_killed_the_next_hook_is_answered_all_the_same_and_starts_another(machine: Machine) -> None:
    with ScriptedServer(verdict(HELD)) as server:
        machine.environ["CTRLB_URL"] = server.url
        for _ in range(3):
            killed = machine.start_daemon()
            kill(killed)
            make_old(machine)
            assert machine.before_edit(WRITE).output["additionalContext"]
            wait_until(lambda: machine.daemon_pid() > 0)
            assert machine.daemon_pid() != killed
            kill(machine.daemon_pid())
            make_old(machine)


def test_a_hook_whose_background_process_is_killed_meanwhile_asks_itself(machine: Machine) -> None:
    pid = machine.start_daemon()
    with ScriptedServer(hangs, verdict(HELD)) as server:
        process = machine.asking(WRITE, CTRLB_URL=server.url)
        wait_until(lambda: len(server.requests) == 1)
        kill(pid)
        printed, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, errors) == (0, b"")
    assert b"is held by agent-b" in printed


def test_one_that_is_stuck_keeps_no_hook(machine: Machine) -> None:
    machine.agent = patient_agent(ACK_S=hook.ACK_S)
    pid = machine.start_daemon()
    os.kill(pid, signal.SIGSTOP)
    with ScriptedServer(verdict(HELD)) as server:
        done = machine.before_edit(WRITE, CTRLB_URL=server.url)
    assert (done.status, done.errors) == (0, b"")
    assert b"is held by agent-b" in done.printed


def test_a_slow_server_keeps_only_the_hook_that_asks_it(machine: Machine) -> None:
    machine.start_daemon()
    with ScriptedServer(verdict(HELD)) as server:
        with ScriptedServer(hangs) as slow:
            waiting = machine.asking(WRITE, CTRLB_URL=slow.url)
            wait_until(lambda: len(slow.requests) == 1)
            assert machine.before_edit(WRITE, CTRLB_URL=server.url).output["additionalContext"]
            assert waiting.poll() is None
        assert waiting.communicate(timeout=TIMEOUT_S) == (b"", b"")
        machine.close()


def test_what_no_hook_sends_does_no_harm(machine: Machine) -> None:
    pid = machine.start_daemon()
    good = hook.message("claude", b"{}", {})
    for sent in (
        b"",
        b"\0",
        b"\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(100_000),
        b"x" * (daemon.MAX_HEAD_BYTES + 100_000),
        b"claude\x00soon\x002\0\0{}",
        b"claude\x000.5\0-2\0\0{}",
        b"claude\x000.5\x0099999999999\0\0{}",
        b"claude\x00nan\x002\0\0{}",
        b"\xff\xfe\x001\x002\0\0{}",
        good[:-1],
        good + b"more",
        hook.message("claude", b"[" * 1_000_000, {}),
    ):
        with machine.connection() as caller:
            try:
                caller.sendall(sent)
                caller.shutdown(socket.SHUT_WR)
                while caller.recv(65_536):
                    pass
            except ConnectionError:  # it did not read to the end
                pass
    with ScriptedServer(verdict(HELD)) as server:
        assert machine.before_edit(WRITE, CTRLB_URL=server.url).output["additionalContext"]
        machine.close()
    assert server.connections == 1
    assert has_ended(pid)


def test_callers_that_say_nothing_do_not_keep_the_others_out(machine: Machine) -> None:
    machine.start_daemon()
    silent = [machine.connection() for _ in range(daemon.MAX_JOBS + 8)]
    with ScriptedServer(verdict(HELD)) as server:
        done = machine.before_edit(WRITE, CTRLB_URL=server.url)
        for caller in silent:
            caller.close()
        machine.close()
    assert done.output["additionalContext"]


def test_it_ends_when_nobody_asks_any_more(machine: Machine) -> None:
    machine.environ["CTRLB_AGENT_IDLE_S"] = "0.3"
    machine.spawn_daemon().wait(TIMEOUT_S)
    wait_until(lambda: (machine.state / os.fsdecode(hook.LOCK)).exists())
    wait_until(lambda: not machine.daemons())
    assert not (machine.state / os.fsdecode(hook.SOCKET)).exists()
    assert machine.log() == ""


def test_it_ends_when_its_folder_was_removed(machine: Machine) -> None:
    pid = machine.start_daemon()
    with machine.connection() as caller:
        for file in machine.state.iterdir():
            file.unlink()
        machine.state.rmdir()
        caller.sendall(b"\0\0")  # it looks whenever somebody has called
    assert has_ended(pid)


def test_a_request_that_got_stuck_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agent_home: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with daemon.listening() as listener:
        serving = daemon.Daemon(listener, idle_s=60)
        monkeypatch.setattr(daemon, "OVERDUE_S", -1.0)
        serving._jobs[object()] = time.monotonic()
        serving.serve()
    assert "a request got stuck" in logged(agent_home)


def make_old(machine: Machine) -> None:
    """Let the last start of a background process be long ago, so that another may be started."""
    os.utime(machine.state / os.fsdecode(hook.LOCK), (0, 0))
