"""An emulator of AWS on this machine: MiniStack, one process on a free loopback port, everything in memory."""

import os
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".venv-emulator" / "bin" / "ministack"
START_TIMEOUT_S = 180
POLL_S = 0.05
STOP_TIMEOUT_S = 20
START_ATTEMPTS = 3
LOG_TAIL_CHARS = 3_000
REGION = "eu-central-1"


class ToolMissing(Exception):
    """The emulator is not installed; the text says how it is."""


class Emulator:
    """An emulator that runs from its making to `stop`."""

    url: str

    def __init__(self, folder: Path, **settings: str) -> None:
        """Start it with its log in `folder`, and with settings of its own. Raises ToolMissing, or RuntimeError."""
        if not PROGRAM.exists():
            raise ToolMissing("the emulator is not installed: `make test-emulator` does that")
        self._log = folder / "emulator.log"
        for attempts_left in reversed(range(START_ATTEMPTS)):
            try:
                self._start(folder, settings)
                break
            except RuntimeError:
                if not attempts_left:
                    raise

    def _start(self, folder: Path, settings: dict[str, str]) -> None:
        """Start it on a port that is free at the moment: it takes no listening socket, and ends when it is too late."""
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        settings |= {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SFTP_ENABLED": "0", "IOT_MTLS_ENABLED": "0"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [PROGRAM], env={**os.environ, **settings}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """What the SDK reads to come here, in this process or another."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def faults(self) -> str:
        """What its log says went wrong."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if " ERROR " in line)[-LOG_TAIL_CHARS:]

    def stop(self) -> None:
        """End the process, and with it all that it kept."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_until_it_answers(self) -> None:
        pause = threading.Event()
        for _ in range(int(START_TIMEOUT_S / POLL_S)):
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=START_TIMEOUT_S):
                    return
            except urllib.error.URLError:
                pause.wait(POLL_S)
        log = self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        raise RuntimeError(f"the emulator did not start; its log ends with:\n{log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
