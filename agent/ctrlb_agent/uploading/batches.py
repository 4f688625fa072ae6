"""Rows as the bytes that are sent, and how many of them go in one request: at most 500, and under 4 MiB."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_ROWS = 500
MAX_BYTES = 4_000_000
"""Of a request before compression; the server takes 4 MiB (4,194,304)."""
BRACKETS = len(b"[]")
CUT_TEXTS = ("body", "command")
KINDS = {"session_id": str, "seq": int, "block_idx": int, **dict.fromkeys(CUT_TEXTS, str)}
"""Of the columns that are looked at here."""
CUT_MARK = "… [cut by ctrlb-agent: {} more characters]"

Mark = TypeVar("Mark")


class Row(NamedTuple):
    """A row as it is sent, with what names it in a log."""

    session_id: str
    seq: int
    block_idx: int
    data: bytes

    @property
    def name(self) -> str:
        return f"{self.session_id} seq {self.seq} block {self.block_idx}"


class Unwritable(Exception):
    """The row holds a number that JSON does not have."""


def row_of(columns: dict[str, Any], max_bytes: int = MAX_BYTES - BRACKETS) -> Row:
    """The row's bytes. One that is longer than a request may be has its longest text cut, and says so.

    Halves of surrogate pairs, which no server takes, are replaced. Raises Unwritable.
    """
    data = written(columns)
    for name in sorted(CUT_TEXTS, key=lambda name: -len(columns.get(name) or "")):
        if len(data) > max_bytes and columns.get(name):
            columns = {**columns, name: _cut(columns[name], len(data) - max_bytes)}
            data = written(columns)
    return Row(str(columns.get("session_id", "")), columns.get("seq", 0), columns.get("block_idx", 0), data)


def rows_in(body: bytes) -> list[Row]:
    """The rows of a request's body. Raises ValueError when it is none, and Unwritable."""
    try:
        rows = json.loads(body)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("holds no list of rows")
        if any(not isinstance(row.get(name, kind()), kind) for row in rows for name, kind in KINDS.items()):
            raise ValueError("holds rows with columns of another kind")
        return [row_of(row) for row in rows]
    except RecursionError:
        raise ValueError("is nested too deep") from None


def body_of(rows: Sequence[Row]) -> bytes:
    """The request's body."""
    return b"[" + b",".join(row.data for row in rows) + b"]"


def written(value: Any) -> bytes:
    """The value as JSON in UTF-8. Raises Unwritable."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise Unwritable("holds a number that JSON does not have") from None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def batches(taken: Iterable[tuple[list[Row] | None, Mark]]) -> Iterator[tuple[list[Row], Mark | None]]:
    """The lines' rows as the fewest requests in their order, each with the mark of the last line that is whole in it.

    The mark is None when not even one line is. The last request has no rows when the last lines had none. None in the
    place of a line's rows ends a request.
    """
    rows: list[Row] = []
    size = BRACKETS
    mark = None
    for rows_of_line, mark_of_line in taken:
        if rows_of_line is None:
            if rows or mark is not None:
                yield rows, mark
            rows, size, mark = [], BRACKETS, None
            continue
        for row in rows_of_line:
            if rows and (len(rows) == MAX_ROWS or size + len(row.data) > MAX_BYTES):
                yield rows, mark
                rows, size, mark = [], BRACKETS, None
            rows.append(row)
            size += len(row.data) + len(b",")
        mark = mark_of_line
    if rows or mark is not None:
        yield rows, mark


def shortened(row: Row) -> Row | None:
    """The row at half its length, for a server that takes less; None when it cannot be made so short."""
    shorter = row_of(json.loads(row.data), len(row.data) // 2)
    return shorter if len(shorter.data) < len(row.data) else None


def _cut(text: str, bytes_too_many: int) -> str:
    """The text without its end, at least so many bytes shorter in JSON, with a mark in the end's place."""
    before = re.search(CUT_MARK.replace("[", r"\[").replace("]", r"\]").format(r"([\d,]+)") + "$", text)
    missing = 0
    if before:  # it was cut already
        text, missing = text[: before.start()], int(before[1].replace(",", ""))
    mark_bytes = len(written(CUT_MARK.format(f"{len(text) + missing:,}")))
    was_cut_bytes = len(written(before[0])) if before else 0
    room = len(written(text)) + was_cut_bytes - bytes_too_many - mark_bytes
    kept, too_many = 0, min(len(text), max(0, room)) + 1
    while too_many - kept > 1:
        middle = (kept + too_many) // 2
        if len(written(text[:middle])) <= room:
            kept = middle
        else:
            too_many = middle
    return text[:kept] + CUT_MARK.format(f"{len(text) - kept + missing:,}")
