"""Grants as the text that both stores of identities keep."""

import json
from collections.abc import Iterable

from ctrlb.domain.rows import Grant


def written_grants(grants: Iterable[Grant]) -> str:
    """The grants as JSON; empty for none."""
    pairs = [[grant.dataset, grant.access] for grant in grants]
    return json.dumps(pairs) if pairs else ""


def read_grants(text: str) -> tuple[Grant, ...]:
    """What `written_grants` wrote."""
    return tuple(Grant(dataset, access) for dataset, access in json.loads(text)) if text else ()
