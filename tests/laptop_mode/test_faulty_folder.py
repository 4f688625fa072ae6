"""What is wrong with the folder or the command line is said in one line, and the exit status is not 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.laptop import PROJECT


def ctrlb(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ctrlb", *arguments],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "shared")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    done = ctrlb("serve", f"--port={port}")
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("relay.db", b"this is no database, it is only a text\n" * 100, id="no database"),
        pytest.param("ctrlb.env", b"CTRLB_KEY='without an end", id="no variables"),
        pytest.param("ctrlb.env", b"\xff\xfe", id="no text"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    done = ctrlb("serve", "--port", "0", "--data", str(tmp_path))
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("ctrlb: ")
    assert str(tmp_path / name) in line
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("name", ["", "a" * 101])
def test_a_key_needs_a_name_of_a_sensible_length(tmp_path: Path, name: str) -> None:
    (tmp_path / "ctrlb.env").touch()
    done = ctrlb("keys", "create", "--name", name, "--data", str(tmp_path))
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("ctrlb: name: ")
