"""Whether the client's process still runs: by its id and the time it started, since ids are used again."""

from __future__ import annotations

import os

MAX_ANCESTORS = 12
PS_WAIT_S = 1.0


def client_pid(client: str) -> int:
    """The process id of the client that runs this hook: the nearest ancestor of its name; 0 when there is none."""
    pid = os.getppid()
    for _ in range(MAX_ANCESTORS):
        if pid <= 1:
            break
        name, parent = _name_and_parent(pid)
        if client in name:
            return pid
        pid = parent
    return 0


def started(pid: int) -> str:
    """When the process started, as the system tells it; an empty text when it does not, or no such process runs."""
    if os.path.isdir("/proc/self"):
        fields = _stat(pid)
        return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""
    return _ps(pid, "lstart=")


def is_running(pid: int, started_then: str) -> bool:
    """Whether that very process runs. Where its start is not known, whether any has its id."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # somebody else's
    return not started_then or started(pid) == started_then


def _name_and_parent(pid: int) -> tuple[str, int]:
    """What the process is called (of a script under node, the script's file), and its parent's id. ("", 0): unknown."""
    if os.path.isdir("/proc/self"):
        fields = _stat(pid)
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                words = stream.read(4096).decode("utf-8", "replace").split("\0")
        except OSError:
            words = []
        return _called(words), int(fields[1]) if len(fields) > 1 else 0
    parent, _, command = _ps(pid, "ppid=,command=").partition(" ")
    return _called(command.split()), int(parent) if parent.isdecimal() else 0


def _called(words: list[str]) -> str:
    name = os.path.basename(words[0]) if words else ""
    if name in ("node", "bun") and len(words) > 1:
        return os.path.basename(words[1])
    return name


def _stat(pid: int) -> list[str]:
    """The fields of the process after its name, from its state on; none when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []


def _ps(pid: int, columns: str) -> str:
    import subprocess

    try:
        said = subprocess.run(
            ["/bin/ps", "-o", columns, "-p", str(pid)],
            capture_output=True,
            check=False,
            timeout=PS_WAIT_S,
            env={"LC_ALL": "C", "TZ": "UTC0"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return " ".join(said.stdout.decode("utf-8", "replace").split())
