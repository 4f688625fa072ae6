"""Laptop mode's console: the files of web/, as they are."""

from pathlib import Path

from ctrlb.edge.http import Event, Response

CONSOLE = "/console/"
_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
}
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def console_file(web: Path, event: Event) -> Response | None:
    """One of the console's files, a redirect for a browser at the root, or None for what is not the console's."""
    path = event["rawPath"]
    if event["requestContext"]["http"]["method"] != "GET":
        return None
    if path == "/console" or (path == "/" and "text/html" in event["headers"].get("accept", "")):
        return {"statusCode": 307, "headers": {"location": CONSOLE}, "body": ""}
    name = path.removeprefix(CONSOLE) or "index.html"
    if not path.startswith(CONSOLE) or name not in _TYPES:
        return None
    headers = {"content-type": _TYPES[name], **_HEADERS}
    return {"statusCode": 200, "headers": headers, "body": (web / name).read_text(encoding="utf-8")}
