"""One finding of `doctor`."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at: `ok`, `note` (worth knowing) or `fail` (to be mended, as `remedy` says)."""

    level: str
    text: str
    remedy: str = ""
