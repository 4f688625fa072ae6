"""How a session row lies in DynamoDB: as an item, and beside it as an object when an item cannot hold it.

A column that has its default is left out. A body is compressed when that saves a write unit, for writes are the cost
of the store. A row that is over the limit of an item has its texts in an object; its item keeps what fits, of the body
the first KEPT_BODY_CHARS, which is all that most reads ask for.
"""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import MAX_ITEM_BYTES, WRITE_UNIT_BYTES, Item, item, size_of, text, write_units
from ctrlb.domain.rows import Dataset, SessionRow

KEPT_BODY_CHARS = 4_000
UTF8_BYTES = 4
"""At most, of one character."""

_DEFAULTS = {field.name: field.default for field in fields(SessionRow)}
_TEXTS = ("command", "paths", "extra", "body")
_IN_KEY = ("seq", "block_idx")
_ALWAYS = ("block_type",)
"""By it the triggers of the stream's functions know the item of a row."""
_FLOATS = ("cost_usd", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row's item, and the object that it points to, if it does."""

    item: Item
    key: str
    """The object's name, whether it is needed or not: an earlier version of the row may have needed it."""
    content: bytes | None


def stored_row(dataset: Dataset, user: str, row: SessionRow, written_us: int) -> StoredRow:
    """The row as it is stored."""
    key = places.body_key(dataset, row.session_id, row.seq, row.block_idx)
    whole = _packed(_columns(dataset, user, row, written_us) | item(**_texts(row)), row.body)
    if size_of(whole) <= MAX_ITEM_BYTES:
        return StoredRow(whole, key, None)
    content = zlib.compress(json.dumps(_texts(row)).encode())
    rest = _texts(row) | {"body": row.body[:KEPT_BODY_CHARS], "object": key}
    kept = _columns(dataset, user, row, written_us) | item(**rest)
    if size_of(kept) > MAX_ITEM_BYTES:
        rest = {"body": row.body[:KEPT_BODY_CHARS], "object": key, "cut": True}
        kept = _columns(dataset, user, row, written_us) | item(**rest)
    return StoredRow(kept, key, content)


def session_row(found: Item, body_chars: int, fetch: Callable[[str], bytes]) -> SessionRow:
    """The row that was stored as the item, with the body's first `body_chars` characters.

    `fetch` gets the object, where one is needed.
    """
    columns: dict[str, Any] = {name: _value(name, found) for name in _DEFAULTS if name in found}
    columns["seq"], columns["block_idx"] = places.place_of_row(text(found, "sk"))
    if "body_z" in found and body_chars > 0:
        columns["body"] = _unpacked(found["body_z"]["B"], body_chars)
    if needs_object(found, body_chars):
        columns |= json.loads(zlib.decompress(fetch(text(found, "object"))))
    columns["body"] = columns.get("body", "")[:body_chars]
    return SessionRow(**columns)


def needs_object(found: Item, body_chars: int) -> bool:
    """Whether the item alone does not hold what is asked for."""
    return "object" in found and ("cut" in found or body_chars > KEPT_BODY_CHARS)


def _columns(dataset: Dataset, user: str, row: SessionRow, written_us: int) -> Item:
    """The item without its texts."""
    columns = {
        name: getattr(row, name)
        for name, default in _DEFAULTS.items()
        if name not in _TEXTS and name not in _IN_KEY and (name in _ALWAYS or getattr(row, name) != default)
    }
    return item(
        pk=places.session_pk(dataset, row.session_id),
        sk=places.row_sk(row.seq, row.block_idx),
        workspace=dataset.workspace,
        dataset=dataset.name,
        belongs_to=user,
        written_us=written_us,
        **columns,
    )


def _texts(row: SessionRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in _TEXTS}


def _packed(whole: Item, body: str) -> Item:
    """The item with its body compressed, where that saves a write unit."""
    size_bytes = size_of(whole)
    if size_bytes <= WRITE_UNIT_BYTES:
        return whole
    packed = {name: value for name, value in whole.items() if name != "body"}
    packed |= item(body_z=zlib.compress(body.encode()))
    return packed if write_units(size_of(packed)) < write_units(size_bytes) else whole


def _unpacked(packed: bytes, chars: int) -> str:
    """The first characters of a compressed body; no more of it is decompressed."""
    cut = zlib.decompressobj().decompress(packed, UTF8_BYTES * chars)
    return cut.decode(errors="ignore")


def _value(name: str, found: Item) -> str | int | float | bool:
    [(kind, value)] = found[name].items()
    if kind == "N":
        return int(value)
    return float(value) if name in _FLOATS else value
