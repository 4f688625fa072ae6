"""The MCP door: `ANY /mcp` by the official SDK, stateless, through Mangum. Its tools are operations.

A request is let in before the SDK sees it, so a refused key gets the same answer as over HTTP. The SDK
costs seconds to import; only this module does.
"""

import asyncio
import functools
import threading
import time
from typing import Any

import mcp_types as mcp
from mangum import Mangum
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from ctrlb import __version__
from ctrlb.answers import Answered, Fields, admit, answer, refuse
from ctrlb.domain.access import Caller
from ctrlb.domain.errors import CtrlbError, Forbidden, Invalid, MethodNotAllowed
from ctrlb.edge.http import Event, Handler, Response, header_value, read_body, refusal, request_id, response
from ctrlb.edge.identity import identify
from ctrlb.edge.log import log_request
from ctrlb.operations import OPERATIONS, Operation
from ctrlb.wiring import ports

INSTRUCTIONS = """\
CtrlB lets agents that work in one directory share a record, and remember what past sessions did.
Before you choose a task: call `peers`. Before you work on a file or task: call `claim` and go on only if \
`held` is true; otherwise pick other work. Claim again to renew during long work. When it is done: call \
`release` with finished=true. Say what others should know with `post`.
To learn from the past: `search_sessions` for words, `find_command` for shell commands, then \
`next_actions` for what happened after a hit and `fetch_records` to read around it."""

_CALLER = "ctrlb.caller"
_TOOLS = {operation.name: operation for operation in OPERATIONS if operation.tool}


def mcp_handler() -> Handler:
    """The Lambda handler of /mcp."""
    ports()
    threads = threading.local()

    def handler(event: Event, context: Any) -> Response:
        started_s = time.perf_counter()
        try:
            body = _checked_body(event)
        except CtrlbError as error:
            return refusal(error, event)
        admitted = admit(lambda: identify(event["headers"].get("authorization"), ports()))
        if isinstance(admitted, Answered):
            log_request("serve_mcp", "mcp", request_id(event), admitted, started_s)
            return response(admitted)
        if not hasattr(threads, "serve"):
            threads.serve = _sdk()  # an event loop, and so the SDK's tasks, belong to one thread
        served: Response = threads.serve(
            {**event, "body": body.decode("utf-8", "replace"), "isBase64Encoded": False, _CALLER: admitted}, context
        )
        return served

    return handler


def _checked_body(event: Event) -> bytes:
    """The body of a POST. GET would open a stream that never ends, and there is no session to DELETE."""
    method = event["requestContext"]["http"]["method"]
    if method != "POST":
        raise MethodNotAllowed(f"{method} is not served here; the MCP server takes POST", ("POST",))
    return read_body(event)


def _sdk() -> Mangum:
    """The SDK's server behind Mangum, its lifespan entered once: the session manager can run only once."""
    server: Server[Any] = Server(
        "ctrlb",
        version=__version__,
        title="CtrlB",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    app = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        # The SDK's allow-list knows localhost only. A browser cannot add our Authorization header unasked.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(app.router.lifespan_context(app).__aenter__())
    return Mangum(app, lifespan="off")


async def _list_tools(
    context: ServerRequestContext[Any], params: mcp.PaginatedRequestParams | None
) -> mcp.ListToolsResult:
    caller, _ = _who(context)
    return mcp.ListToolsResult(tools=[_tool(name) for name, operation in _TOOLS.items() if _is_on(operation, caller)])


async def _call_tool(context: ServerRequestContext[Any], params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
    started_s = time.perf_counter()
    caller, event = _who(context)
    operation = _TOOLS.get(params.name)
    answered = _answer(operation, caller, event, dict(params.arguments or {}))
    log_request(operation.name if operation else "unknown_tool", "mcp", request_id(event), answered, started_s)
    text = answered.answer.model_dump_json(by_alias=True, exclude_unset=True)
    content: list[mcp.ContentBlock] = [mcp.TextContent(type="text", text=text)]
    if answered.status >= 400:
        return mcp.CallToolResult(content=content, is_error=True)
    return mcp.CallToolResult(
        content=content,
        structured_content=answered.answer.model_dump(mode="json", by_alias=True, exclude_unset=True),
    )


def _answer(operation: Operation | None, caller: Caller, event: Event, arguments: dict[str, Any]) -> Answered:
    if operation is None:
        return refuse(Invalid(f"there is no such tool; the tools are {', '.join(_TOOLS)}"), caller)
    if not _is_on(operation, caller):
        return refuse(
            Forbidden(
                f"write tools are off on this workspace's MCP server, {operation.name} among them; "
                "ask your CtrlB administrator"
            ),
            caller,
        )
    for name, header in (("run_id", "x-ctrlb-run"), ("agent", "x-ctrlb-agent")):
        if name in operation.request.model_fields:
            arguments[name] = arguments.get(name) or header_value(event["headers"], header)
    return answer(operation, lambda: caller, lambda: Fields(arguments), ports())


def _is_on(operation: Operation, caller: Caller) -> bool:
    return caller.settings.write_tools or not operation.writes


@functools.cache
def _tool(name: str) -> mcp.Tool:
    operation = _TOOLS[name]
    # Codex runs a tool unasked only if it is read-only, or neither destructive nor open to the world.
    return mcp.Tool(
        name=name,
        description=" ".join((operation.request.__doc__ or "").split()),
        input_schema=_lean(operation.request.model_json_schema()),
        output_schema=_lean(operation.answer.model_json_schema(mode="serialization")),
        annotations=mcp.ToolAnnotations(
            read_only_hint=not operation.writes,
            destructive_hint=False,
            idempotent_hint=name != "post",
            open_world_hint=False,
        ),
    )


def _lean(schema: Any) -> Any:
    """The schema without titles and empty defaults: every session pays for these words in context."""
    if isinstance(schema, list):
        return [_lean(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {field: _lean(kind) for field, kind in value.items()} if name in ("properties", "$defs") else _lean(value)
        for name, value in schema.items()
        if not (name == "title" or (name == "default" and value in ("", None)))
    }


def _who(context: ServerRequestContext[Any]) -> tuple[Caller, Event]:
    """The caller that was let in, and the event they came with."""
    assert context.request is not None  # every request comes over HTTP
    event: Event = context.request.scope["aws.event"]
    return event[_CALLER], event
