"""Finds secrets by where they stand: in a URL before the host, in a header, behind an option of a known command."""

from __future__ import annotations

import base64
import re

from ctrlb_agent.redacting.secret_commands import COMMANDS, SQL_BEFORE, SQL_PASSWORD
from ctrlb_agent.redacting.secret_formats import REDACTED, replaced
from ctrlb_agent.redacting.secret_names import BOUND, LOOSE, PASSWORD, TOKEN, is_secret

_URL_PASSWORD = re.compile(r"://[^\s:/?#@\"'<>\\`,;()\[\]]{0,128}:([^\s\"'`\\<>/]{1,256})@(?=[\w\[$%{.*-])")
_URL_TOKEN = re.compile(r"https?://(?=[A-Za-z_-]{0,60}[0-9])([\w-]{20,256})@(?=[a-z])")
_URL_SIGNATURE = re.compile(r"[?&;](?:\\?u0026|amp;)?(?:sig|X-(?:Amz|Goog)-Signature|Signature)=([\w%+/=-]{20,1024})")

_AUTHORIZATION = re.compile(
    r"(?:uthorization|UTHORIZATION)(?:\\{0,15}[\"'`])?\]?([ \t]{0,9}(?::|=>?|,)[ \t]{0,9}|[ \t])"
    r"(?:[fFbBrR]{0,2}\\{0,15}[\"'`])?"
    r"(?:([A-Za-z][\w-]{2,20})[ \t]{1,4})?([^\s\"'`\\,;<>]{1,8192})"
)
_SCHEMES = frozenset(
    ["bearer", "basic", "token", "apikey", "api-key", "bot", "key", "negotiate", "ntlm", "digest", "sso-key"]
)
_BEARER = re.compile(r"earer[ \t]{1,4}([A-Za-z0-9._~+/=-]{16,8192})")
_BASIC = re.compile(r"asic[ \t]{1,4}([A-Za-z0-9+/_-]{6,1024}={0,2})")
_COOKIE = re.compile(
    r"ookie(?:\\{0,15}[\"'`])?(?:[ \t]{0,9}[:=][ \t]{0,9}|[ \t]{1,4})(?:\\{0,15}[\"'`])?"
    r"((?:[\w.$-]{1,80}=[^\s;\"'`\\,]{1,4096};[ \t]?){0,60}[\w.$-]{1,80}=[^\s;\"'`\\,]{1,4096})"
)
_COOKIE_VALUE = re.compile(r"([\w.$-]{1,80})=([^\s;\"'`\\,]{1,4096})")
_COOKIE_ATTRIBUTES = frozenset(["path", "domain", "expires", "max-age", "samesite", "priority", "version"])
_SESSION_COOKIE = re.compile(r"(?i)sess|auth|token|sid|jwt|csrf|xsrf|login|remember|secret|connect|identity|key")

_USER_OPTION = re.compile(
    r"-(?:u(?<=[ \t]-u)|-user|-proxy-user|U(?<=[ \t]-U))(?:[ \t]{1,4}|=)?\\{0,15}[\"']?"
    r"([\w.@+-]{0,80}):([^\s\"'`\\]{1,256})"
)
_COMMAND_CHARS = 2000
_SQL_CHARS = 300
_AUTH_ENTRY = re.compile(
    r"(?:\"auth\\{0,15}\":[ \t]{0,9}\\{0,15}\"|_auth[ \t]{0,4}=[ \t]{0,4}\"?)([A-Za-z0-9+/]{8,4096}={0,2})"
)
"""A registry's user and password, as Docker and npm keep them."""


def may_have_context(text: str) -> bool:
    """Whether `without_contexts` could change the text."""
    return (
        ("://" in text and ("@" in text or "sig=" in text or "ignature=" in text))
        or any(word in text for word in ("uthoriz", "UTHORIZ", "earer", "asic ", "ookie", "curl", '"auth', "_auth"))
        or any(_is_sql(text, found) for found in SQL_PASSWORD.finditer(text))
        or any(word in text for word, _ in COMMANDS)
    )


