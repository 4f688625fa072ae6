"""A laptop-mode server as a process of its own, for tests that speak to it as a client would."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from ctrlb.laptop import variables

PROJECT = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = STOP_TIMEOUT_S = 120.0
SERVER = """
import runpy
from tests import server_limits
server_limits.extend_by_the_clock()
{changes}
runpy.run_module("ctrlb", run_name="__main__", alter_sys=True)
"""
"""`python -m ctrlb` that takes its time."""
SERVER_PYTHON = os.environ.get("CTRLB_TEST_PYTHON", sys.executable)
"""The Python that serves, which may be another than the tests' own."""


class Laptop:
    """`python -m ctrlb serve` on a free port and a folder of the test's."""

    def __init__(self, folder: Path, port: int = 0, changes: str = "") -> None:
        """`changes` is Python that the server runs before it starts."""
        self.folder = folder
        self.process = subprocess.Popen(
            [SERVER_PYTHON, "-c", SERVER.format(changes=changes), "serve", "--port", str(port), "--data", str(folder)],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT / "shared")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            self.greeting = self._read_greeting()
        except BaseException:
            self.kill()
            raise
        self.url = variables(folder)["CTRLB_URL"]
        self.key = variables(folder).get("CTRLB_KEY", "")

    @property
    def sign_in_code(self) -> str:
        """The one-time code of the sign-in link that was printed."""
        match = re.search(r"#code=(\w+)", self.greeting)
        assert match, self.greeting
        return match[1]

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Interrupt it as Ctrl-C does, and return its exit status."""
        return self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(timeout=STOP_TIMEOUT_S)
        self._output.close()
        return status

    @property
    def _output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def _read_greeting(self) -> str:
        """What it prints up to its last line. Raises AssertionError when it does not get so far."""
        printed = b""
        give_up_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < give_up_s and not re.search(rb"^The log is in .*\n", printed, re.MULTILINE):
            ready, _, _ = select.select([self._output], [], [], 1.0)
            if ready:
                chunk = os.read(self._output.fileno(), 65_536)  # past the buffer, which select does not see
                if not chunk:
                    break
                printed += chunk
        greeting = printed.decode()
        assert "is ready at" in greeting, greeting
        return greeting
