"""The MCP door: `ANY /mcp` by the official SDK, stateless, through Mangum. Its tools are operations.

A request is let in before the SDK sees it, so a refused key gets the same answer as over HTTP. What the
SDK sees is made here: the body, and of the headers those that it reads. The SDK costs seconds to import;
only this module does.
"""

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import mcp_types as mcp
from mangum import Mangum
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json

from ctrlb import __version__
from ctrlb.answers import Answered, Fields, admit, answer, refuse
from ctrlb.domain.access import Caller
from ctrlb.domain.errors import Forbidden, Invalid, MethodNotAllowed
from ctrlb.edge.http import Event, Handler, Response, header_value, named_fault, read_body, request_id, response
from ctrlb.edge.identity import with_client
from ctrlb.edge.limits import let_in
from ctrlb.edge.log import log_request
from ctrlb.models import Answer
from ctrlb.operations import MCP_PATH, OPERATIONS, Operation
from ctrlb.wiring import open_stores, ports

INSTRUCTIONS = """\
CtrlB lets agents that work in one directory share a record, and remember what past sessions did.
Before you choose a task: call `peers`. Before you work on a file or task: call `claim` and go on only if \
`held` is true; otherwise pick other work. Claim again to renew during long work. When it is done: call \
`release` with finished=true. Say what others should know with `post`.
Name files relative to the project's root, or pass `cwd` with an absolute path: another spelling is another file.
To learn from the past: `search_sessions` for words, `find_command` for shell commands, then \
`next_actions` for what happened after a hit and `fetch_records` to read around it."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_CALL = "ctrlb.call"
_FROM_HEADERS = {"run_id": "x-ctrlb-run", "agent": "x-ctrlb-agent"}
_TOOLS = {operation.name: operation for operation in OPERATIONS if operation.tool}


@dataclass(slots=True)
class _Call:
    """A request that was let in, and what came of the tool it called."""

    caller: Caller
    headers: Mapping[str, str]
    body: bytes
    name: str = "serve_mcp"
    answered: Answered | None = None
    """None for a request that calls no tool: the SDK answers those."""


def mcp_handler() -> Handler:
    """The Lambda handler of /mcp."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its lines tell of what clients send; ours say how it ended
    open_stores()
    for name in _TOOLS:
        _tool(name)  # schemas are made before the first request
    threads = threading.local()

    def handler(event: Event, context: Any) -> Response:
        started_s = time.perf_counter()
        call = admit(lambda: _let_in(event))
        if isinstance(call, Answered):
            log_request("serve_mcp", "mcp", request_id(event), call, started_s)
            return response(call)
        if not hasattr(threads, "sdk"):
            threads.sdk = _Sdk()
        served: Response = threads.sdk.serve(call, context)
        answered = call.answered or Answered(served["statusCode"], Answer(), caller=call.caller)
        log_request(call.name, "mcp", request_id(event), answered, started_s)
        return served

    return handler


def _let_in(event: Event) -> _Call:
    """The call, once it is clear who makes it.

    GET would open a stream that never ends, and there is no session to DELETE.
    """
    method = event["requestContext"]["http"]["method"]
    if method != "POST":
        raise MethodNotAllowed(f"{method} is not served here; the MCP server takes POST", ("POST",))
    _check_origin(event)
    return _Call(let_in(event, with_client(ports(), event)), event["headers"], read_body(event))


def _check_origin(event: Event) -> None:
    """Refuse the page of another site, as the protocol asks: names can be made to point at this machine."""
    origin = event["headers"].get("origin")
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        host = ""
    if host not in (*_LOOPBACK, event["requestContext"].get("domainName")):
        raise Forbidden("a page of another origin may not call the MCP server; call it without an Origin header")


