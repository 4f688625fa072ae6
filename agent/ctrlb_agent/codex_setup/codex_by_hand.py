"""Tables of ours that somebody wrote by hand, outside of the block: used as they are if they say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ctrlb_agent.codex_setup.codex_block import Refused
from ctrlb_agent.codex_setup.codex_tables import EXPORTER, OTEL, SERVER, is_our_command, meaning_of_table
from ctrlb_agent.json_values import list_of, object_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctrlb_agent.codex_setup.codex_tables import Table
    from ctrlb_agent.codex_setup.toml_meaning import Meaning

_AGAIN = "then run this again"


def by_hand(others: Meaning, tables: Sequence[Table]) -> tuple[set[tuple[str, ...]], list[str]]:
    """The paths of the wanted tables that the others' part of the file has already, with a remark on each.

    Raises Refused when it has one that says something else, or one in a form that leaves no room for ours: Codex does
    not start with a table that is defined twice.
    """
    adopted: set[tuple[str, ...]] = set()
    wanted = {table.path: meaning_of_table(table) for table in tables}
    for family in sorted({path[0] for path in wanted}):
        _refuse_value(others, (family,), wanted)
    _server(others, wanted[SERVER], adopted)
    if OTEL in wanted:
        _otel(others, {**wanted[OTEL], "exporter": {"otlp-http": wanted[EXPORTER]}}, adopted)
    for event in [path[1] for path in wanted if path[0] == "hooks" and len(path) == 2]:
        _hook(others, event, wanted, adopted)
    return adopted, [
        f"[{'.'.join(path)}] is there already, and says the same: left as it is" for path in sorted(adopted)
    ]


def value_at(tree: Any, path: Iterable[str]) -> Any:
    """The value at the path, or None."""
    for part in path:
        tree = object_of(tree).get(part)
    return tree


def _server(others: Meaning, wanted: dict[str, Any], adopted: set[tuple[str, ...]]) -> None:
    found = value_at(others.tree, SERVER)
    if found is None or (others.way(SERVER) == "within" and set(found) <= {"tools"}):
        return
    fixed = ("url", "bearer_token_env_var", "env_http_headers")
    differs = [key for key in fixed if not isinstance(found, dict) or found.get(key) != wanted[key]]
    if differs:
        _refuse(others, SERVER, f"differs from what is to be there in {', '.join(differs)}. Remove it, {_AGAIN}")
    adopted.add(SERVER)


def _otel(others: Meaning, wanted: dict[str, Any], adopted: set[tuple[str, ...]]) -> None:
    found = value_at(others.tree, OTEL)
    if found is None:
        return
    free = others.way(OTEL) == "within" and not set(wanted) & set(found)
    if free:
        return
    if not isinstance(found, dict) or any(found.get(key) != value for key, value in wanted.items()):
        _refuse(
            others,
            OTEL,
            f"exports already, in another way, and Codex takes only one: leave --otel away, or remove it, {_AGAIN}",
        )
    adopted.update((OTEL, EXPORTER))


def _hook(
    others: Meaning, event: str, wanted: dict[tuple[str, ...], dict[str, Any]], adopted: set[tuple[str, ...]]
) -> None:
    path = ("hooks", event)
    found = [
        (group.get("matcher"), handler)
        for group in _tables(value_at(others.tree, path))
        for handler in _tables(group.get("hooks"))
        if is_our_command(handler.get("command"))
    ]
    same = (wanted[path].get("matcher"), wanted[(*path, "hooks")])
    if found:
        if found != [same]:
            _refuse(others, path, f"runs ctrlb-hook already, but not as it is to be run. Remove that hook, {_AGAIN}")
        adopted.update((path, (*path, "hooks")))
        return
    if others.way(path) not in ("", "array"):
        _refuse(others, path, f"leaves no room for one more. Write it as [[hooks.{event}]] tables, {_AGAIN}")


def _tables(value: Any) -> list[dict[str, Any]]:
    return [table for table in list_of(value) if isinstance(table, dict)]


def _refuse_value(others: Meaning, path: tuple[str, ...], wanted: Iterable[tuple[str, ...]]) -> None:
    if others.way(path) != "value":
        return
    inside = [whole for whole in wanted if whole[0] == path[0]]
    if all(value_at(others.tree, whole[:2]) is not None for whole in inside):
        return  # all are in it: whether they say the same is seen one by one
    name = path[0]
    example = "[[hooks.PreToolUse]]" if name == "hooks" else "[mcp_servers.<name>]"
    _refuse(others, path, f"is a value, to which no table can be added. Write it as {example} tables, {_AGAIN}")


def _refuse(others: Meaning, path: tuple[str, ...], reason: str) -> NoReturn:
    lines = [others.made[path[:length]][1] for length in range(len(path), 0, -1) if path[:length] in others.made]
    raise Refused(f"line {lines[0] if lines else 1}: {'.'.join(path)} {reason}.")
