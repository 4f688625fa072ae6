"""Starts: from the start of the process to its first answer, beside a server with the bare handler."""

import statistics
from pathlib import Path

from bench.report import Line, paired_ratio, say
from bench.servers import FLOOR, PRODUCT, Server

MOST_S = 2.0
ROUNDS = 7
QUICK_ROUNDS = 2


def measure(folder: Path, quick: bool) -> list[Line]:
    """Start both in turn: in a new folder, then in one that has been used."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    bare = [_ready_s(FLOOR, folder / "floor-start") for _ in range(rounds)]
    fresh = [_ready_s(PRODUCT, folder / f"start-{turn}") for turn in range(rounds)]
    used = [_ready_s(PRODUCT, folder / "start-0") for _ in range(rounds)]
    return [_line("start in a new folder", fresh, bare), _line("start in a used folder", used, bare)]


def _ready_s(command: tuple[str, str], folder: Path) -> float:
    with Server(command, folder) as server:
        say(f"{command[0]} was ready after {server.ready_s:.2f} s")
        return server.ready_s


def _line(what: str, ours: list[float], bare: list[float]) -> Line:
    ready_s = statistics.median(ours)
    return Line(
        f"{what}: s to the first answer",
        f"{ready_s:.2f}",
        f"{statistics.median(bare):.2f}",
        f"{paired_ratio(ours, bare):.2f}",
        f"≤ {MOST_S:.0f} s",
        ready_s <= MOST_S,
    )
