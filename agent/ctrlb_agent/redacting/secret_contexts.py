"""Finds secrets by where they stand: in a URL before the host, in a header, behind an option of a known command."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ctrlb_agent.redacting.kubernetes_secrets import may_have_manifest, spans_of_manifests
from ctrlb_agent.redacting.secret_calls import CALLS, ESCAPED, SQL_BEFORE, SQL_PASSWORD, USERS
from ctrlb_agent.redacting.secret_commands import COMMANDS, OPTION, OPTIONS, PIPED
from ctrlb_agent.redacting.secret_formats import REDACTED, replaced
from ctrlb_agent.redacting.secret_names import BOUND, LOOSE, PASSWORD, TOKEN, is_secret
from ctrlb_agent.redacting.seed_phrases import may_have_phrase, spans_of_phrases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctrlb_agent.redacting.secret_commands import Rows

_URL_PASSWORD = re.compile(r"://[^\s:/?#@\"'<>\\`,;()\[\]]{0,128}:([^\s\"'`\\<>/]{1,256})@(?=[\w\[$%{.*-])")
_URL_TOKEN = re.compile(r"(?:https?|wss?|nats|tls)://(?=[A-Za-z_-]{0,60}[0-9])([\w-]{20,256})@(?=[a-z])")
_URL_SIGNATURE = re.compile(
    r"(?:[?&;](?:\\?u0026|amp;)?|, ?)(?:sig|X-(?:Amz|Goog)-Signature|Signature)=([\w%+/=-]{20,1024})"
)

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
_COOKIES = r"((?:[\w.$-]{1,80}=[^\s;\"'`\\,]{1,4096};[ \t]?){0,60}[\w.$-]{1,80}=[^\s;\"'`\\,]{1,4096})"
_COOKIE = re.compile(r"ookie(?:\\{0,15}[\"'`])?(?:[ \t]{0,9}[:=][ \t]{0,9}|[ \t]{1,4})(?:\\{0,15}[\"'`])?" + _COOKIES)
_COOKIE_VALUE = re.compile(r"([\w.$-]{1,80})=([^\s;\"'`\\,]{1,4096})")
_COOKIE_ATTRIBUTES = frozenset(["path", "domain", "expires", "max-age", "samesite", "priority", "version"])
_SESSION_COOKIE = re.compile(r"(?i)sess|auth|token|sid|jwt|csrf|xsrf|login|remember|secret|connect|identity|key")

_USER_OPTION = re.compile(
    r"-(?:u(?<=[ \t]-u)|-user|-proxy-user|U(?<=[ \t]-U)|[A-Za-z]{1,6}u(?=[ \t]))(?:[ \t]{1,4}|=)?"
    r"(?P<quote>\\{0,15}[\"'])?(?:[\w.@+-]{0,80}):"
    r"(?P<secret>(?(quote)[^\"'\\\n]{1,256}(?=\\{0,15}[\"']|\Z)|[^\s\"'`\\]{1,256}))"
)
_COOKIE_OPTION = re.compile(r"[ \t]-b[ \t]{0,4}\\{0,15}[\"']?" + _COOKIES)
_COOKIE_OF_JAR = re.compile(
    r"(?:\t|\\{1,15}t)(?:TRUE|FALSE)(?:\t|\\{1,15}t)[0-9]{1,12}(?:\t|\\{1,15}t)"
    r"([\w.$-]{1,80}?)(?:\t|\\{1,15}t)([^\s\"'`\\]{1,4096})"
)
"""A line of a file of cookies, as curl and wget keep them."""
_LITERAL = re.compile(r"--from-literal[ \t=]{1,4}\\{0,15}[\"']?[\w.-]{1,80}=\\{0,15}[\"']?([^\s\"'`\\]{1,1000})")
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
        or any(word in text for word in ("--from-literal", "tFALSE", "tTRUE"))
        or bool(_sql_spans(text))
        or may_have_manifest(text)
        or bool(may_have_phrase(text) and spans_of_phrases(text))
        or any(True for _ in _places(text))
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
        spans += [found.span("secret") for found in _USER_OPTION.finditer(text) if _is_of_curl(text, found)]
        for cookies in _COOKIE_OPTION.finditer(text):
            spans += _cookie_spans(text, cookies) if _is_of(text, cookies, "curl") else []
    if "--from-literal" in text:
        spans += [found.span(1) for found in _LITERAL.finditer(text) if _is_literal_of_secret(text, found)]
    if '"auth' in text or "_auth" in text:
        spans += [found.span(1) for found in _AUTH_ENTRY.finditer(text) if is_basic(found[1])]
    spans += [span for span in _places(text) if _stands_for_itself(text[span[0] : span[1]])]
    return replaced(text, [*spans, *_sql_spans(text), *_spans_of_many_lines(text)])


def _spans_of_many_lines(text: str) -> list[tuple[int, int]]:
    spans = spans_of_manifests(text) if may_have_manifest(text) else []
    return spans + (spans_of_phrases(text) if may_have_phrase(text) else [])


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where commands, calls and files have what may be a password."""
    for rows in _rows(text):
        for word, patterns in rows:
            if word in text:
                for pattern in patterns:
                    for found in _compiled(pattern).finditer(text):
                        yield found.span(found.lastindex or 0)


