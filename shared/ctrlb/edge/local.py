"""Laptop mode: the handlers of the cloud behind one small server, each request on a thread of its own."""

import asyncio
import base64
import contextlib
import socket
import threading
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import uvicorn

from ctrlb.answers import Answered, admit, refuse
from ctrlb.domain.errors import Invalid, TooLarge, Unavailable
from ctrlb.edge.http import Event, Response, refusal, response
from ctrlb.edge.local_protocol import LocalProtocol
from ctrlb.edge.routes import Router

THREADS = 40
"""Requests under way at once; more wait. A claim spends most of its time waiting, so many fit two cores."""
MAX_REQUESTS = 512
"""Requests taken in at once, with those that wait for a thread or for the rest of their body; others are 503."""
MAX_BODY_BYTES = 10 * 1024 * 1024
"""API Gateway's limit; the contract's own, 4 MiB, is kept by the handlers."""
MAX_DRAINED_BYTES = 256 * 1024 * 1024
"""How much of an oversized body is read and thrown away, so that its sender gets to read the answer."""
SHUTDOWN_S = 5
LAST_WORDS_S = 1.0
LAST_WRITES_S = 0.05

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def serve(listener: socket.socket, router: Router, on_ready: Callable[[], None]) -> bool:
    """Serve until interrupted. `on_ready` is called once, when the first request can be answered.

    Requests under way get SHUTDOWN_S to end, and after that the answer that nothing is promised. Returns
    whether all of them have ended.
    """
    router.find("GET", "/health")
    app = LocalApp(router, on_ready)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again once it has stopped
        uvicorn.Server(server_config(app)).run(sockets=[listener])
    return app.is_idle


def server_config(app: Any) -> uvicorn.Config:
    """What of uvicorn is used: HTTP alone, and nothing printed that any client could cause."""
    return uvicorn.Config(
        app,
        http=LocalProtocol,
        ws="none",  # an upgrade is answered as the request that it is, whatever library is installed
        log_level="error",  # warnings are of what clients send
        access_log=False,
        server_header=False,
        proxy_headers=False,  # else X-Forwarded-For would name the caller of whoever connects from this machine
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


class LocalApp:
    """An ASGI app that hands each request to a Lambda handler, as an API Gateway event."""

    def __init__(self, router: Router, on_ready: Callable[[], None]) -> None:
        self._router = router
        self._on_ready = on_ready
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self._under_way: set[Future[Response]] = set()
        self._answering: set[asyncio.Task[Any]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return not self._under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or the server's own start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            answering = asyncio.current_task()
            assert answering is not None  # a coroutine runs in one
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)
            with contextlib.suppress(_ClientGone):
                await _send(await self._served(scope, receive), send)

    async def _served(self, scope: Scope, receive: Receive) -> Response:
        """The response to one request; when the server stops before there is one, that nothing is promised."""
        if len(self._answering) > MAX_REQUESTS:
            return refusal(
                Unavailable(f"{MAX_REQUESTS} requests are under way already; send the same again"), _event(scope, b"")
            )
        try:
            body = await _read(receive)
            work = self._pool.submit(self._answer, scope, body)
            self._under_way.add(work)
            work.add_done_callback(self._under_way.discard)
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            return response(refuse(Unavailable("the server is stopping; nothing is promised, send the same again")))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        # The MCP server takes a second to import: it does so while the rest already answers.
        threading.Thread(target=self._router.load_all, name="import", daemon=True).start()
        self._on_ready()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._answering:  # they were told to stop a moment ago, and have yet to say so
            await asyncio.wait(self._answering, timeout=LAST_WORDS_S)
        await asyncio.sleep(LAST_WRITES_S)  # what was said leaves with the loop's next turns
        await send({"type": "lifespan.shutdown.complete"})

    def _answer(self, scope: Scope, body: bytes | None) -> Response:
        answered = admit(lambda: self._handle(scope, body))
        return response(answered) if isinstance(answered, Answered) else answered

    def _handle(self, scope: Scope, body: bytes | None) -> Response:
        raw_path = scope["raw_path"].decode("ascii", "replace")
        event = _event(scope, body or b"")
        if body is None:
            return refusal(TooLarge(f"the body is larger than {MAX_BODY_BYTES:,} bytes; send less in one call"), event)
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
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(_header_text(value))
    try:
        text, encoded = body.decode(), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body).decode(), True
    client = scope.get("client") or ("", 0)
    return {
        "version": "2.0",
        "rawPath": scope["path"],
        "rawQueryString": scope["query_string"].decode("latin-1"),
        "headers": {name: ",".join(values) for name, values in headers.items()},
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