class _Sdk:
    """The SDK's server behind Mangum, for one thread: an event loop, and so the SDK's tasks, belong to one."""

    def __init__(self) -> None:
        server: Server[Any] = Server(
            "ctrlb",
            version=__version__,
            title="CtrlB",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda name: None,  # no argument comes in an Mcp-Param header
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
        )
        manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        # A manager can run only once, so Mangum must not do it for every event; and it runs only while this is kept.
        self._running = manager.run()
        loop.run_until_complete(self._running.__aenter__())
        self._mangum = Mangum(manager.asgi_app, lifespan="off")

    def serve(self, call: _Call, context: Any) -> Response:
        """Let the SDK answer. It is told that JSON is sent and wanted, since nothing else is spoken here."""
        headers = {name: value.strip() for name, value in call.headers.items() if name.startswith("mcp-")}
        event = {
            "version": "2.0",
            "requestContext": {"http": {"method": "POST", "path": MCP_PATH, "sourceIp": ""}},
            "headers": headers | {"content-type": "application/json", "accept": "application/json, text/event-stream"},
            "body": call.body,
            _CALL: call,
        }
        served: Response = self._mangum(event, context)
        served["headers"].pop("content-length", None)  # whoever sends the response counts, and twice is once too often
        return served


async def _list_tools(
    context: ServerRequestContext[Any], params: mcp.PaginatedRequestParams | None
) -> mcp.ListToolsResult:
    caller = _call(context).caller
    return mcp.ListToolsResult(tools=[_tool(name) for name, operation in _TOOLS.items() if _is_on(operation, caller)])


async def _call_tool(context: ServerRequestContext[Any], params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
    call = _call(context)
    operation = _TOOLS.get(params.name)
    call.name = operation.name if operation else "unknown_tool"
    call.answered = _answer(operation, call, dict(params.arguments or {}))
    text = call.answered.answer.model_dump_json(by_alias=True, exclude_unset=True)
    content: list[mcp.ContentBlock] = [mcp.TextContent(type="text", text=text)]
    if call.answered.status >= 400:
        return mcp.CallToolResult(content=content, is_error=True)
    return mcp.CallToolResult(content=content, structured_content=from_json(text))


def _answer(operation: Operation | None, call: _Call, arguments: dict[str, Any]) -> Answered:
    if operation is None:
        return refuse(Invalid(f"there is no such tool; the tools are {', '.join(_TOOLS)}"), call.caller)
    if not _is_on(operation, call.caller):
        return refuse(
            Forbidden(
                f"write tools are off on this workspace's MCP server, {operation.name} among them; "
                "ask your CtrlB administrator"
            ),
            call.caller,
        )
    for name, header in _FROM_HEADERS.items():
        if name in operation.request.model_fields and arguments.get(name) in (None, ""):
            arguments[name] = header_value(call.headers, header)
    fault = named_fault(arguments, operation)  # the SDK, too, reads a little more than JSON allows
    return answer(operation, lambda: call.caller, lambda: Fields(arguments, fault=fault), ports())


def _is_on(operation: Operation, caller: Caller) -> bool:
    return caller.settings.write_tools or not operation.writes


@functools.cache
def _tool(name: str) -> mcp.Tool:
    operation = _TOOLS[name]
    arguments = operation.request.model_json_schema()
    del arguments["description"]  # the tool's own
    return mcp.Tool(
        name=name,
        description=" ".join((operation.request.__doc__ or "").split()),
        input_schema=_lean(arguments),
        output_schema=_lean(operation.answer.model_json_schema(mode="serialization")),
        # Codex runs a tool unasked only if it is read-only, or neither destructive nor open to the world.
        annotations=mcp.ToolAnnotations(
            read_only_hint=not operation.writes,
            destructive_hint=False,
            idempotent_hint=name != "post",
            open_world_hint=False,
        ),
    )


def _lean(schema: Any) -> Any:
    """The schema without titles and empty defaults: every session pays for these words in its context."""
    if isinstance(schema, list):
        return [_lean(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {field: _lean(kind) for field, kind in value.items()} if name in ("properties", "$defs") else _lean(value)
        for name, value in schema.items()
        if not (name == "title" or (name == "default" and value in ("", None)))
    }


def _call(context: ServerRequestContext[Any]) -> _Call:
    """The call that the SDK is answering."""
    assert context.request is not None  # every request comes over HTTP
    call: _Call = context.request.scope["aws.event"][_CALL]
    return call
