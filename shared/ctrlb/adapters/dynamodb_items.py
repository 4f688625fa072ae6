"""Values as DynamoDB's attributes and back, and what an item costs.

What is empty is left out: a text that is missing reads as "". Floats are kept as text, because DynamoDB's numbers
do not reach as far.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, dict[str, Any]]
"""Attributes by name, each as {type: value}."""

MAX_ITEM_BYTES = 400 * 1024
WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096


def item(**values: object) -> Item:
    """The item of the values, without those that are empty: "", None, and sets with nothing in them."""
    return {name: attribute(value) for name, value in values.items() if value not in ("", None, frozenset())}


def attribute(value: object) -> dict[str, Any]:
    """One value as DynamoDB's attribute."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, float):
        return {"S": repr(value)}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, frozenset):
        return {"SS": sorted(value)}
    if isinstance(value, str):
        return {"S": value}
    raise TypeError(f"no attribute holds a {type(value).__name__}")


def text(found: Mapping[str, dict[str, Any]], name: str) -> str:
    """The item's text of this name, empty when there is none."""
    return str(found[name]["S"]) if name in found else ""


def number(found: Mapping[str, dict[str, Any]], name: str) -> int:
    """The item's whole number of this name, 0 when there is none."""
    return int(found[name]["N"]) if name in found else 0


def number_or_none(found: Mapping[str, dict[str, Any]], name: str) -> int | None:
    """The item's whole number of this name, if there is one."""
    return int(found[name]["N"]) if name in found else None


def texts(found: Mapping[str, dict[str, Any]], name: str) -> frozenset[str]:
    """The item's set of texts of this name, empty when there is none."""
    return frozenset(found[name]["SS"]) if name in found else frozenset()


def same(one: Item, other: Item) -> bool:
    """Whether both items are equal; DynamoDB gives a set in an order of its own."""
    return _comparable(one) == _comparable(other)


def size_of(values: Mapping[str, dict[str, Any]]) -> int:
    """The item's size in bytes, as DynamoDB counts it."""
    return sum(len(name.encode()) + _size(each) for name, each in values.items())


def write_units(size_bytes: int) -> int:
    """What writing an item of this size costs; each index that it is in costs the same for its part of it."""
    return -(-size_bytes // WRITE_UNIT_BYTES)


def _size(value: Mapping[str, Any]) -> int:
    [(kind, content)] = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "B":
        return len(content)
    if kind == "SS":
        return sum(len(each.encode()) for each in content)
    return len(content.strip("0")) // 2 + 2 if kind == "N" else 1


def _comparable(values: Item) -> dict[str, object]:
    return {name: frozenset(value["SS"]) if "SS" in value else value for name, value in values.items()}