def without_contexts(text: str) -> str:
    """The text with every secret that is known by its place replaced."""
    spans: list[tuple[int, int]] = []
    if "://" in text:
        spans += [found.span(1) for found in _URL_PASSWORD.finditer(text) if _stands_for_itself(found[1])]
        spans += [found.span(1) for found in _URL_TOKEN.finditer(text)]
    if "sig=" in text or "ignature=" in text:
        spans += [found.span(1) for found in _URL_SIGNATURE.finditer(text) if is_secret(TOKEN, found[1], BOUND)]
    spans += _header_spans(text)
    if "curl" in text:
        spans += [found.span(2) for found in _USER_OPTION.finditer(text) if _is_curl(text, found)]
    if '"auth' in text or "_auth" in text:
        spans += [found.span(1) for found in _AUTH_ENTRY.finditer(text) if is_basic(found[1])]
    for word, pattern in COMMANDS:
        if word in text:
            spans += [found.span(1) for found in pattern.finditer(text) if _stands_for_itself(found[1])]
    if "PASSWORD" in text or "password" in text:
        spans += [found.span(1) for found in SQL_PASSWORD.finditer(text) if _is_sql(text, found)]
    return replaced(text, spans)


def _header_spans(text: str) -> list[tuple[int, int]]:
    spans = []
    if "uthorization" in text or "UTHORIZATION" in text:
        spans += [found.span(3) for found in _AUTHORIZATION.finditer(text) if _is_authorization(found)]
    if "earer" in text:
        spans += [found.span(1) for found in _BEARER.finditer(text) if is_secret(TOKEN, found[1], LOOSE)]
    if "asic " in text:
        spans += [found.span(1) for found in _BASIC.finditer(text) if is_basic(found[1])]
    if "ookie" in text:
        for header in _COOKIE.finditer(text):
            spans += _cookie_spans(text, header)
    return spans


def _is_authorization(found: re.Match[str]) -> bool:
    scheme = (found[2] or "").lower()
    if scheme in _SCHEMES:
        return is_secret(TOKEN, found[3], BOUND if found[1].strip() else LOOSE)
    return not scheme and is_secret(TOKEN, found[3], LOOSE)


def is_basic(value: str) -> bool:
    """Whether it is `user:password` in base64."""
    bare = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode("ascii")
    except ValueError:
        return False
    return ":" in decoded and decoded.isprintable()


def _cookie_spans(text: str, header: re.Match[str]) -> list[tuple[int, int]]:
    spans = []
    for cookie in _COOKIE_VALUE.finditer(text, *header.span(1)):
        name, value = cookie.groups()
        telling = len(value) > 20 or _SESSION_COOKIE.search(name)
        if telling and name.lower() not in _COOKIE_ATTRIBUTES and is_secret(TOKEN, value, BOUND):
            spans.append(cookie.span(2))
    return spans


def _is_curl(text: str, found: re.Match[str]) -> bool:
    """Whether the option belongs to a `curl` before it, which may be some continued lines above."""
    command = text[max(0, found.start() - _COMMAND_CHARS) : found.start()]
    begins = command.rfind("curl")
    return begins >= 0 and not re.search(r"[^\\]\n|[|;]", command[begins:]) and _stands_for_itself(found[2])


def _is_sql(text: str, found: re.Match[str]) -> bool:
    """Whether the password is of a statement as `ALTER ROLE app PASSWORD '…'`."""
    statement = text[max(0, found.start() - _SQL_CHARS) : found.start()]
    return bool(SQL_BEFORE.search(statement[statement.rfind(";") + 1 :])) and _stands_for_itself(found[1])


def _stands_for_itself(value: str) -> bool:
    """Whether it is a password as it is, and no variable or example."""
    return value != REDACTED and (
        value.isdigit() or is_secret(PASSWORD, value, BOUND) or value.lower() in ("password", "secret")
    )
