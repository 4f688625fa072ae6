"""Transcripts that a test writes, with a parser for them, and what the server has of a session."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctrlb_agent.redacting.redaction import redact_row
from ctrlb_agent.settings import Settings
from ctrlb_agent.transcripts.rows import About, SessionFile, row
from ctrlb_agent.uploading import cursor
from ctrlb_agent.uploading.transcript import Parser, about_of
from tests.acceptance.calls import Json, records
from tests.laptop import Laptop
from tests.laptop_mode.conftest import client

PAGE_ROWS = 50
SHOWN_CHARS = 4_000
"""How much of a text `fetch_records` shows."""


class Lines:
    """A parser of lines such as `{"blocks": ["one", "two"]}`, which counts the blocks of its file in its memory."""

    @staticmethod
    def rows_of(line: Mapping[str, Any], number: int, about: About, memory: dict[str, Any]) -> list[dict[str, Any]]:
        rows = []
        for index, block in enumerate(line.get("blocks", [])):
            memory["blocks"] = memory.get("blocks", 0) + 1
            fields = block if isinstance(block, dict) else {"body": block}
            rows.append(row(about, "script", number, index, tool_use_id=f"block {memory['blocks']}", **fields))
        return rows

    @staticmethod
    def about_file(path: str) -> SessionFile:
        return SessionFile(Path(path).stem, "", "")

    @staticmethod
    def first_memory(path: str) -> dict[str, Any]:
        return {}


def line(*blocks: Any) -> bytes:
    """A line of a transcript."""
    return json.dumps({"blocks": blocks}, ensure_ascii=False).encode() + b"\n"


def settings(laptop: Laptop, url: str = "") -> Settings:
    """How to reach the server, by another road if there is one."""
    return Settings(url or laptop.url, laptop.key, "agent_sessions")


def stored(laptop: Laptop, session_id: str) -> list[Json]:
    """All rows that the server has of the session, in order; none when it does not know it."""
    with client(laptop, laptop.key) as http:
        found: dict[tuple[int, int], Json] = {}
        start = 0
        while True:
            if http.get(f"/ai/sessions/agent_sessions/{session_id}/records?seq_from=0&seq_to=0").status_code == 404:
                return []
            page = records(http, session_id, start)
            found.update({(one["seq"], one["block_idx"]): one for one in page})
            if len(page) < PAGE_ROWS:
                return list(found.values())
            start = page[-1]["seq"]


def bodies(laptop: Laptop, session_id: str) -> list[str]:
    """What the server has of the session's texts, in order."""
    return [one["body"] for one in stored(laptop, session_id)]


def expected(path: Path, parser: Parser) -> list[dict[str, Any]]:
    """The rows that the file's lines become, read at once by a parser that is new to it."""
    about = about_of(str(path), parser)
    memory = parser.first_memory(str(path))
    rows = []
    with path.open("rb") as stream:
        for one in cursor.lines(stream, 0, 0):
            if one.value is not None:
                rows += [redact_row(found) for found in parser.rows_of(one.value, one.number, about, memory)]
    return rows


def as_fetched(columns: Mapping[str, Any]) -> Json:
    """A row as `fetch_records` shows it, without its time."""
    shown = {
        name: columns[name]
        for name in ("seq", "block_idx", "role", "block_type", "tool_name", "tool_use_id", "paths", "is_error")
    }
    return {
        **shown,
        "command": columns["command"][:SHOWN_CHARS],
        "body": columns["body"][:SHOWN_CHARS],
        "body_len": len(columns["body"]),
    }


def without_time(rows: list[Json]) -> list[Json]:
    """The rows as fetched, without their time."""
    return [{name: value for name, value in one.items() if name != "ts"} for one in rows]
