"""The console's door: the files of web/, with what a browser may do with them.

A page is what a person waits for, so its function imports little: what refuses comes when there is something to refuse.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ctrlb.domain.errors import CtrlbError, MethodNotAllowed, Unavailable
from ctrlb.wiring import ports

if TYPE_CHECKING:
    from ctrlb.edge.http import Event, Handler, Response

CONSOLE = "/console/"
_PAGE = "index.html"
_TYPES = {
    _PAGE: "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml; charset=utf-8",
    **dict.fromkeys(("console.js", "session.js", "sign-in.js", "unsaved.js"), "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{elsewhere}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def console_handler(functions: Path) -> "Handler":
    """The Lambda handler of the console, whose files a build puts into the functions' folder.

    In the project they lie beside it. They are read here, so that a missing one is seen before the first request.
    """
    built = functions / "web"
    web = built if built.is_dir() else functions.parent / "web"
    files = {name: (web / name).read_text(encoding="utf-8") for name in _TYPES}

    def handler(event: "Event", context: Any) -> "Response":
        path, method = event["rawPath"], event["requestContext"]["http"]["method"]
        leads_here = path == CONSOLE.rstrip("/") or (path == "/" and "text/html" in event["headers"].get("accept", ""))
        name = (path.removeprefix(CONSOLE) or _PAGE) if path.startswith(CONSOLE) else ""
        if name not in files and not leads_here:
            return _refused(None, event)
        if method != "GET":
            return _refused(MethodNotAllowed(f"{method} is not served here; the console takes GET", ("GET",)), event)
        if leads_here:
            return {"statusCode": 307, "headers": {"location": CONSOLE, **_HEADERS}, "body": ""}
        return {"statusCode": 200, "headers": _headers(name), "body": files[name]}

    return handler


def _refused(error: CtrlbError | None, event: "Event") -> "Response":
    """The response to what is not the console's, or to what is asked of it in a wrong way."""
    from ctrlb.edge.http import refusal, refuse_unknown

    return refusal(error, event) if error else refuse_unknown(event, None)


def _headers(name: str) -> dict[str, str]:
    elsewhere = _token_origin() if name == _PAGE else ""
    policy = _POLICY.format(elsewhere=elsewhere)
    return {"content-type": _TYPES[name], "content-security-policy": policy, **_HEADERS}


def _token_origin() -> str:
    """Where else the page may send requests: to the issuer, for tokens. Nowhere while the issuer does not answer."""
    issuer = ports().issuer
    try:
        place = urlsplit(issuer.places().token_endpoint) if issuer else None
    except Unavailable:
        return ""
    return f" {place.scheme}://{place.netloc}" if place else ""
