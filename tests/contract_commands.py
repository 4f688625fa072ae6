"""The commands of the contract's HTTP document, run by a real curl."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

COMMANDS = Path(__file__).parent / "data" / "contract_commands.txt"
NAMES = ("upload", "search", "post", "peers", "claim", "release", "check")


class ContractCommands:
    """The document's commands by name, with its two placeholders filled in, and its ids where others are given."""

    def __init__(self, url: str, key: str, **ids: str) -> None:
        if shutil.which("curl") is None:
            pytest.skip("there is no curl on this machine")
        text = COMMANDS.read_text().replace("<your CtrlB URL>", url).replace("<your key>", key)
        for old, new in ids.items():
            text = text.replace(old.replace("_", "-"), new)
        self._commands = dict(zip(NAMES, text.strip().split("\n\n"), strict=True))

    def run(self, name: str) -> tuple[int, dict[str, Any]]:
        """The status and the answer of one command, which is run as it is written."""
        script = self._commands[name] + " -w '\\n%{http_code}'"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
        body, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(body)
