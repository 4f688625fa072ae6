"""Starting the process that uploads: apart from the hook that starts it, which imports nothing of what it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from ctrlb_agent import state

if TYPE_CHECKING:
    from collections.abc import Mapping

START = """import sys
sys.path.insert(0, sys.argv[1])
from ctrlb_agent.uploading.background import main
sys.exit(main(sys.argv[2:]))"""
TOLD = ("hook_event_name", "transcript_path", "agent_transcript_path")
"""Not all of the hook's input: other users can see a process's arguments, and a hook holds what was said."""


def start_detached(client: str, hook: Mapping[str, Any]) -> subprocess.Popen[bytes] | None:
    """Upload what the hook is about in a process that outlives the hook and its client; None when it cannot start.

    The process ends when it is through, after 60 s at the latest. Settings are those of this process's environment.
    """
    told = {name: hook[name] for name in TOLD if name in hook}
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        folder = state.home()
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", START, package, client, json.dumps(told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "CTRLB_AGENT_HOME": folder},
            start_new_session=True,
        )
    except OSError as error:
        state.log(f"upload: could not be started: {error}")
        return None
