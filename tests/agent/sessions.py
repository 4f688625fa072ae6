"""Hooks of sessions that this process plays, in a checkout."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctrlb_agent.sessions import identity
from ctrlb_agent.sessions.identity import Identity, identity_of

CLAUDE = {"CLAUDE_PID": str(os.getpid())}
"""What Claude Code says of itself to its hooks."""

Hook = dict[str, Any]


def hook(session_id: str, cwd: Path, event: str = "SessionStart", **more: str) -> Hook:
    return {"session_id": session_id, "cwd": str(cwd), "hook_event_name": event, **more}


def start(session_id: str, cwd: Path, source: str = "startup", environ: Mapping[str, str] = CLAUDE) -> Identity:
    return identity_of(hook(session_id, cwd, source=source), environ, "claude")


def end(session_id: str, cwd: Path, reason: str = "other", environ: Mapping[str, str] = CLAUDE) -> None:
    identity.end(hook(session_id, cwd, "SessionEnd", reason=reason), environ, "claude")
