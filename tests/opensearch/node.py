"""A real OpenSearch node on this machine, put together from Maven Central's artifacts.

Its libraries (46 MB) are fetched once and kept in `.cache/opensearch`; a node is up in about three seconds
and takes up to a gigabyte. It listens on a free loopback port and keeps its data where it is told to.
"""

import hashlib
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "opensearch"
ASSEMBLY_TIMEOUT_S = 900
START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 20
LOG_TAIL_CHARS = 3_000
JAVA_FLAGS = (
    "-Xms256m",
    "-Xmx640m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # tests are over before the second compiler pays
    "-Dorg.apache.logging.log4j.level=WARN",
)


class ToolMissing(Exception):
    """Java or Maven is not installed; the text says which."""


class OpenSearchNode:
    """A node that runs from its making to `stop`, and never longer than this process."""

    url: str

    def __init__(self, folder: Path) -> None:
        """Start a node with its data in the empty `folder`. Raises ToolMissing, or RuntimeError with its log."""
        java = _tool("java", "a Java Development Kit, 17 or newer")
        libraries = assembled()
        self._log = folder / "node.log"
        command = [java, *JAVA_FLAGS, "-cp", f"{libraries}/*", str(HERE / "OsNode.java"), str(folder)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            self.url = self._address()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The node's process."""
        return self._process.pid

    def stop(self) -> None:
        """End the node; its data stays in the folder."""
        _close(self._process.stdin)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _close(self._process.stdout)

    def _address(self) -> str:
        """What the node prints once it answers."""
        assert self._process.stdout is not None
        answers, _, _ = select.select([self._process.stdout], [], [], START_TIMEOUT_S)
        if answers and (address := self._process.stdout.readline().decode().strip()):
            return address
        how = "ended" if answers else f"did not answer within {START_TIMEOUT_S} s"
        log = self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        raise RuntimeError(f"the OpenSearch node {how}; its log ends with:\n{log}")


def assembled() -> Path:
    """The folder with the node's libraries, fetched at the first call after a change of pom.xml.

    It gets its name once it is whole, so one that was given up halfway is never used.
    """
    pom = HERE / "pom.xml"
    libraries = CACHE / hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    if libraries.is_dir():
        return libraries
    maven = _tool("mvn", "Maven")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as unfinished:
        target = Path(unfinished) / "lib"
        command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASSEMBLY_TIMEOUT_S, check=False)
        if done.returncode:
            raise RuntimeError(f"Maven could not fetch the OpenSearch node:\n{done.stdout[-LOG_TAIL_CHARS:]}")
        try:
            target.rename(libraries)
        except OSError:
            if not libraries.is_dir():  # else another process was faster
                raise
    return libraries


def _tool(name: str, what: str) -> str:
    home = os.environ.get("JAVA_HOME") if name == "java" else None
    path = shutil.which(name, path=f"{home}/bin") if home else shutil.which(name)
    if path is None:
        raise ToolMissing(f"the OpenSearch tests need {what}: there is no `{name}` here")
    return path


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()
