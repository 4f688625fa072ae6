"""The examples of docs/api.md and README.md run as they stand, and answer what is written below them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import PROJECT, Example, examples
from tests.laptop_mode.conftest import running

CHANGING = frozenset(
    {"ts", "started", "last", "first", "lease_until", "age_s", "created", "expires", "revoked", "last_used"}
    | {"token", "key_id", "credential", "credential_id", "version", "next_cursor"}
)
"""Fields that are another value each time: only their kind counts."""


def run_examples(found: list[Example], folder: Path) -> list[tuple[int, str]]:
    """Run the scripts in one shell, in order, in a folder that has the server's `.ctrlb`: status and output of each."""
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    script = "set -e\ncurl() { command curl -w '%{stderr}%{http_code}\\n' \"$@\"; }\n"
    for number, example in enumerate(found):
        script += f"{{\n{example.script}}} >out.{number} 2>err.{number}\n"
    subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "shared")},
        timeout=120,
        check=True,
    )
    outputs = [(folder / f"out.{number}").read_text() for number in range(len(found))]
    statuses = [(folder / f"err.{number}").read_text().split()[-1] for number in range(len(found))]
    return [(int(status), output) for status, output in zip(statuses, outputs, strict=True)]


def comparable(value: Any, name: str = "") -> Any:
    """The answer with the kinds of the fields that change in place of their values."""
    if isinstance(value, dict):
        return {field: comparable(content, field) for field, content in value.items()}
    if isinstance(value, list):
        return [comparable(item, name) for item in value]
    if name in CHANGING or (isinstance(value, str) and value.startswith("ctrlb_")):
        return type(value).__name__
    return value


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
@pytest.mark.parametrize("document", ["docs/api.md", "README.md"])
def test_each_example_answers_what_the_document_says(document: str, tmp_path: Path) -> None:
    found = examples((PROJECT / document).read_text())
    assert found, "no block of bash is left to run"
    with running(tmp_path / ".ctrlb"):
        answered = run_examples(found, tmp_path)
    for example, (status, output) in zip(found, answered, strict=True):
        if example.answer is None:
            assert status < 400, example.script
        else:
            assert status == example.status, example.script
            assert comparable(json.loads(output)) == comparable(json.loads(example.answer)), example.script
