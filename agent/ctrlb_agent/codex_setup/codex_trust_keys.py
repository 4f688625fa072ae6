"""Where Codex keeps its trust in hooks: `[hooks.state."<config.toml>:<event>:<group>:<index>"]`.

The key is a hook's place and the value a hash of what it says. When our hooks leave, those below them move up, and
Codex would silently stop running them. So their keys move with them; a hook that says something else stays untrusted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ctrlb_agent.codex_setup.codex_tables import is_our_command
from ctrlb_agent.codex_setup.toml_lines import quoted, statements_of
from ctrlb_agent.codex_setup.toml_meaning import meaning_of
from ctrlb_agent.json_values import list_of, object_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ctrlb_agent.codex_setup.toml_lines import Statement

STATE = ("hooks", "state")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def handlers_in(tree: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each hook's event, place (`pre_tool_use:0:0`) and table."""
    for event, groups in object_of(tree.get("hooks")).items():
        for number, group in enumerate(list_of(groups)):
            for index, handler in enumerate(list_of(object_of(group).get("hooks"))):
                if isinstance(handler, dict):
                    yield event, f"{_CAPITAL.sub('_', event).lower()}:{number}:{index}", handler


def moved(old: str, new: str, config_paths: Collection[str]) -> str:
    """The new text with the trust of each hook where the hook is now, and without that of ours which are gone.

    `new` differs from `old` in hooks of ours only. `config_paths` are the names by which Codex may know the file.
    """
    places = _moves(meaning_of(statements_of(old)).tree, meaning_of(statements_of(new)).tree)
    moves = {
        f"{path}:{before}": f"{path}:{after}" if after else None
        for path in config_paths
        for before, after in places.items()
        if before != after
    }
    return _with_keys(statements_of(new), moves) if moves else new


def _moves(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str | None]:
    """Where each hook was and is, or None when it is gone."""
    moves: dict[str, str | None] = {}
    before, after = _places(old), _places(new)
    for kind, places in before.items():
        now: list[str | None] = [*after.get(kind, ())]
        moves.update(zip(places, now + [None] * len(places)))
    return moves


def _places(tree: dict[str, Any]) -> dict[tuple[str, bool], list[str]]:
    places: dict[tuple[str, bool], list[str]] = {}
    for event, place, handler in handlers_in(tree):
        places.setdefault((event, is_our_command(handler.get("command"))), []).append(place)
    return places


def _with_keys(statements: Sequence[Statement], moves: dict[str, str | None]) -> str:
    taken = {after for before, after in moves.items() if after}
    lines: list[str] = []
    dropped_any = dropping = False
    for statement in statements:
        if statement.kind in ("table", "array"):
            key = statement.path[2] if statement.path[:2] == STATE and len(statement.path) == 3 else None
            dropping = key is not None and moves.get(key, key if key not in taken else None) is None
            dropped_any |= dropping
            if dropping and lines and not lines[-1].strip():
                del lines[-1]
            elif key in moves and not dropping:
                lines.append(f"[hooks.state.{quoted(moves[key] or '')}]{_line_end(statement)}")
                continue
        if not (dropping and statement.kind in ("table", "key")):
            lines.append(statement.text)
    return _without_empty_state("".join(lines)) if dropped_any else "".join(lines)


def _line_end(statement: Statement) -> str:
    return statement.text[len(statement.text.rstrip("\r\n")) :]


def _without_empty_state(text: str) -> str:
    """The text without the header `[hooks.state]`, of which Codex wrote no more than that, if nothing is below it."""
    statements = statements_of(text)
    headers = [item for item in statements if item.path[:2] == STATE and item.kind in ("table", "array")]
    if len(headers) != 1 or headers[0].path != STATE:
        return text
    at = statements.index(headers[0])
    rest = statements[at + 1 :]
    first = next((item for item in rest if item.kind not in ("blank", "comment")), None)
    if first is not None and first.kind == "key":
        return text
    begin = at - 1 if at and statements[at - 1].kind == "blank" else at
    return "".join(item.text for item in (*statements[:begin], *rest))
