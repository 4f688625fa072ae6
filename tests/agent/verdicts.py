"""Servers that answer the check before an edit: with a verdict, or with anything but one."""

import json
from typing import Any

from tests.agent.scripted_server import Behaviour, answers, closes, drips, hangs, response, says

UNTIL_US = 1_793_000_600_000_000
HELD: dict[str, Any] = {
    "path": "src/app.py",
    "key": "path:src/app.py",
    "held_by": "agent-b",
    "lease_until": UNTIL_US,
}


def verdict(*conflicts: dict[str, Any], mode: str = "advisory", **more: Any) -> Behaviour:
    """A server whose every answer is this one."""
    allowed = mode != "enforce" or not conflicts
    return answers(200, json.dumps({"mode": mode, "allowed": allowed, "conflicts": conflicts, **more}).encode())


FAILURES: dict[str, tuple[Behaviour, str]] = {
    "a refused key": (
        answers(401, b'{"error":"no such key","code":"MCP_INVALID_KEY"}'),
        "no such key (MCP_INVALID_KEY)",
    ),
    "not allowed": (answers(403, b'{"error":"not allowed"}'), "not allowed"),
    "not found": (answers(404, b"<html>"), "the server answered 404"),
    "too many": (answers(429, b'{"error":"slow down"}', "Retry-After: 3"), "slow down"),
    "a bug": (answers(500, b""), "the server answered 500"),
    "elsewhere": (answers(302, b"", "Location: /"), "the server answered 302"),
    "a page": (answers(200, b"<html>"), "none of CtrlB's"),
    "a list": (answers(200, b"[]"), "none of CtrlB's"),
    "no fields": (answers(200, b"{}"), "none of CtrlB's"),
    "deeply nested": (answers(200, b"[" * 100_000), "none of CtrlB's"),
    "odd conflicts": (answers(200, b'{"mode":"enforce","allowed":false,"conflicts":{"a":1}}'), "none of CtrlB's"),
    "half a conflict": (
        answers(200, b'{"mode":"enforce","allowed":false,"conflicts":[{"path":1}]}'),
        "none of CtrlB's",
    ),
    "another protocol": (says(b"SSH-2.0\r\n"), "broke off"),
    "half an answer": (says(b'HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n{"mode":"enf'), "broke off"),
    "nothing": (closes, "127.0.0.1"),
    "silence": (hangs, "did not answer in time"),
    "a byte at a time": (drips(response(200, b"{}" * 1_000)), "did not answer in time"),
    "a header without an end": (drips(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000), "did not answer in time"),
}
"""Each with what is written down about it."""
