"""JSON that anybody may have written: a value that is not of the wanted kind counts as an empty one."""

from __future__ import annotations

import json
from typing import Any


def parsed(content: Any) -> Any:
    """What a text or bytes say in JSON, or None. Any other value is what it is."""
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if not isinstance(content, str):
        return content
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def object_in(content: str | bytes) -> dict[str, Any] | None:
    """The JSON object that the content is, or None."""
    value = parsed(content)
    return value if isinstance(value, dict) else None


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
