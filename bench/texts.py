"""The rows that are uploaded and searched: what coding agents say, run and get back, cut from real source code.

The same count of rows is the same rows on every run of one Python, whose standard library they are cut from.
"""

import functools
import json
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEED = 20_261_130
MEAN_BODY_CHARS = 1_300
MAX_BODY_CHARS = 8_000
SESSION_ROWS = 200
FIRST_US = 1_780_000_000_000_000
ROW_EVERY_US = 1_000_000
RARE_EVERY_ROWS = 4_000

RARE_WORDS = ("quokkaberry", "snorkelwort", "plinthweasel", "gazumpfish", "tiddlyoak")
"""In no source. One row in RARE_EVERY_ROWS has one of them, in turn."""
_COMMANDS = (
    "python -m pytest tests/test_{name}.py -x -q",
    "git diff --stat HEAD~1 -- lib/{name}.py",
    "grep -rn 'def {name}' src | head -20",
    "cd build && make {name} 2>&1 | tail -5",
    "sed -n '1,80p' lib/{name}.py",
)


def rows(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Rows of sessions, one after the other, a second apart, in the form of the contract's upload."""
    for index in range(first, first + count):
        session, seq = divmod(index, SESSION_ROWS)
        yield {
            "_timestamp": FIRST_US + index * ROW_EVERY_US,
            "host": "build-01",
            "harness": "script",
            "session_id": f"session-{session:06}",
            "parent_session": "",
            "agent_id": "",
            "run_id": f"run-{session // 4:05}",
            "agent": f"agent-{session % 4}",
            "seq": seq,
            "block_idx": 0,
            "is_summary": False,
            "cwd": "/work/app",
            "git_branch": "main",
            "cost_usd": 0.0,
            "input_tokens": 0.0,
            "output_tokens": 0.0,
            **_block(index),
        }


def _block(index: int) -> dict[str, Any]:
    """What the row says: prose, a command and its output, an edit and its result, in turn."""
    chance = random.Random(SEED + index)
    turn, rest = divmod(index, RARE_EVERY_ROWS)
    if rest == 0:
        return _said("assistant", "text", f"{RARE_WORDS[turn % len(RARE_WORDS)]} {_excerpt(chance)}")
    match index % 6:
        case 0:
            return _said("assistant", "text", _excerpt(chance))
        case 1:
            name = chance.choice(_names())
            command = chance.choice(_COMMANDS).format(name=name)
            return _called("Bash", index, command, json.dumps({"command": command, "description": f"Look at {name}"}))
        case 2:
            return _returned("Bash", index, _excerpt(chance))
        case 3:
            path = f"lib/{chance.choice(_names())}.py"
            edit = {"file_path": path, "old_string": _excerpt(chance, 2), "new_string": _excerpt(chance, 2)}
            return _called("Edit", index, "", json.dumps(edit), json.dumps([path]))
        case 4:
            return _returned("Edit", index, _excerpt(chance))
        case _:
            return _said("assistant", "thinking", _excerpt(chance))


def _said(role: str, block_type: str, body: str) -> dict[str, Any]:
    return {"role": role, "block_type": block_type, "tool_name": "", "command": "", "body": body, "is_error": False}


def _called(tool: str, index: int, command: str, body: str, paths: str = "") -> dict[str, Any]:
    call = {"tool_name": tool, "tool_use_id": f"call-{index}", "command": command, "paths": paths}
    return {"role": "assistant", "block_type": "tool_use", "body": body, "is_error": False, **call}


def _returned(tool: str, index: int, body: str) -> dict[str, Any]:
    call = {"tool_name": tool, "tool_use_id": f"call-{index - 1}", "command": ""}
    return {"role": "user", "block_type": "tool_result", "body": body, "is_error": index % 90 == 2, **call}


def _excerpt(chance: random.Random, parts: int = 1) -> str:
    """A piece of source code: short ones are many and long ones few, as in real sessions."""
    size = min(MAX_BODY_CHARS, 40 + int(chance.expovariate(1 / MEAN_BODY_CHARS))) // parts
    start = chance.randrange(len(_sources()) - size)
    return _sources()[start : start + size]


@functools.cache
def _sources() -> str:
    return "\n".join(path.read_text(errors="replace") for path in _files())


@functools.cache
def _names() -> list[str]:
    return [path.stem for path in _files()]


@functools.cache
def _files() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    return sorted(path for path in library.rglob("*.py") if "site-packages" not in path.parts)
