"""Uploads: rows through HTTP in full batches, beside inserting and indexing the same texts in process."""

import json
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from bench.load import LoadProcess, request
from bench.raw_index import RawIndex
from bench.report import Line, say
from bench.servers import PRODUCT, Server
from bench.texts import rows

LEAST_OF_FLOOR = 0.5
BATCH_ROWS = 500
ROUND_BATCHES = 10
ROWS = 200_000
QUICK_ROWS = 20_000
CLIENTS = (1, 4)
ACCEPTED = f'"accepted":{BATCH_ROWS}'.encode()


@dataclass(slots=True)
class _Times:
    """The rounds of some number of clients, all together: merges of the index fall now on this one, now on that."""

    rows: int = 0
    product_s: float = 0.0
    floor_s: float = 0.0

    @property
    def share(self) -> float:
        """Of the floor's rows in a second, how many the product took."""
        return self.floor_s / self.product_s


def measure(folder: Path, quick: bool) -> list[Line]:
    """Fill the product and the floor with the same rows, in turn. Both are left for the searches."""
    round_rows = ROUND_BATCHES * BATCH_ROWS
    count = row_count(quick)
    times = {clients: _Times() for clients in CLIENTS}
    raw = RawIndex(raw_file(folder))
    with Server(PRODUCT, product_folder(folder)) as product, LoadProcess() as load:
        for first, clients in zip(range(0, count, round_rows), cycle(CLIENTS), strict=False):
            batches = [list(rows(start, BATCH_ROWS)) for start in range(first, first + round_rows, BATCH_ROWS)]
            uploads = [_upload(product.key, batch) for batch in batches]
            times[clients].product_s += load.send(product.port, uploads, clients, ACCEPTED).duration_s
            started_s = time.perf_counter()
            for batch in batches:
                raw.add(batch)
            times[clients].floor_s += time.perf_counter() - started_s
            times[clients].rows += round_rows
            share = times[clients].share
            say(f"uploads, {first + round_rows:,} of {count:,} rows, by {clients}: {share:.2f} of the floor's speed")
    raw.close()
    return [_line(clients, of, count) for clients, of in times.items()]


def _line(clients: int, times: "_Times", count: int) -> Line:
    return Line(
        f"upload, {clients} client{'s' if clients > 1 else ''}, {BATCH_ROWS} rows a call, up to {count:,} rows: rows/s",
        f"{times.rows / times.product_s:,.0f}",
        f"{times.rows / times.floor_s:,.0f}",
        f"{times.share:.2f}",
        f"≥ {LEAST_OF_FLOOR} of the floor",
        times.share >= LEAST_OF_FLOOR,
    )


def row_count(quick: bool) -> int:
    """How many rows are uploaded and searched."""
    return QUICK_ROWS if quick else ROWS


def product_folder(folder: Path) -> Path:
    """Where the product keeps the rows."""
    return folder / "sessions"


def raw_file(folder: Path) -> Path:
    """Where the floor keeps the rows."""
    return folder / "raw.db"


def _upload(key: str, batch: list[dict[str, object]]) -> bytes:
    return request("POST", "/ai/sessions/agent_sessions/records", key, json.dumps(batch).encode())
