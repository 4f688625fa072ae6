"""Takes secrets out of what is uploaded: each becomes `[REDACTED]`, and what is around it stays.

A text that is JSON is redacted string by string, keys as well, in its decoded form and with its key's name in view, and
stays JSON of the same shape; what had no secret in it stays as it was written. A text whose colours hide a secret loses
them. Numbers in JSON are not looked at, and a secret that a wrapped line divides is not found.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ctrlb_agent.redacting import secret_formats, user_patterns
from ctrlb_agent.redacting.private_keys import may_have_private_key, without_private_keys
from ctrlb_agent.redacting.secret_assignments import lowered, may_name_a_secret, without_named
from ctrlb_agent.redacting.secret_contexts import is_basic, may_have_context, without_contexts
from ctrlb_agent.redacting.secret_formats import REDACTED
from ctrlb_agent.redacting.secret_names import BOUND, QUOTED, is_secret, kind_of
from ctrlb_agent.redacting.terminal_colours import has_escapes, without_escapes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctrlb_agent.redacting.user_patterns import OwnPattern

IDENTITY = frozenset(
    [
        "_timestamp", "host", "harness", "session_id", "parent_session", "agent_id", "run_id", "agent", "seq",
        "block_idx", "role", "block_type", "tool_name", "tool_use_id", "uuid", "message_id", "model", "user_name",
    ]
)  # fmt: skip
"""The columns of a row that are never changed: they say which row it is."""
MAX_DEPTH = 20
"""How deep JSON in a string of JSON, or a value in a value, is looked into; what is deeper is replaced."""
LONG_STRING_CHARS = 100
MAX_ROUNDS = 5
"""A replacement can uncover another secret; after so many rounds the text is taken as it is."""

_STRUCTURE = re.compile(r"[\"{}\[\]:,]")
_HEADERS = frozenset(["authorization", "proxy-authorization", "cookie", "set-cookie"])
_PARTS_OF_JWK = frozenset(["d", "p", "q", "dp", "dq", "qi", "k"])
"""What a key as JSON has that its public half has not."""
_JWK_PART = re.compile(r"[\w-]{20,2000}={0,2}\Z")
_KIND_OF_SECRET = re.compile(r"\"kind\"\s{0,20}:\s{0,20}\"Secret\"")
_DECODER = json.JSONDecoder()


def redact(text: str, own: Sequence[OwnPattern] = ()) -> str:
    """The text without its secrets; the same text when it has none. Redacting twice changes nothing more."""
    return _in_rounds(text, lambda before: _redacted(before, own, 0))


def redact_row(row: Mapping[str, Any], own: Sequence[OwnPattern] = ()) -> dict[str, Any]:
    """A row without the secrets in its text: body, command, paths, and every column that is not its identity."""
    return {
        column: value if column in IDENTITY else _redacted_value(column, value, own, 0) for column, value in row.items()
    }


def _redacted_value(name: str, value: Any, own: Sequence[OwnPattern], depth: int) -> Any:
    if isinstance(value, str):
        return _redacted_string(name, value, own, depth)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth >= MAX_DEPTH:
        return REDACTED
    if isinstance(value, dict):
        return {key: _redacted_value(str(key), inner, own, depth + 1) for key, inner in value.items()}
    return [_redacted_value(name, inner, own, depth + 1) for inner in value]


def _redacted_string(name: str, value: str, own: Sequence[OwnPattern], depth: int) -> str:
    """A string that is the value of a name, or of none."""
    kind = kind_of(name) if name else None
    if kind and is_secret(kind, value, BOUND if name.startswith("--") else QUOTED) and not _is_container(value):
        return REDACTED
    if name == "auth" and is_basic(value):
        return REDACTED
    if name.lower() in _HEADERS:
        head = f"{name}: "
        value = without_contexts(head + value)[len(head) :]
    return _redacted(value, own, depth) if depth else redact(value, own)


def _redacted(text: str, own: Sequence[OwnPattern], depth: int) -> str:
    if text.lstrip(" \t\r\n")[:1] in ("{", "[", '"') and (own or _is_worth_parsing(text)) and _is_json(text):
        return _JsonText(text, own, depth).redacted() if depth < MAX_DEPTH else json.dumps(REDACTED)
    return _in_rounds(text, lambda before: _redacted_text(before, own))


def _redacted_text(text: str, own: Sequence[OwnPattern]) -> str:
    redacted = _masked(text, own)
    if has_escapes(text):
        shown = without_escapes(text)
        masked = _masked(shown, own)
        if masked != without_escapes(redacted):
            return masked  # Some secret was hidden by colours, which are gone with it.
    return redacted


def _masked(text: str, own: Sequence[OwnPattern]) -> str:
    text = without_private_keys(text) if may_have_private_key(text) else text
    text = secret_formats.without_known_forms(text)
    text = without_contexts(text)
    text = without_named(text)
    return user_patterns.without_own(text, own) if own else text


def _in_rounds(text: str, redacted: Callable[[str], str]) -> str:
    for _ in range(MAX_ROUNDS):
        before, text = text, redacted(text)
        if text == before:
            break
    return text


def _is_worth_parsing(text: str) -> bool:
    """Whether the text of some JSON might change: each long string is looked at, but short ones all at once first."""
    return (
        text.count('"') * LONG_STRING_CHARS < len(text)
        or "\\u00" in text
        or "\\u2" in text  # an arrow behind a line's number, a frame of a table
        or may_have_private_key(text)
        or may_have_context(text)
        or secret_formats.may_have_known_form(text)
        or _is_of_kubernetes(text)
        or '"kty"' in text
        or may_name_a_secret(text, lowered(text))
    )


def _is_of_kubernetes(text: str) -> bool:
    """Whether JSON is an object of Kubernetes that holds secrets, or a list of such."""
    return '"Secret"' in text and bool(_KIND_OF_SECRET.search(text))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_container(text: str) -> bool:
    return text[:1] in ("{", "[") and _is_json(text)


class _Container:
    """An object or an array that the walk is inside of."""

    def __init__(self, is_object: bool, name: str) -> None:
        self.is_object = is_object
        self.at_key = is_object
        self.own_name = name
        self.name = name
        """What the next string is a value of: the last key, or the name of the array."""
        self.variable = name if is_object and kind_of(name) else ""
        """In an object: what its member `name` says, else its own name, of which the member `value` is the value."""
        self.replaced_keys = 0


class _JsonText:
    """JSON that is redacted in place: only the strings that change are written anew."""

    def __init__(self, text: str, own: Sequence[OwnPattern], depth: int) -> None:
        self._text = text
        self._own = own
        self._depth = depth
        self._is_of_kubernetes = _is_of_kubernetes(text)
        self._has_jwk = '"kty"' in text
        self._stack = [_Container(False, "")]

    def redacted(self) -> str:
        parts: list[str] = []
        done = at = 0
        while True:
            mark = _STRUCTURE.search(self._text, at)
            if mark is None:
                return "".join([*parts, self._text[done:]])
            at = mark.end()
            if mark[0] != '"':
                self._step(mark[0])
                continue
            value, at = _DECODER.raw_decode(self._text, mark.start())
            changed = self._redacted_string(value)
            if changed != value:
                written = self._text[mark.start() : at]
                ascii_only = written.isascii() or "\\u" in written
                parts += [self._text[done : mark.start()], json.dumps(changed, ensure_ascii=ascii_only)]
                done = at

    def _step(self, mark: str) -> None:
        top = self._stack[-1]
        if mark in "{[":
            self._stack.append(_Container(mark == "{", top.name))
        elif mark in "}]":
            self._stack.pop()
        elif mark == ",":
            top.at_key = top.is_object
        else:
            top.at_key = False

    def _redacted_string(self, value: str) -> str:
        top = self._stack[-1]
        if top.at_key:
            top.name = value
            return self._redacted_key(top, value)
        name = top.name
        if top.is_object:
            if self._is_of_kubernetes and top.own_name in ("data", "stringData") and value:
                return REDACTED
            if self._has_jwk and name in _PARTS_OF_JWK and _JWK_PART.match(value):
                return REDACTED
            if name.lower() in ("name", "key"):
                top.variable = value
            elif name == "keyName" and value in ("key1", "key2"):
                top.variable = "access_key"  # of a storage account of Azure
            elif name.lower() in ("value", "stringvalue", "default") and top.variable:
                name = top.variable
        elif value.startswith("--") and "=" not in value:
            # An argument that names the next one, as in ["--token", "x"].
            top.name, name = value, ""
        elif name.startswith("--"):
            top.name = ""
        return _redacted_string(name, value, self._own, self._depth + 1)

    def _redacted_key(self, top: _Container, key: str) -> str:
        changed = _redacted(key, self._own, self._depth + 1)
        if changed != key:
            # Two keys may not become one, or a member would be lost.
            top.replaced_keys += 1
            return changed if top.replaced_keys == 1 else f"{changed}~{top.replaced_keys}"
        return changed
