"""Cursors of lists that are newest first: the time and name of the last that was shown, as text that tells nothing."""

import base64
import json

from ctrlb.domain.errors import Invalid
from ctrlb.domain.ids import id_fault

MAX_US = 10**16
"""Above every time that a key of a store can hold."""


def written_cursor(before: tuple[int, str]) -> str:
    """The cursor of the page that goes on below this time and name."""
    return base64.urlsafe_b64encode(json.dumps(before).encode()).decode()


def read_cursor(cursor: str) -> tuple[int, str]:
    """What `written_cursor` wrote. Raises Invalid for anything else."""
    try:
        ts_us, name = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError):  # no base64, no JSON, or no pair
        raise no_cursor() from None
    if not isinstance(ts_us, int) or not 0 <= ts_us < MAX_US:
        raise no_cursor()
    if not isinstance(name, str) or id_fault(name):
        raise no_cursor()
    return ts_us, name


def no_cursor() -> Invalid:
    """The error for what is no cursor."""
    return Invalid("cursor: should be the next_cursor of an earlier answer; leave it out for the first page")
