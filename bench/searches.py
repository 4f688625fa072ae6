"""Searches among many rows, beside the raw query on an equal index; and the memory of the server that answers them."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlencode

from bench import uploads
from bench.load import LoadProcess, percentile, request
from bench.raw_index import RawIndex
from bench.report import Line, say
from bench.servers import PRODUCT, Server
from bench.texts import RARE_WORDS, rows

MOST_TIMES_FLOOR = 2.0
ADDED_MS = 3.0
MOST_MB = 150.0
ROUNDS = 10
QUICK_ROUNDS = 2
ROUND_SEARCHES = 50
COMMAND_EVERY_ROWS = 600
CLIENTS = 40
"""As many as the server has threads: each may keep memory of its own."""
COMMON_WORDS = ("self", "return", "import", "none", "def")
PHRASES = ("raise ValueError", "for line in", "if not isinstance", "return self", "import sys")
COMMON_COMMANDS = ("pytest", "git diff --stat HEAD~1", "| head -20", "2>&1 | tail", "sed -n '1,80p'")


@dataclass(frozen=True, slots=True)
class _Kind:
    """Queries of one kind, as the product and as the floor is asked them."""

    what: str
    target: str
    parameter: str
    found: bytes
    """What an answer with a hit holds: a search that finds nothing is another kind."""
    raw: Callable[[str], int]
    terms: Sequence[str]

    def request(self, key: str, term: str) -> bytes:
        query = urlencode({self.parameter: term})
        return request("GET", f"/ai/sessions/agent_sessions/{self.target}?{query}", key)


def measure(folder: Path, quick: bool) -> list[Line]:
    """Rounds of searches on the product and on the floor, in turn, over the rows that were uploaded."""
    if not uploads.raw_file(folder).exists():
        uploads.measure(folder, quick)
    raw = RawIndex(uploads.raw_file(folder))
    raw.add_commands(rows(0, uploads.row_count(quick)))
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with Server(PRODUCT, uploads.product_folder(folder)) as product, LoadProcess() as load:
        kinds = _kinds(raw)
        lines = [line for kind in kinds for line in _compare(kind, product, load, rounds)]
        for kind in kinds:
            load.send(product.port, [kind.request(product.key, term) for term in kind.terms] * 20, CLIENTS, kind.found)
        memory_mb = product.memory_mb()
    raw.close()
    what = f"memory with {uploads.row_count(quick):,} rows, after searches by {CLIENTS} clients, MB"
    return [*lines, Line(what, f"{memory_mb:.0f}", aim=f"≤ {MOST_MB:.0f}", met=memory_mb <= MOST_MB)]


def _kinds(raw: RawIndex) -> list[_Kind]:
    search = ("search", "term", b'"hits":[{', raw.search)
    command = ("commands", "command", b'"occurrences":[{', raw.commands)
    own = [
        row["command"] for first in range(1, 1 + 5 * COMMAND_EVERY_ROWS, COMMAND_EVERY_ROWS) for row in rows(first, 1)
    ]
    return [
        _Kind("search, rare word", *search, RARE_WORDS),
        _Kind("search, common word", *search, COMMON_WORDS),
        _Kind("search, phrase", *search, PHRASES),
        _Kind("find_command, whole command", *command, own),
        _Kind("find_command, common part", *command, COMMON_COMMANDS),
    ]


def _compare(kind: _Kind, product: Server, load: LoadProcess, rounds: int) -> list[Line]:
    terms = list(islice(cycle(kind.terms), ROUND_SEARCHES))
    requests = [kind.request(product.key, term) for term in terms]
    ours_ms, bare_ms = list[float](), list[float]()
    for turn in range(1 + rounds):
        if turn == 1:  # the first round warms both up
            ours_ms.clear()
            bare_ms.clear()
        ours_ms += load.send(product.port, requests, 1, kind.found).latencies_ms
        bare_ms += [_time_ms(kind.raw, term) for term in terms]
    hits = statistics.median(kind.raw(term) for term in kind.terms)
    say(f"{kind.what}: {percentile(ours_ms, 50):.2f} ms, floor {percentile(bare_ms, 50):.2f} ms")
    return [_line(f"{kind.what} ({hits:,.0f} hits): p{percent}, ms", percent, ours_ms, bare_ms) for percent in (50, 99)]


def _line(what: str, percent: int, ours_ms: list[float], bare_ms: list[float]) -> Line:
    ours, bare = percentile(ours_ms, percent), percentile(bare_ms, percent)
    aim = f"≤ {MOST_TIMES_FLOOR:.0f} of the floor + {ADDED_MS:.0f} ms"
    met = ours <= MOST_TIMES_FLOOR * bare + ADDED_MS
    return Line(what, f"{ours:.2f}", f"{bare:.2f}", f"{ours / bare:.2f}", aim, met)


def _time_ms(raw: Callable[[str], int], term: str) -> float:
    started_s = time.perf_counter()
    if raw(term) == 0:
        raise ValueError(f"the floor finds nothing for {term}")
    return (time.perf_counter() - started_s) * 1_000
