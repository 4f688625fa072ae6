"""Run ids and agent ids: what they may be, and readable ones for those who were given none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ID_CHARS = 200
MAX_FOLDER_CHARS = 40

_ADJECTIVES = (
    "amber ashen azure bold brass brave bright brisk calm chalk clear clever copper coral crisp cyan deft dusky eager "
    "early fair fleet fond frank fresh gentle gilded glad golden grand green hardy hazel honest humble indigo ivory "
    "jade jolly keen kind lively lucid lunar mellow merry misty mossy neat nimble noble olive opal pearl plain proud "
    "quick quiet rapid ruby rustic sage silver snowy"
)
_NOUNS = (
    "adder ant badger bat bear beaver bee bison boar crane crow deer dove duck eagle eel elk falcon ferret finch fox "
    "frog gecko gnu goat goose gull hare hawk heron ibex jackal jay kite koala lark lemur lion llama lynx marten mole "
    "moose moth newt ocelot okapi orca otter owl panda perch pike puffin quail raven robin seal shrew stork swan "
    "tapir tern wren"
)


def id_fault(value: str) -> str | None:
    """Why the text cannot be a run id or an agent id, or None (contract: ids)."""
    if not 1 <= len(value) <= MAX_ID_CHARS:
        return f"should have 1 to {MAX_ID_CHARS} characters, not {len(value):,}"
    if "/" in value or "\\" in value or not value.isprintable():
        return "may hold any printable characters but / and \\"
    return None


def new_run(host: str, root: str, now_s: float, taken: Iterable[str]) -> str:
    """A run id that says where and when (UTC) it began: `app-3f9c2a-20261130-084000`."""
    first = f"{lasting_run(host, root)}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now_s))}"
    return _numbered(first, frozenset(taken))


def lasting_run(host: str, root: str) -> str:
    """The run id of a checkout when nothing can be kept: the same for all who ask."""
    folder = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "-" for one in root.split("/")[-1])
    return f"{folder.strip('-.')[:MAX_FOLDER_CHARS] or 'checkout'}-{digest(host, root)[:6]}"


def agent_name(client: str, session_id: str, taken: Iterable[str] = ()) -> str:
    """An agent id such as `claude-amber-fox` that is not taken. A session's first choice is always the same."""
    kept = frozenset(taken)
    adjectives, nouns = _ADJECTIVES.split(), _NOUNS.split()
    pairs = len(adjectives) * len(nouns)
    first = int(digest(client, session_id)[:12], 16) % pairs
    for step in range(pairs):
        adjective, noun = divmod((first + step * 67) % pairs, len(nouns))  # odd, so every pair has its turn
        name = f"{client}-{adjectives[adjective]}-{nouns[noun]}"
        if name not in kept:
            return name
    return _numbered(name, kept)


def digest(*parts: str) -> str:
    """A hexadecimal digest of the parts, the same on every machine and in every version."""
    import hashlib

    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _numbered(name: str, taken: frozenset[str]) -> str:
    numbers = range(2, len(taken) + 3)
    return name if name not in taken else next(f"{name}-{one}" for one in numbers if f"{name}-{one}" not in taken)
