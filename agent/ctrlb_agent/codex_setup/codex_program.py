"""The program `codex`: where it is, what it says of a config.toml, and its app-server. Every wait has a limit."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import __version__
from ctrlb_agent.codex_setup.codex_file import NAME
from ctrlb_agent.json_values import object_of, parsed

if TYPE_CHECKING:
    from types import TracebackType

DEADLINE_S = 20.0
LEAVE_S = 2.0
MAX_LINE_BYTES = 16 << 20
OLD_TRIAL_S = 600.0
_TRIAL = "ctrlb-agent-"
STRICT, LOADS, BROKEN = 2, 1, 0
"""What Codex makes of a file: knows every key of it, starts with it all the same, or does not start."""

_NOT_FOR_A_CHECK = (NAME, "auth.json", "mcp-oauth-locks")
"""What a trial's folder has not of the user's: its own config, and nothing to sign in or lock with."""


class CodexFailed(Exception):
    """Codex is not here, did not answer in time, or answered with an error. The text says which."""


class Verdict(NamedTuple):
    """What Codex makes of a file: STRICT, LOADS or BROKEN, and why not the better."""

    level: int
    reason: str = ""


def found() -> str | None:
    """The path of the program, or None when PATH does not lead to one."""
    return shutil.which("codex")


def verdict(program: str, text: str, codex_home: str) -> Verdict:
    """What Codex makes of this text as its config.toml, tried in a folder aside. Raises CodexFailed.

    Files that the config may name by relative paths are there by links.
    """
    _remove_old_trials()
    with tempfile.TemporaryDirectory(prefix=_TRIAL) as trial:
        for name in os.listdir(codex_home) if os.path.isdir(codex_home) else ():
            if name not in _NOT_FOR_A_CHECK and ".sqlite" not in name:
                os.symlink(os.path.join(os.path.abspath(codex_home), name), os.path.join(trial, name))
        with open(os.path.join(trial, NAME), "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        strict = _run([program, "app-server", "--strict-config", "--print-startup-config"], trial)
        if strict.returncode == 0:
            return Verdict(STRICT)
        loads = _run([program, "mcp", "list"], trial)
        if loads.returncode == 0:
            return Verdict(LOADS, _strict_reason(strict.stdout).replace(trial, codex_home))
        return Verdict(BROKEN, _last_words(loads.stderr).replace(trial, codex_home))


def _remove_old_trials() -> None:
    """Remove the folders of trials that were killed, each with a copy of config.toml."""
    for entry in os.scandir(tempfile.gettempdir()):
        try:
            status = entry.stat(follow_symlinks=False)
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        except OSError:
            continue  # somebody else removed it
        if entry.name.startswith(_TRIAL) and is_ours and time.time() - status.st_mtime > OLD_TRIAL_S:
            shutil.rmtree(entry.path, ignore_errors=True)


class AppServer:
    """`codex app-server` with the user's folder, for a few calls. All of them share one deadline."""

    def __init__(self, program: str, codex_home: str) -> None:
        self._give_up_s = time.monotonic() + DEADLINE_S
        self._process = _started([program, "app-server"], codex_home)
        self._unread = b""
        self._number = 0

    def __enter__(self) -> AppServer:
        try:
            self.call("initialize", {"clientInfo": {"name": "ctrlb-agent", "version": __version__}})
            self._send({"method": "initialized"})
        except BaseException:
            _ended(self._process)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()  # it ends by itself then
            self._process.wait(LEAVE_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            return
        finally:
            _ended(self._process)

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The call's result. Raises CodexFailed."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            said = self._line()
            if said.get("id") != self._number or "method" in said:
                continue  # a notification, or a question to a client that shows windows
            result = said.get("result")
            if isinstance(result, dict):
                return result
            words = object_of(said.get("error")).get("message")
            raise CodexFailed(f"codex app-server refuses {method}: {words or 'without a reason'}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise CodexFailed("codex app-server ended before it was asked") from error

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        number = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            left_s = self._give_up_s - time.monotonic()
            if left_s <= 0 or not select.select([number], [], [], left_s)[0]:
                raise CodexFailed("codex app-server did not answer in time")
            more = os.read(number, 1 << 16)
            if not more or len(self._unread) > MAX_LINE_BYTES:
                raise CodexFailed("codex app-server ended without an answer")
            self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        return object_of(parsed(line))


def _started(command: list[str], codex_home: str) -> subprocess.Popen[bytes]:
    """The program with its folder, in a process group of its own. Raises CodexFailed."""
    environ = {**os.environ, "CODEX_HOME": codex_home, "RUST_BACKTRACE": "0"}
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if command[1:] == ["app-server"] else subprocess.PIPE,
            cwd=codex_home,
            env=environ,
            start_new_session=True,  # a hung one is ended with all that it started
        )
    except OSError as error:
        raise CodexFailed(f"{command[0]} does not start: {error.strerror}") from error


def _run(command: list[str], codex_home: str) -> subprocess.CompletedProcess[str]:
    process = _started(command, codex_home)
    try:
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise CodexFailed(f"codex {' '.join(command[1:])} took longer than {DEADLINE_S:.0f} s") from None
    finally:
        _ended(process)
    words = [part.decode("utf-8", "replace") for part in (stdout, stderr)]
    return subprocess.CompletedProcess(command, process.returncode, *words)


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children, and close its pipes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.poll()  # it has ended by itself
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # what was still to be written to it
    process.wait()


def _strict_reason(stdout: str) -> str:
    try:
        return str(json.loads(stdout)["error"]["data"]["detail"])
    except (ValueError, KeyError, TypeError):
        return ""


def _last_words(stderr: str) -> str:
    """What Codex says of a file that it does not load, without its remarks on other things."""
    lines = [line.strip() for line in stderr.partition("Stack backtrace:")[0].splitlines()]
    said = [line for line in lines if line and line != "Caused by:" and not line.startswith("WARNING")]
    return " / ".join(said)
