"""Why a hook let something pass unchecked: a line in `agent.log`, seldom enough that a dead server does not fill it."""

from __future__ import annotations

import os
import time

from ctrlb_agent import state

EVERY_S = 5.0
MAX_CHARS = 400


def complain(reason: str) -> None:
    """Write the reason, unless a hook of this user's wrote one in the last EVERY_S seconds. Never raises OSError.

    What a server said may be in it, so it is cut and what cannot be printed is left out. An alarm may end the process
    at any moment, so only what stands in the log keeps the next reason out of it.
    """
    try:
        stamp = state.path("complained")
        if _was_written_lately(stamp):
            return
        state.log("".join(one if one.isprintable() else " " for one in reason[:MAX_CHARS]))
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(stamp)
    except OSError:
        pass  # where this cannot be written, the log cannot either


def _was_written_lately(stamp: str) -> bool:
    try:
        return 0 <= time.time() - os.stat(stamp).st_mtime < EVERY_S
    except FileNotFoundError:
        return False
