"""The figures as a table, with the facts of the machine, printed and kept in docs/performance.md."""

import datetime
import os
import platform
import re
import sqlite3
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.servers import PROJECT

PAGE = PROJECT / "docs" / "performance.md"
BEGIN = "<!-- figures: written by `make bench` -->"
END = "<!-- end of figures -->"
_HEAD = "| what | CtrlB | floor | ratio | aim | met |\n|---|---:|---:|---:|---|---|\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table."""

    what: str
    product: str
    floor: str = ""
    ratio: str = ""
    aim: str = ""
    met: bool | None = None
    """None where there is no aim."""


def say(text: str) -> None:
    """Tell the person who waits how far it has come."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def paired_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median ratio of rounds that ran one after the other, so that the drift of the machine cancels."""
    return statistics.median(left / right for left, right in zip(over, under, strict=True))


def table(lines: Sequence[Line], quick: bool) -> str:
    """The table in Markdown, the facts of the machine above it."""
    body = "".join(
        f"| {line.what} | {line.product} | {line.floor} | {line.ratio} | {line.aim} | {_verdict(line.met)} |\n"
        for line in lines
    )
    return f"{facts()}{' (quick: small sizes, rough figures)' if quick else ''}\n\n{_HEAD}{body}"


def keep(figures: str, begin: str = BEGIN, end: str = END) -> None:
    """Put a table between its markers on the page. The rest of the page is written by hand."""
    text = PAGE.read_text()
    before, found, rest = text.partition(begin)
    _, found_too, after = rest.partition(end)
    if not found or not found_too:
        raise ValueError(f"{PAGE.name} has lost its markers: {begin} and {end}")
    PAGE.write_text(f"{before}{begin}\n\n{figures}\n{end}{after}")


def _verdict(met: bool | None) -> str:
    return {None: "", True: "yes", False: "**no**"}[met]


def facts() -> str:
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"{day} · {_processor()} · {os.cpu_count()} cores · {platform.system()} · "
        f"Python {platform.python_version()} · SQLite {sqlite3.sqlite_version} · load average {os.getloadavg()[1]:.1f}"
    )


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", facts.read_text()) if facts.exists() else None
    return found[1] if found else platform.processor() or platform.machine()
