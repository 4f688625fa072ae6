"""Hooks as processes: the real script, with an input that a client really sent, on a machine of the test's own."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctrlb_agent import hook as hook_module
from tests.agent.patience import patient_agent
from tests.agent.programs import PYTHON, TIMEOUT_S, environment, logged
from tests.agent.recorded import DATA

POLL_S = 0.01
SPARE_S = 30.0
"""What a busy machine may take beside what a hook gives itself; a test that hangs hangs for longer."""

IDLE_S = "180"


@dataclass(frozen=True)
class Finished:
    """A hook that has ended."""

    status: int
    printed: bytes
    errors: bytes
    took_s: float

    @property
    def output(self) -> dict[str, Any]:
        """What the client reads: the fields of `hookSpecificOutput`."""
        whole = json.loads(self.printed)
        assert list(whole) == ["hookSpecificOutput"]
        said: dict[str, Any] = whole["hookSpecificOutput"]
        return said

    @property
    def is_silent(self) -> bool:
        """Whether the client goes on as if there were no hook."""
        return (self.status, self.printed, self.errors) == (0, b"", b"")


def recorded(client: str, name: str, **changes: Any) -> dict[str, Any]:
    """The input that the client sent, with other top-level fields if the test needs them."""
    sent: dict[str, Any] = json.loads((DATA / client / "hooks" / f"{name}.json").read_text())
    return {**sent, **changes}


def recorded_names(client: str, event: str) -> list[str]:
    """The names of all recorded inputs of the event."""
    return sorted(file.stem for file in (DATA / client / "hooks").glob(f"{event}*.json"))


def write_of(path: str | Path, cwd: str | Path, **more: Any) -> dict[str, Any]:
    """Claude Code's input for writing the file, in a session of its own."""
    sent = recorded("claude", "PreToolUse-Write", cwd=str(cwd), tool_input={"file_path": str(path)})
    return {**sent, "session_id": str(uuid.uuid4()), **more}


class Machine:
    """A user's home, in which hooks run. Whatever background process they start ends with it."""

    agent: Path
    """Where the agents' side is installed. It is one that gives itself more time, unless a test says otherwise."""

    def __init__(self, folder: Path, url: str = "", key: str = "a-key", **environ: str) -> None:
        self.agent = patient_agent()
        self.home = folder
        self.state = folder / "state"
        self.state.mkdir(mode=0o700, parents=True)
        (self.state / "python").write_text(f"{os.path.realpath(PYTHON)}\n")
        who = {"CTRLB_URL": url, "CTRLB_KEY": key, "CTRLB_RUN": "run-123", "CTRLB_AGENT": "agent-7"}
        self.environ = environment(folder, CTRLB_AGENT_IDLE_S=IDLE_S, **{**who, **environ})

    def command(self, client: str, event: str) -> list[str]:
        """The command line that the clients' configuration has."""
        return [str(self.agent / "hooks" / "ctrlb-hook"), client, event]

    def run(self, client: str, event: str, sent: dict[str, Any] | bytes, **environ: str) -> Finished:
        """Run one hook to its end."""
        began_s = time.monotonic()
        process = self.start(client, event, **environ)
        printed, errors = process.communicate(sent if isinstance(sent, bytes) else encoded(sent), TIMEOUT_S)
        return Finished(process.returncode, printed, errors, time.monotonic() - began_s)

    def before_edit(self, sent: dict[str, Any] | bytes, client: str = "claude", **environ: str) -> Finished:
        """Run the hook before a tool call."""
        return self.run(client, "PreToolUse", sent, **environ)

    def start(self, client: str, event: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Start one hook, which waits for its input."""
        return subprocess.Popen(
            self.command(client, event),
            cwd=self.home,
            env={**self.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def asking(self, sent: dict[str, Any], **environ: str) -> "subprocess.Popen[bytes]":
        """A hook before an edit that has its input, and is waiting for a server."""
        process = self.start("claude", "PreToolUse", **environ)
        assert process.stdin
        process.stdin.write(encoded(sent))
        process.stdin.close()
        process.stdin = None
        return process

    def start_daemon(self) -> int:
        """Start the background process as a hook does, wait until it listens, and return its process id."""
        self.spawn_daemon().wait(TIMEOUT_S)
        wait_until(lambda: self.daemon_pid() > 0)
        return self.daemon_pid()

    def spawn_daemon(self) -> "subprocess.Popen[bytes]":
        """A short-lived process that starts the background process and ends."""
        code = "import sys; sys.path.insert(0, sys.argv[1]); from ctrlb_agent import hook; hook.start_daemon()"
        return subprocess.Popen([PYTHON, "-I", "-S", "-c", code, str(self.agent)], env=self.environ)

    def daemon_pid(self) -> int:
        """The id of the background process that listens, or 0."""
        try:
            with self.connection() as caller:
                pid, _, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return 0
        return int(pid)

    def connection(self) -> socket.socket:
        """A connection to the background process. Raises OSError when none listens."""
        caller = socket.socket(socket.AF_UNIX)
        folder = os.open(self.state, os.O_RDONLY)
        try:
            caller.settimeout(TIMEOUT_S)
            caller.connect(f"/proc/self/fd/{folder}/{hook_module.SOCKET.decode()}")
        except OSError:
            caller.close()
            raise
        finally:
            os.close(folder)
        return caller

    @contextmanager
    def planted_socket(self) -> Iterator[socket.socket]:
        """A socket where the background process would listen, which is asked for no caller yet."""
        folder = os.open(self.state, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as planted:
            planted.bind(f"/proc/self/fd/{folder}/{hook_module.SOCKET.decode()}")
            planted.listen()
            planted.setblocking(False)
            yield planted
        os.close(folder)

    def log(self) -> str:
        """What the hooks wrote down."""
        return logged(self.state)

    def close(self) -> None:
        """End what runs in the background. What is just about to start ends by itself a little later."""
        for pid in self.daemons():
            kill(pid)

    def daemons(self) -> list[int]:
        """The ids of the background processes, also of those that only find out that there is one."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_one = b"daemon.main()" in (process / "cmdline").read_bytes()
                if is_one and os.fsencode(self.state) in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
        return found


def encoded(sent: dict[str, Any]) -> bytes:
    """The input as the clients write it."""
    return json.dumps(sent, ensure_ascii=False).encode("utf-8", "surrogatepass")


def kill(pid: int) -> None:
    """End a process at once and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    assert has_ended(pid)


def has_ended(pid: int, within_s: float = TIMEOUT_S) -> bool:
    """Whether the process ends by itself in that time."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within_s)[0])
    finally:
        os.close(watched)


def wait_until(condition: Callable[[], bool], within_s: float = TIMEOUT_S) -> None:
    """Wait for what another process does. Raises AssertionError when it does not."""
    give_up_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up_s, "it did not happen in time"
        threading.Event().wait(POLL_S)
