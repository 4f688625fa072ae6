"""Where the clients keep what is theirs: the variable that they look at, else their folder in the home."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CODEX_DEFAULT = "~/.codex"


def claude_folder(environ: Mapping[str, str]) -> str:
    """Claude Code's folder, with its settings, plugins and transcripts, whether or not it is there."""
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")


def claude_config_file(environ: Mapping[str, str]) -> str:
    """The file with the servers that a person added: in its folder if the variable names one, else in the home."""
    return os.path.join(environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~"), ".claude.json")


def claude_subagents(transcript: str) -> list[str]:
    """The transcripts of the subagents of a Claude Code session."""
    top = os.path.join(os.path.splitext(transcript)[0], "subagents")
    return sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(".jsonl")
    )


def codex_folder(environ: Mapping[str, str], named: str | None = None) -> str:
    """Codex's folder, with its `config.toml` and transcripts, whether or not it is there: `named` by a person, or else
    what the variable says."""
    return os.path.abspath(os.path.expanduser(named or environ.get("CODEX_HOME") or CODEX_DEFAULT))
