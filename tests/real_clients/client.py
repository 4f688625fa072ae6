"""What both clients are run with: a home of their own, a checkout, and nothing of this machine's accounts."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.real_clients.script import Json

PROJECT = Path(__file__).resolve().parents[2]
AGENT = PROJECT / "agent"
INSTALLED = Path(__file__).parent / "node_modules"
RUN_TIMEOUT_S = 300.0


class Ended(NamedTuple):
    """A client that ran to its end."""

    status: int
    stdout: str
    stderr: str

    @property
    def events(self) -> list[Json]:
        """The JSON lines that it printed."""
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]

    @property
    def session_id(self) -> str:
        """The session of Claude Code, or the thread of Codex, that it was."""
        return str(self.events[-1].get("session_id") or self.events[0]["thread_id"])


@dataclass(frozen=True)
class Client:
    """A client as one user has it: its program, the user's home and checkout, and the model it speaks to."""

    program: Path
    home: Path
    checkout: Path
    model_url: str
    environ: dict[str, str] = field(default_factory=dict)
    """What the user has exported, such as CTRLB_URL."""

    def run(self, *arguments: str, environ: Mapping[str, str] = {}) -> Ended:
        """Run the program in the checkout. Raises TimeoutExpired when it takes longer than RUN_TIMEOUT_S."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.checkout,
            env={**self.own_environ(), **self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def own_environ(self) -> dict[str, str]:
        """What the program needs, and nothing that says who runs the tests."""
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb"}


def installed_program(program: Path) -> Path:
    """The program, or AssertionError when npm has not installed it."""
    assert program.exists(), f"{program} is missing: `make test-clients` installs it"
    return program


def running_in(home: Path) -> list[int]:
    """The ids of the processes that were started with this home, such as one that outlives its client."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            inherited = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is somebody else's
        if f"HOME={home}".encode() in inherited:
            found.append(int(entry.name))
    return found


def end_what_runs_in(home: Path) -> None:
    """End every process that was started with this home."""
    for pid in running_in(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def new_checkout(folder: Path) -> Path:
    """Make a git checkout with one file, app.py."""
    folder.mkdir(parents=True)
    (folder / "app.py").write_text("x = 1\nprint(x)\n")
    return committed(folder)


def committed(folder: Path) -> Path:
    """Make the folder a git checkout of what is in it."""
    git = ["git", "-c", "user.name=Dev", "-c", "user.email=dev@example.com", "-c", "init.defaultBranch=main"]
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "Begin"]):
        subprocess.run([*git, *command], cwd=folder, env=environ, check=True)
    return folder
