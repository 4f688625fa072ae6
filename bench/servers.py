"""The servers that are measured, each a process of its own on a free port and in a folder of its own."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from bench.load import HOST
from ctrlb.laptop import variables

PROJECT = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
PRODUCT = "ctrlb", "serve"
FLOOR = "bench.floor", "serve"


class Server:
    """A server, from its start to its end."""

    def __init__(self, command: tuple[str, str], folder: Path) -> None:
        """Start it and wait for its first answer."""
        self.folder = folder
        self.port = _free_port()
        module, verb = command
        paths = f"{PROJECT / 'shared'}{os.pathsep}{PROJECT}"
        started_s = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, verb, "--port", str(self.port), "--data", str(folder)],
            # As `make run` has it, but for the limit of requests, which is counted and never met.
            env={**os.environ, "PYTHONPATH": paths, "MALLOC_ARENA_MAX": "2", "REQUESTS_PER_S": "1000000"},
            stdout=subprocess.DEVNULL,
        )
        self._wait_for_health(started_s + START_TIMEOUT_S)
        self.ready_s = time.perf_counter() - started_s
        """From the start of the process to its first answer."""

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(STOP_TIMEOUT_S)

    @property
    def key(self) -> str:
        """The first key of the product's folder; the floor asks for none."""
        return variables(self.folder).get("CTRLB_KEY", "")

    def memory_mb(self) -> float:
        """The resident memory of the process, in MB."""
        status = Path(f"/proc/{self.process.pid}/status")
        if status.exists():
            found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
            kib = found[1] if found else "0"
        else:
            kib = subprocess.check_output(["ps", "-o", "rss=", "-p", str(self.process.pid)], text=True)
        return int(kib) * 1_024 / 1_000_000

    def _wait_for_health(self, give_up_s: float) -> None:
        while time.perf_counter() < give_up_s and self.process.poll() is None:
            try:
                connection = http.client.HTTPConnection(HOST, self.port, timeout=START_TIMEOUT_S)
                connection.request("GET", "/health")
                connection.getresponse().read()
                connection.close()
            except ConnectionError:
                time.sleep(0.002)
            else:
                return
        raise RuntimeError("the server did not start; its own message stands above")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
