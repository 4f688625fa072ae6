"""Uploads: rows through HTTP in full batches, beside inserting and indexing the same texts in process."""

import json
import time
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
ACCEPTED = f'"accepted":{BATCH_ROWS}'.encode()


def measure(folder: Path, quick: bool) -> list[Line]:
    """Fill the product and the floor with the same rows, in turn. Both are left for the searches."""
    round_rows = ROUND_BATCHES * BATCH_ROWS
    count = row_count(quick)
    product_s = floor_s = 0.0
    raw = RawIndex(raw_file(folder))
    with Server(PRODUCT, product_folder(folder)) as product, LoadProcess() as load:
        for first in range(0, count, round_rows):
            batches = [list(rows(start, BATCH_ROWS)) for start in range(first, first + round_rows, BATCH_ROWS)]
            uploads = [_upload(product.key, batch) for batch in batches]
            product_s += load.send(product.port, uploads, 1, ACCEPTED).duration_s
            started_s = time.perf_counter()
            for batch in batches:
                raw.add(batch)
            floor_s += time.perf_counter() - started_s
            done = first + round_rows
            say(f"uploads, {done:,} of {count:,} rows: {done / product_s:,.0f}/s, floor {done / floor_s:,.0f}/s")
    raw.close()
    share = floor_s / product_s
    return [
        Line(
            f"upload of {count:,} rows, {BATCH_ROWS} a call: rows/s",
            f"{count / product_s:,.0f}",
            f"{count / floor_s:,.0f}",
            f"{share:.2f}",
            f"≥ {LEAST_OF_FLOOR} of the floor",
            share >= LEAST_OF_FLOOR,
        )
    ]


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
