"""What a run, agent, session or dataset may be called."""

import re

MAX_ID_CHARS = 200
DATASET_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
MAX_DATASET_CHARS = 64
RESERVED_PREFIX = "_ctrlb_"
_DATASET = re.compile(DATASET_PATTERN)


def id_fault(value: str) -> str | None:
    """Why the text cannot be an id, or None: 1 to 200 printable characters, neither / nor a backslash."""
    if not 1 <= len(value) <= MAX_ID_CHARS:
        return f"should have 1 to {MAX_ID_CHARS} characters, not {len(value):,}"
    if "/" in value or "\\" in value or not value.isprintable():
        return "may hold any printable characters but / and \\"
    return None


def dataset_fault(value: str) -> str | None:
    """Why the text cannot name a sessions dataset, or None."""
    if not _DATASET.fullmatch(value):
        return "should be 1 to 64 letters, digits, _ or -"
    if value.startswith(RESERVED_PREFIX):
        return f"may not begin with {RESERVED_PREFIX}, which is kept for CtrlB's own rows"
    return None


def granted_fault(value: str) -> str | None:
    """Why the text cannot name the datasets of a grant, or None: one, or all that begin with what is before a `*`."""
    begins = value.removesuffix("*")
    if begins == "" and value == "*":
        return None
    if fault := dataset_fault(begins):
        return f"{fault}; a * at the end stands for any further ones"
    return None
