"""What the record of a change says: who made it, when, from what, to what."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from ctrlb.domain.access import Caller
from ctrlb.domain.rows import Audit

Shown: TypeAlias = Mapping[str, Any] | None
"""What is recorded of a thing, as JSON values; None where there is nothing. Never a secret, nor the hash of one."""


def audit_of(action: str, caller: Caller, ts_us: int, before: Shown, after: Shown) -> Audit:
    """What is written with a change of the caller's."""
    return Audit(caller.workspace, ts_us, caller.recorded_as, action, _written(before), _written(after))


def read_shown(text: str) -> dict[str, Any] | None:
    """What the `before` or `after` of an audit says; `text` for what an earlier version wrote as no JSON object."""
    if not text:
        return None
    try:
        shown = json.loads(text)
    except ValueError:
        shown = None
    return shown if isinstance(shown, dict) else {"text": text}


def _written(shown: Shown) -> str:
    return "" if shown is None else json.dumps(shown)
