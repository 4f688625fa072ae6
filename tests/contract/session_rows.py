"""Rows of sessions for the suites on the sessions' stores."""

from typing import Any

from ctrlb.domain.rows import Dataset, SessionRow

DATASET = Dataset("acme", "agent_sessions")
NOW_US = 1_793_000_000_000_000
SECOND_US = 1_000_000


def said(session_id: str, seq: int, body: str, **columns: Any) -> SessionRow:
    """A text of a session, a second after the one before."""
    return SessionRow(
        **{
            "ts_us": NOW_US + seq * SECOND_US,
            "session_id": session_id,
            "seq": seq,
            "body": body,
            "body_len": len(body),
            **columns,
        }
    )


def ran(session_id: str, seq: int, command: str, **columns: Any) -> SessionRow:
    """A tool call with a command."""
    call = {"block_type": "tool_use", "tool_name": "Bash", "command": command, **columns}
    return said(session_id, seq, call.pop("body", ""), **call)
