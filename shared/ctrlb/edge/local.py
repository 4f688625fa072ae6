"""Laptop mode: the handlers of the cloud behind one small server, each request on a thread of its own."""

import asyncio
import base64
import socket
import threading
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ctrlb.answers import refuse
from ctrlb.domain.errors import Invalid, TooLarge
from ctrlb.edge.console import console_file
from ctrlb.edge.http import Event, Response, refusal
from ctrlb.edge.routes import Router

THREADS = 40
"""Requests under way at once; more wait. A claim spends most of its time waiting, so many fit two cores."""
MAX_BODY_BYTES = 10 * 1024 * 1024
"""API Gateway's limit; the contract's own, 4 MiB, is kept by the handlers."""
MAX_DRAINED_BYTES = 256 * 1024 * 1024
"""How much of an oversized body is read and thrown away, so that its sender gets to read the answer."""
SHUTDOWN_S = 5

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def serve(listener: socket.socket, router: Router, web: Path, on_ready: Callable[[], None]) -> None:
    """Serve until interrupted. `on_ready` is called once, when the first request can be answered."""
    router.find("GET", "/health")
    config = uvicorn.Config(
        LocalApp(router, web, on_ready),
        http=_Protocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    uvicorn.Server(config).run(sockets=[listener])


class _Protocol(HttpToolsProtocol):
    """HTTP as uvicorn reads it; what it cannot read is refused in the one error shape, too."""

    def send_400_response(self, msg: str) -> None:
        """Answer a request that no handler gets to see, and hang up."""
        answer = refuse(Invalid("this is no HTTP request that can be read: its head may be too long")).answer
        body = answer.model_dump_json(exclude_unset=True).encode()
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()


class LocalApp:
    """An ASGI app that hands each request to a Lambda handler, as an API Gateway event."""

    def __init__(self, router: Router, web: Path, on_ready: Callable[[], None]) -> None:
        self._router = router
        self._web = web
        self._on_ready = on_ready
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or the server's own start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            try:
                body = await _read(receive)
            except _ClientGone:
                return
            response = await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, scope, body)
            await _send(response, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        # The MCP server takes a second to import: it does so while the rest already answers.
        threading.Thread(target=self._router.load_all, name="import", daemon=True).start()
        self._on_ready()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._pool.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    def _answer(self, scope: Scope, body: bytes | None) -> Response:
        raw_path = scope["raw_path"].decode("ascii", "replace")
        event = _event(scope, body or b"")
        if body is None:
            return refusal(TooLarge(f"the body is larger than {MAX_BODY_BYTES:,} bytes; send less in one call"), event)
        if file := console_file(self._web, event):
            return file
        try:
            handler, parameters = self._router.find(scope["method"], raw_path)
        except UnicodeDecodeError:
            return refusal(Invalid("the path should be percent-encoded UTF-8"), event)
        return handler({**event, "pathParameters": parameters}, None)


class _ClientGone(Exception):
    """The client hung up before its body was whole; there is nobody to answer."""


async def _read(receive: Receive) -> bytes | None:
    """The whole body, or None when it is over the limit."""
    body = bytearray()
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        size += len(message.get("body", b""))
        if size <= MAX_BODY_BYTES:
            body += message.get("body", b"")
        if not message.get("more_body") or size > MAX_DRAINED_BYTES:
            return bytes(body) if size <= MAX_BODY_BYTES else None


def _event(scope: Scope, body: bytes) -> Event:
    """The request as API Gateway would hand it to Lambda (HTTP API, payload format 2.0)."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), _header_text(value)
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    try:
        text, encoded = body.decode(), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body).decode(), True
    client = scope.get("client") or ("", 0)
    return {
        "version": "2.0",
        "rawPath": scope["path"],
        "rawQueryString": scope["query_string"].decode("latin-1"),
        "headers": headers,
        "requestContext": {
            "http": {"method": scope["method"], "path": scope["path"], "sourceIp": client[0]},
            "requestId": uuid.uuid4().hex,
        },
        "body": text,
        "isBase64Encoded": encoded,
    }


async def _send(response: Response, send: Send) -> None:
    body = response.get("body", "")
    content = base64.b64decode(body) if response.get("isBase64Encoded") else body.encode()
    headers = [(name.encode(), str(value).encode("latin-1")) for name, value in response.get("headers", {}).items()]
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": response["statusCode"], "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _header_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
