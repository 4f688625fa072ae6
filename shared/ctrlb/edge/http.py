"""The HTTP door: an API Gateway event (payload 2.0) becomes fields, and what was answered its response."""

import base64
import binascii
import functools
import json
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from pydantic_core import from_json

from ctrlb.answers import Answered, Fields, answer, refuse
from ctrlb.domain.errors import CtrlbError, Invalid, MethodNotAllowed, NotFound, TooLarge
from ctrlb.edge.identity import with_client
from ctrlb.edge.limits import check_refusals, count_refusal, let_in
from ctrlb.edge.log import log_request
from ctrlb.models import MAX_RECORDS, Answer
from ctrlb.operations import MCP_PATH, OPERATIONS, Operation, operation_of
from ctrlb.wiring import open_stores, ports

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_GZIP_MEMBERS = 1_000
GZIP_PIECE_BYTES = 64 * 1024
"""Inflated at once: what lies behind a member's end is copied, so it must not be all that follows."""
MAX_SHOWN_CHARS = 80
"""Of a field's name that the caller chose, in a message."""
_TOO_LARGE = f"the body is larger than 4 MiB ({MAX_BODY_BYTES:,} bytes); send less in one call"

Event = Mapping[str, Any]
Response = dict[str, Any]
Handler = Callable[[Event, Any], Response]


def handler_for(run: Callable[..., Answer]) -> Handler:
    """The Lambda handler of an operation."""
    operation = operation_of(run)
    if operation.asks_who:
        open_stores()  # before the first request

    def handler(event: Event, context: Any) -> Response:
        started_s = time.perf_counter()
        stores = with_client(ports(), event)

        def read() -> Fields:
            if operation.lets_in:
                check_refusals(event)
            return _fields(operation, event)

        answered = answer(operation, lambda: let_in(event, stores), read, stores)
        if operation.lets_in and answered.status == 401:
            count_refusal(event)
        log_request(operation.name, "http", request_id(event), answered, started_s)
        return response(answered, operation.http_fields)

    return handler


def refuse_unknown(event: Event, context: Any) -> Response:
    """Answer what no route serves: 405 where the path knows other methods, else 404."""
    return refusal(_unknown(event["requestContext"]["http"]["method"], event["rawPath"]), event)


def refusal(error: CtrlbError, event: Event) -> Response:
    """The response to a request that reaches no operation."""
    started_s = time.perf_counter()
    answered = refuse(error)
    log_request("refuse_unknown", "http", request_id(event), answered, started_s)
    return response(answered)


def response(answered: Answered, shown: frozenset[str] | None = None) -> Response:
    """What API Gateway sends: compact JSON, with only the `shown` fields of an answer where they are named."""
    include = set(shown) if shown is not None and answered.status < 400 else None
    body = answered.answer.model_dump_json(by_alias=True, exclude_unset=True, include=include)
    headers = {"content-type": "application/json", **answered.headers}
    return {"statusCode": answered.status, "headers": headers, "body": body, "isBase64Encoded": False}


def header_value(headers: Mapping[str, str], name: str) -> str | None:
    """A header's text, or None where it is absent, empty, or a variable that a client did not expand."""
    value = headers.get(name, "").strip()
    return None if not value or value.startswith("${") else value


def _fields(operation: Operation, event: Event) -> Fields:
    """What the caller sent. The path wins over the body, and the agent may come in a header."""
    may_have_body = operation.method != "GET" and bool(operation.request.model_fields)
    body = read_body(event) if may_have_body else b""  # where nothing is asked, nothing need be sent or read
    takes_body = may_have_body and (operation.method != "DELETE" or bool(body))
    fault = ""
    values: dict[str, Any]
    if takes_body:
        values, fault = _json_fields(operation, body)
    else:
        values = _query_fields(operation, event.get("rawQueryString", ""))
    if "agent" in operation.request.model_fields and values.get("agent") in (None, ""):
        values["agent"] = header_value(event["headers"], "x-ctrlb-agent")
    values.update(event.get("pathParameters") or {})
    return Fields(values, are_text=not takes_body, fault=fault)


def _query_fields(operation: Operation, query: str) -> dict[str, Any]:
    """The query's fields. One that comes twice is refused: nobody can tell which was meant."""
    values: dict[str, Any] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise Invalid("the query should be percent-encoded UTF-8") from None
    for name, value in pairs:
        if name in values and name in operation.request.model_fields:
            raise Invalid(f"{name}: is given twice; send it once")
        values[name] = value
    return values


