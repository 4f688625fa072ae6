"""What the tests of uploads share: writing a transcript, uploading it, reading the log."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from ctrlb_agent import state
from ctrlb_agent.uploading import start, upload
from ctrlb_agent.uploading.transcript import Parser
from ctrlb_agent.uploading.upload import Report
from tests.agent.bad_road import BadRoad
from tests.agent.patience import patient_agent
from tests.agent.programs import PYTHON, TIMEOUT_S, environment, logged
from tests.agent.transcripts import Lines, line, settings
from tests.laptop import Laptop

PLENTY_S = 60.0


def uploaded(laptop: Laptop, *paths: Path, url: str = "", budget_s: float = PLENTY_S, parser: Parser = Lines) -> Report:
    """Upload what is new in the files."""
    return upload.upload([str(path) for path in paths], "script", settings(laptop, url), budget_s, parser=parser)


def log() -> str:
    """What the log says."""
    return logged(Path(state.home()))


def add(path: Path, *lines: bytes) -> None:
    """Append to the file."""
    with path.open("ab") as stream:
        stream.write(b"".join(lines))


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Lines of one block each."""
    return [line(f"text {number}") for number in range(start, start + count)]


def texts(count: int) -> list[str]:
    """The bodies of `numbered` lines."""
    return [f"text {number}" for number in range(count)]


class Machine:
    """A user's machine: one transcript, and the processes that upload it."""

    def __init__(self, home: Path, laptop: Laptop, road: BadRoad, session: str) -> None:
        self.transcript = home / "projects" / "-work-app" / f"{session}.jsonl"
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        self.environ = environment(home, CTRLB_AGENT_HOME=os.environ["CTRLB_AGENT_HOME"])
        self.environ |= {"CTRLB_URL": road.url, "CTRLB_KEY": laptop.key}
        self.said: list[str] = []

    def hook(self, event: str, **more: Any) -> dict[str, Any]:
        return {"hook_event_name": event, "transcript_path": str(self.transcript), **more}

    def say(self, text: str) -> bytes:
        """The line of a message, which is to be in the store in the end."""
        self.said.append(text)
        uuid = f"{self.transcript.stem}-{len(self.said)}"
        line = {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}
        return json.dumps(line).encode() + b"\n"

    def write(self, content: bytes) -> None:
        with self.transcript.open("ab") as stream:
            stream.write(content)

    def start(self, event: str, client: str = "claude", **more: Any) -> subprocess.Popen[bytes]:
        """The process that a hook starts, as a child of this one."""
        told = json.dumps(self.hook(event, **more))
        return subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", start.START, str(patient_agent()), client, told], env=self.environ
        )

    def run(self, event: str, **more: Any) -> None:
        """See that process through."""
        assert self.start(event, **more).wait(6 * TIMEOUT_S) == 0
