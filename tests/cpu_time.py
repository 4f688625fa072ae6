"""Bounds of time for work without waiting, on a machine of any speed."""

import functools
import time

LOOPS = 300_000
ORDINARY_S = 0.02
"""What the loops take on an ordinary machine of 2025."""
LEEWAY = 4.0
ROUNDS = 5


def cpu_s(seconds: float) -> float:
    """The seconds of this process's CPU that work may take here which elsewhere takes at most `seconds`."""
    return seconds * LEEWAY * _slowness()


@functools.cache
def _slowness() -> float:
    """How many times slower this machine is than an ordinary one; a faster one counts as ordinary."""
    return max(1.0, *(_loops_s() / ORDINARY_S for _ in range(ROUNDS)))


def _loops_s() -> float:
    began_s, number = time.process_time(), 1
    for _ in range(LOOPS):
        number = (number * 31 + 7) & 0xFFFF
    return time.process_time() - began_s
