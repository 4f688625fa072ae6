"""What a hook prints of another agent's claims: a note or a denial, in words for the agent."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent.calls import MAX_PATH_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctrlb_agent.sessions.identity import Identity

MAX_TOLD_CHARS = 4_000  # of holders in a note: a longer one would be taken out of the model's sight
MAX_SHOWN_CHARS = 300  # of a name that the server tells

_LIKE_A_FILE = re.compile(r".*(?:/|\.[A-Za-z]{1,10}$)", re.DOTALL)
_PLAIN_NAME = re.compile(r"[\w.@:+-]+")


class Conflict(NamedTuple):
    """A path that another agent holds. `until_us` is 0 when the server did not say how long."""

    path: str
    key: str
    held_by: str
    until_us: int


def printed(who: Identity, allowed: bool, conflicts: Iterable[Conflict]) -> bytes:
    """The hook's answer in the form that both clients read: these fields and no others, or nothing at all."""
    held = list({(one.path, one.held_by): one for one in conflicts}.values())
    if not held:
        return b""
    output = {"hookEventName": "PreToolUse"}
    if allowed:
        output["additionalContext"] = told(who, held, "The edit goes ahead. Before you go on")
    else:
        output["permissionDecision"] = "deny"
        output["permissionDecisionReason"] = told(who, held, "The edit was refused. Before you try again")
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False).encode("utf-8", "replace")


def told(who: Identity, held: list[Conflict], outcome: str) -> str:
    """Who holds what until when, and the claim call to make, in words for the agent."""
    sentences = list[str]()
    for number, one in enumerate(held):
        sentence = f"{_cut(one.path)} is held by {_holder(one, who)}{_until(one.until_us)}."
        if sentences and len(sentence) + sum(map(len, sentences)) > MAX_TOLD_CHARS:
            sentences.append(f"So are {len(held) - number} more of its files.")
            break
        sentences.append(sentence)
    call = json.dumps({"resource": _resource(held[0]), "run_id": who.run, "agent": who.agent}, ensure_ascii=False)
    sentences.append(
        f"{outcome}, call claim with {call}{', and likewise for the others' if held[1:] else ''}; "
        "if held is false, pick other work."
    )
    return " ".join(sentences)


def _holder(one: Conflict, who: Identity) -> str:
    name = _cut(one.held_by)
    if not _PLAIN_NAME.fullmatch(one.held_by):
        name = json.dumps(name, ensure_ascii=False)
    return f"another person's {name}" if one.held_by == who.agent else name


def _until(until_us: int) -> str:
    return time.strftime(" until %H:%M:%S UTC", time.gmtime(until_us / 1_000_000)) if until_us else ""


def _resource(one: Conflict) -> str:
    """What to claim: the path, unless it alone would be read as a name, such as that of a Makefile; then the key."""
    resource = one.path if one.key == f"path:{one.path}" and _LIKE_A_FILE.match(one.path) else one.key
    return resource[:MAX_PATH_CHARS]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"
