"""What can be the address of a server."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f<>\"{}|\\^`]")


def checked_url(url: str) -> str:
    """CtrlB's address without a slash or `/mcp` at its end. Raises ValueError, whose text follows the url's name."""
    url = re.sub(r"(?:/mcp)?/*$", "", url.strip())
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or _NOT_IN_URL.search(url):
        raise ValueError("is not the address of a server: it should be like https://ctrlb.example.com")
    if not is_endpoint(url):
        raise ValueError("has a port, or characters, that no address can have")
    if parts.username or parts.password or "?" in url or "#" in url:
        raise ValueError("should be an address only, without a user, a query or a fragment")
    return url


def is_endpoint(address: str) -> bool:
    """Whether something can be asked there over HTTP; a path, a query and a user may be in it."""
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no number, or too large
        return False
    return is_whole and not _NOT_IN_URL.search(address) and is_utf8(address)


def is_utf8(text: str) -> bool:
    """Whether the text can be written: an argument of a program may hold any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
