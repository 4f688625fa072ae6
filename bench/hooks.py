"""The hook before an edit: what an agent waits for, as a whole process, beside a bare start of the same interpreter."""

import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.load import HOST, request
from bench.report import Line, say, table
from bench.servers import PRODUCT, PROJECT, Server
from ctrlb.domain.rows import Audit
from ctrlb.laptop import WORKSPACE
from ctrlb.wiring import embedded

BEGIN = "<!-- hooks: written by `make bench` -->"
END = "<!-- end of hooks -->"
MOST_TIMES_FLOOR = 2.0
ROUNDS = 200
QUICK_ROUNDS = 20
WARM_UP = 3
START_TIMEOUT_S = 30.0
SCRIPT = PROJECT / "agent" / "hooks" / "ctrlb-hook"
RUN = "bench"
ANSWER_BYTES = 1 << 16


def measure(folder: Path, quick: bool) -> str:
    """Rounds in which every kind of hook, the bare interpreter and the bare request take their turns."""
    server_folder = folder / "hooks-server"
    with Server(PRODUCT, server_folder):
        pass  # makes the folder, with its first key
    _refuse_edits(server_folder)
    with Server(PRODUCT, server_folder) as server, _user(folder, server) as user:
        rounds = [user.round() for _ in range(WARM_UP + (QUICK_ROUNDS if quick else ROUNDS))][WARM_UP:]
    say(f"hooks: {len(rounds)} rounds")
    return table(_lines(rounds), quick)


class _User:
    """A user's machine that is set up for the server."""

    def __init__(self, folder: Path, server: Server, caller: socket.socket) -> None:
        folder = folder / "user"
        (folder / ".git").mkdir(parents=True)  # a checkout, and the root of its paths
        self._python = os.path.realpath(sys.executable)
        self._folder = folder
        self._caller = caller
        self._check = request(
            "POST",
            f"/ai/relay/agent_sessions/runs/{RUN}/check",
            server.key,
            json.dumps({"agent": "agent-a", "paths": ["free.py"], "cwd": str(folder)}).encode(),
        )
        base = {"PATH": os.environ["PATH"], "HOME": str(folder), "CTRLB_RUN": RUN, "CTRLB_AGENT": "agent-a"}
        self._environ = {**base, "CTRLB_URL": f"http://{HOST}:{server.port}", "CTRLB_KEY": server.key}
        self._kept, self._unkept = self._state("kept"), self._state("unkept")
        for name, tool_input in {
            "free": {"file_path": str(folder / "free.py"), "content": "x" * 2_000},
            "held": {"file_path": str(folder / "held.py"), "content": "x" * 2_000},
            "shell": {"command": "make test"},
        }.items():
            tool = "Bash" if name == "shell" else "Write"
            sent = {"session_id": "bench", "cwd": str(folder), "hook_event_name": "PreToolUse", "tool_name": tool}
            (folder / f"{name}.json").write_text(json.dumps({**sent, "tool_input": tool_input}))

    def warm_up(self) -> None:
        """Have another agent hold a file, and the background process started."""
        claim = json.dumps({"agent": "agent-b", "resource": "held.py"}).encode()
        target = f"/ai/relay/agent_sessions/runs/{RUN}/claims"
        self._ask(request("POST", target, self._environ["CTRLB_KEY"], claim), b'"held":true')
        self._hook_ms("free", self._kept)
        give_up_s = time.monotonic() + START_TIMEOUT_S
        while not list(self._kept.glob("*.sock")):
            if time.monotonic() > give_up_s:
                raise RuntimeError("the background process did not start")
            time.sleep(0.01)

    def round(self) -> dict[str, float]:
        """What each took this time, in ms."""
        return {
            "python": self._run_ms([self._python, "-I", "-S", "-c", "pass"], Path(os.devnull), self._kept),
            "request": self._request_ms(),
            "allowed": self._hook_ms("free", self._kept),
            "refused": self._hook_ms("held", self._kept, printed=True),
            "shell": self._hook_ms("shell", self._kept),
            "alone": self._alone_ms(),
        }

    def _alone_ms(self) -> float:
        """A hook that finds no background process, and starts none since one seems to be starting."""
        (self._unkept / next(self._kept.glob("daemon-*.lock")).name).touch()
        return self._hook_ms("free", self._unkept)

    def _state(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        (folder / "python").write_text(f"{self._python}\n")
        return folder

    def _hook_ms(self, name: str, state: Path, *, printed: bool = False) -> float:
        return self._run_ms(
            [str(SCRIPT), "claude", "PreToolUse"], self._folder / f"{name}.json", state, printed=printed
        )

    def _run_ms(self, command: list[str], stdin: Path, state: Path, *, printed: bool = False) -> float:
        output = self._folder / "output"
        files = [
            (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        environ = {**self._environ, "CTRLB_AGENT_HOME": str(state)}
        started_s = time.perf_counter()
        process = os.posix_spawn(command[0], command, environ, file_actions=files)
        _, status = os.waitpid(process, 0)
        took_ms = (time.perf_counter() - started_s) * 1_000
        if status != 0 or (output.stat().st_size > 0) != printed:
            raise RuntimeError(f"{' '.join(command)} answered something else than what is measured")
        return took_ms

    def _request_ms(self) -> float:
        started_s = time.perf_counter()
        self._ask(self._check, b'"conflicts":[]')
        return (time.perf_counter() - started_s) * 1_000

    def _ask(self, sent: bytes, expected: bytes) -> None:
        """One request on the kept connection, whose answer ends with its JSON."""
        self._caller.sendall(sent)
        answer = b""
        while not answer.endswith(b"}"):
            chunk = self._caller.recv(ANSWER_BYTES)
            if not chunk:
                break
            answer += chunk
        if expected not in answer:
            raise RuntimeError(f"the server answered something else than what is measured: {answer!r}")


@contextmanager
def _user(folder: Path, server: Server) -> Iterator[_User]:
    """A user's machine, whose background process ends by itself when its folder has gone."""
    with socket.create_connection((HOST, server.port)) as caller:
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        user = _User(folder, server, caller)
        user.warm_up()
        yield user


def _lines(rounds: list[dict[str, float]]) -> list[Line]:
    """A hook's ratio is what it takes beside its request, over the bare interpreter's start of the same round."""
    aim = f"≤ {MOST_TIMES_FLOOR:.0f} of the floor + a request"
    return [
        _line("edit, allowed", "allowed", rounds, aim),
        _line("edit, refused", "refused", rounds, aim),
        _line("shell command, no edit", "shell", rounds, "", requests=0),
        _line("edit, no background process", "alone", rounds, ""),
        Line("the request alone, on a kept connection", f"{statistics.median(one['request'] for one in rounds):.2f}"),
    ]


def _line(what: str, name: str, rounds: list[dict[str, float]], aim: str, requests: int = 1) -> Line:
    ratio = statistics.median((one[name] - requests * one["request"]) / one["python"] for one in rounds)
    return Line(
        f"hook before a tool call: {what}",
        f"{statistics.median(one[name] for one in rounds):.2f}",
        f"{statistics.median(one['python'] for one in rounds):.2f}",
        f"{ratio:.2f}",
        aim,
        ratio <= MOST_TIMES_FLOOR if aim else None,
    )


def _refuse_edits(folder: Path) -> None:
    with embedded(folder) as stores:
        audit = Audit(WORKSPACE, stores.clock.now_us(), "bench", "change_settings", "", "enforce: enforce")
        before = stores.identity.settings(WORKSPACE)
        stores.identity.change_settings(WORKSPACE, before, replace(before, enforce="enforce"), None, audit)
