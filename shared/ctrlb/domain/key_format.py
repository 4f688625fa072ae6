"""How a key is written: `ctrlb_<workspace>_<key id>_<secret><checksum>`.

The prefix and the checksum let a secret scanner find a key, and a typo be refused without a look-up.
"""

import hashlib
import re
import string
import zlib
from dataclasses import dataclass

ALPHABET = string.ascii_letters + string.digits
KEY_ID_CHARS = 12
SECRET_CHARS = 43
CHECKSUM_CHARS = 6
WORKSPACE_PATTERN = r"[a-z0-9][a-z0-9-]{0,31}"
KEY_PREFIX = "ctrlb_"
INGEST_PREFIX = "ctrlbi_"
"""What an ingest credential begins with, so that neither can be taken for the other."""
_KEY = re.compile(
    rf"(?:{KEY_PREFIX}|{INGEST_PREFIX})({WORKSPACE_PATTERN})_([A-Za-z0-9]{{{KEY_ID_CHARS}}})_"
    rf"([A-Za-z0-9]{{{SECRET_CHARS}}})([A-Za-z0-9]{{{CHECKSUM_CHARS}}})"
)


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """The parts of a key that a caller sent."""

    workspace: str
    key_id: str
    secret: str


def written_key(workspace: str, key_id: str, secret: str, prefix: str = KEY_PREFIX) -> str:
    """The key, or ingest credential, as its owner gets to see it, once."""
    head = f"{prefix}{workspace}_{key_id}_{secret}"
    return head + _checksum(head)


def read_key(text: str, prefix: str = KEY_PREFIX) -> PresentedKey | None:
    """The parts of a key, or ingest credential, or None when it is not one or has a typo in it."""
    match = _KEY.fullmatch(text)
    if match is None or not text.startswith(prefix) or _checksum(text[:-CHECKSUM_CHARS]) != match[4]:
        return None
    return PresentedKey(match[1], match[2], match[3])


def secret_hash(secret: str) -> str:
    """What is stored of a secret. It has 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _checksum(head: str) -> str:
    value = zlib.crc32(head.encode())
    digits = ""
    for _ in range(CHECKSUM_CHARS):
        value, digit = divmod(value, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
