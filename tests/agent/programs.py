"""The agents' side as processes: the command line, with an environment that the test gives whole."""

import os
import subprocess
import sys
from pathlib import Path

from tests.laptop import Laptop

AGENT = Path(__file__).resolve().parents[2] / "agent"
PYTHON = os.environ.get("CTRLB_AGENT_PYTHON", sys.executable)
"""The Python that runs the agents' side, which may be older than the tests' own."""

TIMEOUT_S = 60.0


def environment(home: Path, laptop: Laptop | None = None, /, **more: str) -> dict[str, str]:
    """An environment without anything of the test's own: a home, and how to reach the server."""
    base = {"PATH": os.environ["PATH"], "HOME": str(home), "CTRLB_AGENT_HOME": str(home / "state")}
    server = {"CTRLB_URL": laptop.url, "CTRLB_KEY": laptop.key} if laptop else {}
    return {**base, **server, **more}


def logged(state: Path) -> str:
    """What the agents' side wrote down in its folder."""
    file = state / "agent.log"
    return file.read_text() if file.exists() else ""


def ctrlb(*arguments: str, environ: dict[str, str], cwd: Path, sent: str = "") -> subprocess.CompletedProcess[str]:
    """Run `python -m ctrlb_agent` as a script would."""
    return subprocess.run(
        [PYTHON, str(AGENT / "ctrlb_agent"), *arguments],
        cwd=cwd,
        env=environ,
        input=sent,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
