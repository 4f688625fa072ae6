"""A user of Codex, for whom the installer runs as a process."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S

URL = "http://127.0.0.1:8080"
PLAIN_PATH = "/usr/bin:/bin"
OTEL = ("--otel", "--otel-endpoint", "https://o.example.com/_otel/v1/logs", "--otel-header")
ORIGINAL = 'model = "gpt-5.5"\n\n[tui]\nnotifications = true\n'


@dataclass(frozen=True)
class User:
    """Somebody with a home and, maybe, a config of Codex."""

    home: Path

    @property
    def config(self) -> Path:
        return self.home / ".codex" / "config.toml"

    @property
    def copies(self) -> list[Path]:
        """The copies of the config that were kept."""
        return sorted(self.config.parent.glob("config.toml.ctrlb-backup-*"))

    def environ(self, **more: str) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": PLAIN_PATH, "LANG": "C.UTF-8", **more}

    def install(
        self, *options: str, agent: Path = AGENT, codex: bool = True, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the installer."""
        return subprocess.run(
            [PYTHON, "-I", str(agent / "install.py"), *(["--codex"] if codex else []), *options],
            env=self.environ(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def files(self) -> dict[str, bytes]:
        """Everything below the home."""
        return {str(path.relative_to(self.home)): path.read_bytes() for path in self.home.rglob("*") if path.is_file()}


def program(folder: Path, script: str) -> Path:
    """Put a program named codex, a script of the shell, into the folder."""
    folder.mkdir()
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
