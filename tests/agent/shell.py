"""A shell in a checkout, in which several agents use the command line."""

import subprocess
from pathlib import Path

from tests.agent.programs import ctrlb, environment
from tests.laptop import Laptop

Done = subprocess.CompletedProcess[str]


class Shell:
    """A checkout with two agents in it."""

    def __init__(self, folder: Path, laptop: Laptop, run: str) -> None:
        self.home = folder
        self.root = folder / "app"
        (self.root / ".git").mkdir(parents=True)
        (self.root / "src").mkdir()
        (self.root / "src" / "app.py").write_text("")
        self.laptop = laptop
        self.run = run

    def __call__(self, agent: str, *arguments: str, cwd: str = ".") -> Done:
        environ = environment(self.home, self.laptop, CTRLB_RUN=self.run, CTRLB_AGENT=agent)
        return ctrlb(*arguments, environ=environ, cwd=self.root / cwd)
