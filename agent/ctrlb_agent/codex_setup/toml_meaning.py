"""What statements of TOML mean together: one nested dict, and how each table in it came to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent.codex_setup.toml_lines import BrokenToml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctrlb_agent.codex_setup.toml_lines import Statement

ELEMENT = "[]"
"""Stands in a path for the last element of an array of tables."""


class Meaning(NamedTuple):
    """`tree` is the whole as dicts and lists. `made` says of each path how it was made, and in which line.

    The ways are "table", "array" (of tables), "value", "within" (by the header of a table in it), and "dotted" (by a
    key with a dot, so that no header may name it).
    """

    tree: dict[str, Any]
    made: dict[tuple[str, ...], tuple[str, int]]

    def way(self, path: tuple[str, ...]) -> str:
        """How the path was made; an empty text when it was not."""
        return self.made.get(path, ("", 0))[0]


def meaning_of(statements: Sequence[Statement]) -> Meaning:
    """What they mean together. Raises BrokenToml where something is defined twice."""
    meaning = Meaning({}, {})
    table, prefix = meaning.tree, ()  # type: dict[str, Any], tuple[str, ...]
    for statement in statements:
        if statement.kind in ("table", "array"):
            table, prefix = _opened(meaning, statement)
        elif statement.kind == "key":
            _set(meaning, statement, table, prefix)
    return meaning


def _opened(meaning: Meaning, statement: Statement) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The table that the header begins, and its path in `made`."""
    table, prefix = _parents(meaning, statement, meaning.tree, ())
    name = statement.path[-1]
    path = (*prefix, name)
    if meaning.way(path) not in ("", "within" if statement.kind == "table" else "array"):
        raise _twice(meaning, statement, path)
    meaning.made[path] = (statement.kind, statement.line)
    if statement.kind == "table":
        found: dict[str, Any] = table.setdefault(name, {})
        return found, path
    element: dict[str, Any] = {}
    table.setdefault(name, []).append(element)
    in_element = (*path, ELEMENT)
    for inner in [known for known in meaning.made if known[: len(in_element)] == in_element]:
        del meaning.made[inner]
    return element, in_element


def _set(meaning: Meaning, statement: Statement, table: dict[str, Any], prefix: tuple[str, ...]) -> None:
    table, prefix = _parents(meaning, statement, table, prefix)
    path = (*prefix, statement.path[-1])
    if path in meaning.made:
        raise _twice(meaning, statement, path)
    meaning.made[path] = ("value", statement.line)
    table[statement.path[-1]] = statement.value


def _parents(
    meaning: Meaning, statement: Statement, table: dict[str, Any], prefix: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The table that holds the last part of the statement's path, made where it is missing."""
    made_by = "dotted" if statement.kind == "key" else "within"
    for part in statement.path[:-1]:
        prefix = (*prefix, part)
        way = meaning.made.setdefault(prefix, (made_by, statement.line))[0]
        if way == "value":
            raise _twice(meaning, statement, prefix)
        found = table.setdefault(part, {})
        if way == "array":
            prefix = (*prefix, ELEMENT)
            found = found[-1]
        table = found
    return table, prefix


def _twice(meaning: Meaning, statement: Statement, path: tuple[str, ...]) -> BrokenToml:
    name = ".".join(part for part in path if part != ELEMENT)
    return BrokenToml(statement.line, f"{name} is defined already, in line {meaning.made[path][1]}")
