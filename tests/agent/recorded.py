"""Transcripts that the real clients wrote, and the rows that are read from them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ctrlb_agent.transcripts import claude_transcript, codex_rollout
from ctrlb_agent.transcripts.rows import About

Json = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "data" / "agent"
PARSERS: dict[str, ModuleType] = {"claude": claude_transcript, "codex": codex_rollout}
FILES = [(client, path.name) for client in PARSERS for path in sorted((DATA / client).glob("*.jsonl"))]
ROOT = "/work/app"


def lines(client: str, name: str) -> list[Json]:
    """The lines of a recorded transcript."""
    return [json.loads(line) for line in (DATA / client / name).read_text().splitlines()]


def about(session_id: str = "s-1", parent_session: str = "", agent_id: str = "") -> About:
    """A session of an agent in the checkout /work/app."""
    return About("build-01", "run-1", "agent-1", ROOT, session_id, parent_session, agent_id)


def rows_of(
    client: str, parts: Iterable[Any], whose: About | None = None, memory: Json | None = None, first: int = 1
) -> list[Json]:
    """The rows of the lines, the memory passed on in `memory`."""
    kept = {} if memory is None else memory
    read = PARSERS[client].rows_of
    return [row for number, line in enumerate(parts, first) for row in read(line, number, whose or about(), kept)]


def recorded(client: str, name: str) -> list[Json]:
    """The rows of a recorded transcript."""
    return rows_of(client, lines(client, name))


def table(rows: Sequence[Json], body_chars: int = 40) -> str:
    """The rows, a line each: place, role, kind, tool, `!` for an error, command, paths, and how the body begins."""
    return "".join(
        " ".join(
            part
            for part in (
                f"{row['seq']}.{row['block_idx']}",
                row["role"],
                row["block_type"],
                row["tool_name"],
                "SUMMARY" if row["is_summary"] else "",
                "!" if row["is_error"] else "",
                f"$ {row['command'][:40]}".replace("\n", "⏎") if row["command"] else "",
                row["paths"],
                f"| {row['body'][:body_chars]}".replace("\n", "⏎"),
            )
            if part
        ).rstrip()
        + "\n"
        for row in rows
    )