def read_body(event: Event) -> bytes:
    """The body as bytes, inflated, at most MAX_BODY_BYTES of it."""
    text = event.get("body") or ""
    try:
        body = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode("utf-8", "surrogatepass")
    except binascii.Error:
        raise Invalid("the body is not the base64 that the request says it is") from None
    encoding = event["headers"].get("content-encoding", "").strip().lower()
    if encoding == "gzip":
        body = _inflate(body)
    elif encoding not in ("", "identity"):
        raise Invalid(f"Content-Encoding: gzip or none is understood, not {encoding[:40]}")
    if len(body) > MAX_BODY_BYTES:
        raise TooLarge(_TOO_LARGE)
    return body


def _inflate(body: bytes) -> bytes:
    """The gzip body's members, one after the other, inflated until they are over MAX_BODY_BYTES."""
    inflated, rest = bytearray(), memoryview(body)
    for _ in range(MAX_GZIP_MEMBERS):
        inflater = zlib.decompressobj(wbits=31)
        while not inflater.eof:
            if not rest:
                raise Invalid("the gzip body ends too early; send it whole")
            piece = rest[:GZIP_PIECE_BYTES]
            try:
                inflated += inflater.decompress(piece, MAX_BODY_BYTES + 1 - len(inflated))
            except zlib.error:
                raise Invalid("the body is not the gzip that Content-Encoding says it is") from None
            if len(inflated) > MAX_BODY_BYTES:
                return bytes(inflated)
            rest = rest[len(piece) - len(inflater.unused_data) :]
        if not rest:
            return bytes(inflated)
    raise Invalid(f"the gzip body has more than {MAX_GZIP_MEMBERS:,} members; compress it as one")


def _json_fields(operation: Operation, body: bytes) -> tuple[dict[str, Any], str]:
    """The body's fields, and what is wrong with it as JSON, where its fields can be read all the same.

    Python reads a little more than JSON allows (NaN, lone surrogates). It is only asked once the strict
    reader has refused, so that the refusal can name the field.
    """
    fault = ""
    if not body:
        raise Invalid("the body is not JSON: it is empty")
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        fault = f"the body is not JSON: {error}"
        try:
            content = json.loads(body.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            raise Invalid(fault) from None
        if not (named := named_fault(content, operation)):
            raise Invalid(fault) from None
        fault = named
    if operation.body_field:
        if not isinstance(content, list):
            raise Invalid("the body should be a JSON array of rows")
        return {operation.body_field: content}, fault
    if not isinstance(content, dict):
        raise Invalid("the body should be a JSON object")
    return content, fault


def named_fault(content: Any, operation: Operation) -> str:
    """Which field holds what Python reads but JSON does not have; empty where none does."""
    are_rows = operation.body_field and isinstance(content, list)
    rows = enumerate(content[: MAX_RECORDS + 1]) if are_rows else [(None, content)]
    for index, fields in rows:
        for name, value in fields.items() if isinstance(fields, dict) else ():
            try:
                json.dumps({name: value}, ensure_ascii=False, allow_nan=False).encode()
            except (ValueError, RecursionError):
                row = "" if index is None else f"row {index}: "
                shown = name[:MAX_SHOWN_CHARS].encode("ascii", "backslashreplace").decode()
                return f"{row}{shown}: holds half of a surrogate pair, or a number that JSON does not have"
    return ""


@functools.cache
def _segments(path: str) -> list[str]:
    return path.split("/")


def _unknown(method: str, path: str) -> NotFound | MethodNotAllowed:
    asked = path.split("/")
    allow = {operation.method for operation in OPERATIONS if _matches(_segments(operation.path), asked)}
    allow.discard(method)  # an operation of laptop mode alone
    if path == MCP_PATH:
        allow.add("POST")
    if allow:
        return MethodNotAllowed(f"{method} is not served here", tuple(sorted(allow)))
    return NotFound("there is nothing at this path; GET /openapi.json lists what is served")


def _matches(segments: list[str], asked: list[str]) -> bool:
    return len(segments) == len(asked) and all(
        known == given or (known.startswith("{") and given) for known, given in zip(segments, asked, strict=True)
    )


def request_id(event: Event) -> str:
    """The name under which the request stands in the log."""
    return str(event["requestContext"].get("requestId", ""))