def _rows(text: str) -> Iterator[Rows]:
    """The tables that could find something. One character is looked for much faster than each word of a table."""
    yield COMMANDS
    yield CALLS
    if OPTION.search(text):
        yield OPTIONS
    if "|" in text:
        yield PIPED
    if "@" in text:
        yield USERS
    if "%" in text:
        yield ESCAPED


@lru_cache(maxsize=500)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


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
    if "TRUE" in text or "FALSE" in text:
        spans += [found.span(2) for found in _COOKIE_OF_JAR.finditer(text) if _is_telling(found[1], found[2])]
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
    return [
        cookie.span(2)
        for cookie in _COOKIE_VALUE.finditer(text, *header.span(1))
        if cookie[1].lower() not in _COOKIE_ATTRIBUTES and _is_telling(cookie[1], cookie[2])
    ]


def _is_telling(name: str, value: str) -> bool:
    """Whether a cookie may say who somebody is."""
    return bool(len(value) > 20 or _SESSION_COOKIE.search(name)) and is_secret(TOKEN, value, BOUND)


def _is_of(text: str, found: re.Match[str], command: str) -> bool:
    """Whether the option belongs to such a command before it, which may be some continued lines above."""
    before = text[max(0, found.start() - _COMMAND_CHARS) : found.start()]
    begins = before.rfind(command)
    return begins >= 0 and not re.search(r"[^\\]\n|[|;]", before[begins:])


def _is_of_curl(text: str, found: re.Match[str]) -> bool:
    return _is_of(text, found, "curl") and _stands_for_itself(found["secret"])


def _is_literal_of_secret(text: str, found: re.Match[str]) -> bool:
    return _is_of(text, found, "create secret") and _stands_for_itself(found[1])


def _sql_spans(text: str) -> list[tuple[int, int]]:
    if "PASSWORD" not in text and "password" not in text:
        return []
    return [found.span(1) for found in SQL_PASSWORD.finditer(text) if _is_sql(text, found)]


def _is_sql(text: str, found: re.Match[str]) -> bool:
    """Whether the password is of a statement as `ALTER ROLE app PASSWORD '…'`."""
    statement = text[max(0, found.start() - _SQL_CHARS) : found.start()]
    return bool(SQL_BEFORE.search(statement[statement.rfind(";") + 1 :])) and _stands_for_itself(found[1])


def _stands_for_itself(value: str) -> bool:
    """Whether it is a password as it is, and no variable or example."""
    return value != REDACTED and (
        value.isdigit()
        or is_secret(PASSWORD, value.replace(" ", "-"), BOUND)
        or value.lower() in ("password", "secret")
    )
