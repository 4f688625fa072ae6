"""One contract row: how it is made of a transcript's line, and kept such that the server takes it.

The server refuses a whole upload for one field that it does not take, and transcripts hold anything. So every row
goes through `row`, which cuts and cleans; the same input always gives the same row. Source of the columns and limits:
the contract's "Upload session records".
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent.json_values import object_of, text_of
from ctrlb_agent.paths import relative_to
from ctrlb_agent.transcripts import edits

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ID_CHARS = 200
MAX_NAME_CHARS = 1_024
MAX_CWD_CHARS = 4_096
MAX_NUMBER = 1e15
"""More tokens or dollars than this are no count of anything."""
MIN_TIMESTAMP_US = 946_684_800_000_000
"""2000-01-01."""
MAX_TIMESTAMP_US = 4_102_444_800_000_000
"""2100-01-01."""
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})

_HASH_CHARS = 16
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_ID = re.compile(r"[/\\]")
_ISO_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\s*(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_IDS = ("session_id", "parent_session", "agent_id", "run_id", "agent", "tool_use_id", "tool_name")
_NAMES = ("host", "harness", "role", "git_branch", "uuid", "message_id", "model")
_NUMBERS = ("cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
_TEXTS = ("command", "paths", "body")
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys((*_IDS, *_NAMES, *_TEXTS, "cwd"), ""),
    "block_type": "text",
    "is_error": False,
    "is_summary": False,
    **dict.fromkeys(_NUMBERS, 0.0),
}


class SessionFile(NamedTuple):
    """Whose transcript a file is. `parent_session` and `agent_id` are empty unless it is a subagent's or a fork's."""

    session_id: str
    parent_session: str
    agent_id: str


class About(NamedTuple):
    """What the rows of a file have in common: the machine, the run and agent, the checkout's root, and whose it is."""

    host: str
    run: str
    agent: str
    root: str
    session_id: str
    parent_session: str
    agent_id: str


def row(about: About, harness: str, number: int, block_idx: int, **fields: Any) -> dict[str, Any]:
    """The row of one block of line `number`. Of `fields`, those that the server would refuse are made acceptable.

    `timestamp_us` may be None: the row then has no `_timestamp`, and the server takes the time of arrival.
    """
    timestamp_us = fields.pop("timestamp_us", None)
    made: dict[str, Any] = {
        **_DEFAULTS,
        "host": about.host,
        "harness": harness,
        "session_id": about.session_id,
        "parent_session": about.parent_session,
        "agent_id": about.agent_id,
        "run_id": about.run,
        "agent": about.agent,
        "seq": number,
        "block_idx": block_idx,
        **fields,
    }
    for name in _IDS:
        made[name] = clean_id(made[name])
    for name in _NAMES:
        made[name] = _cut(clean_name(made[name]), MAX_NAME_CHARS)
    for name in _NUMBERS:
        made[name] = number_of(made[name])
    for name in _TEXTS:
        made[name] = clean_text(made[name])
    made["cwd"] = _cut(clean_name(made["cwd"]), MAX_CWD_CHARS)
    return made if timestamp_us is None else {"_timestamp": timestamp_us, **made}


def clean_id(value: Any) -> str:
    """The text as an id that the server takes. Other ids stay other ids: one that is too long ends in its hash."""
    text = _NO_ID.sub("_", text_of(value))
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "_" for char in text)
    return _cut(text, MAX_ID_CHARS)


def clean_name(value: Any) -> str:
    """The text as the name of a folder, a branch or the like: clean, and without NULs, which none has."""
    return clean_text(value).replace("\0", "")


def clean_text(value: Any) -> str:
    """The text without halves of surrogate pairs, which no UTF-8 has: each is a replacement character."""
    return _SURROGATE.sub("\ufffd", text_of(value))


def number_of(value: Any) -> float:
    """The value as a float, 0.0 when it is no number or none that could be a count."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_NUMBER:
        return 0.0
    return float(value) if math.isfinite(value) else 0.0


def as_json(value: Any) -> str:
    """The value as JSON on one line; of a value that is nested too deep to be written, an empty text."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ""


def joined(parts: list[str]) -> str:
    """The parts, each beginning a line of its own."""
    whole = [part if part.endswith("\n") else f"{part}\n" for part in parts[:-1]]
    return "".join([*whole, *parts[-1:]])


def body_of(content: Any) -> str:
    """The text of a content: itself, or its texts in order; what is no text stands between them as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else as_json(content)
    return joined([part for part in map(_part, content) if part])


def time_us(value: Any) -> int | None:
    """An ISO 8601 time in microseconds since the epoch, or None for what is none or lies outside of 2000 to 2099.

    A time without a zone is taken as UTC.
    """
    found = _ISO_TIME.fullmatch(text_of(value).strip())
    if not found:
        return None
    *whole, fraction, sign, hours, minutes = found.groups()
    try:
        moment = datetime.datetime(*map(int, whole), tzinfo=datetime.timezone.utc)  # type: ignore[misc, arg-type]
    except ValueError:  # a 13th month
        return None
    offset_s = (int(hours) * 60 + int(minutes)) * 60 if sign else 0
    seconds = int(moment.timestamp()) - (offset_s if sign == "+" else -offset_s)
    found_us = seconds * 1_000_000 + int((fraction or "").ljust(6, "0")[:6])
    return found_us if MIN_TIMESTAMP_US <= found_us < MAX_TIMESTAMP_US else None


def moment_us(line: Mapping[str, Any], memory: dict[str, Any]) -> int | None:
    """The line's time, or else the latest one before it in the file."""
    found_us = time_us(line.get("timestamp"))
    latest_us: int | None = memory.get("time_us")
    if found_us is None:
        return latest_us
    memory["time_us"] = found_us if latest_us is None else max(found_us, latest_us)
    return found_us


def remember(memory: dict[str, Any], name: str, key: str, value: Any, most: int) -> None:
    """Keep `value` in the table `name` of the memory, as its newest entry; the oldest beyond `most` is dropped."""
    table = memory.setdefault(name, {})
    table.pop(key, None)
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]


def tool_command(name: str, tool_input: Any) -> str:
    """The command that a call of a shell runs; of other tools, an empty text.

    Of a command that is a list of words, `bash -lc` and the like in front is left out.
    """
    if name not in edits.SHELL_TOOLS:
        return ""
    given = object_of(tool_input)
    for field in ("command", "cmd"):
        value = given.get(field)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return shell_text(value)
    return ""


def shell_text(words: list[Any]) -> str:
    """A command line of the words, as one types it."""
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) == 3 and os.path.basename(texts[0]) in SHELLS and texts[1] in ("-c", "-lc"):
        return texts[2]
    return shlex.join(texts)


def tool_paths(name: str, tool_input: Any, cwd: str, root: str) -> str:
    """The column `paths` of a tool call: a JSON array of the files that it edits, or an empty text if it edits none.

    They are relative to `root`, as agents claim them; without a root, they stay absolute.
    """
    return paths_column(edits.edited_paths(name, object_of(tool_input), cwd), root)


def paths_column(paths: list[str], root: str) -> str:
    """The column `paths` of these absolute paths."""
    spelled = [relative_to(root, path) if root else path for path in paths]
    return as_json(list(dict.fromkeys(spelled))) if spelled else ""


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]
    return f"{text[: most - _HASH_CHARS - 1]}~{digest}"


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    given = object_of(part)
    text = given.get("text")
    is_text = isinstance(text, str) and text_of(given.get("type")).lower().endswith("text")
    return text_of(text) if is_text else as_json(part)
