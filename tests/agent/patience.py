"""The agents' side with more time than it gives itself, for tests of what it says and not of when it gives up.

A hook gives an edit about a second. Where the machine needs longer for that, the edit goes on unchecked, as promised,
and a test that expects a verdict would fail for the machine's sake.
"""

import atexit
import functools
import re
import shutil
import tempfile
from pathlib import Path

from tests.agent.programs import AGENT, TIMEOUT_S

LIMITS = {
    "complaints.py": {"EVERY_S": TIMEOUT_S},
    "hook.py": {"TOTAL_S": TIMEOUT_S, "ACK_S": TIMEOUT_S},
    "session_hooks.py": {"PROBE_S": TIMEOUT_S},
    "edit_check/daemon.py": {"READ_S": TIMEOUT_S, "OVERDUE_S": 10 * TIMEOUT_S},
    "sessions/identity.py": {"LOCK_WAIT_S": TIMEOUT_S, "START_LOCK_WAIT_S": TIMEOUT_S},
    "sessions/processes.py": {"PS_WAIT_S": TIMEOUT_S},
    "uploading/background.py": {
        "BUDGET_S": 5 * TIMEOUT_S,
        "HARD_END_S": 6 * TIMEOUT_S,
        "HALF_LINE_S": TIMEOUT_S,
        "QUIET_S": 3.0,
        "SETTLE_S": TIMEOUT_S,
    },
}
"""How many seconds it waits, by module."""


@functools.cache
def patient_agent(**otherwise: float) -> Path:
    """A copy of agent/ with these limits; those named have other values."""
    folder = tempfile.mkdtemp(prefix="ctrlb-patient-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = Path(shutil.copytree(AGENT, Path(folder) / "agent", ignore=shutil.ignore_patterns("__pycache__")))
    for module, limits in LIMITS.items():
        for name, seconds in limits.items():
            _set(copy / "ctrlb_agent" / module, name, otherwise.get(name, seconds))
    return copy


def _set(module: Path, name: str, seconds: float) -> None:
    text, found = re.subn(rf"^{name} = [\d.]+", f"{name} = {seconds}", module.read_text("utf-8"), flags=re.MULTILINE)
    assert found == 1, (module, name)
    module.write_text(text, "utf-8")
