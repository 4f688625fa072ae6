"""HTTP as uvicorn reads it, with what a server needs that anybody may talk to: bounds, and one error shape."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ctrlb.answers import refuse
from ctrlb.domain.errors import Invalid

MAX_HEAD_BYTES = 64 * 1024
"""A longer head (request line and headers) is refused. Looked at as it comes, so one read, 256 KiB, may pass."""

PATIENCE_S = 60.0
"""How long a client may take to send a request whole, or to fetch an answer, before its connection is ended."""


class LocalProtocol(HttpToolsProtocol):
    """A connection. What it cannot read never reaches a handler, and is refused in the one error shape too."""

    _in_head = True
    _head_bytes = 0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client is there; its request is awaited."""
        super().connection_made(transport)
        self._await_client()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop_awaiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the head is over its bound."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        super().on_message_begin()
        self._await_client()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; one that comes after the body (a trailer) is passed over: it could change what was decided."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is read; the body follows."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there, and to be answered, unless it was refused before it was whole."""
        super().on_message_complete()
        if self._is_answering():
            self._stop_awaiting()
        else:
            self._await_client()

    def on_response_complete(self) -> None:
        """The answer is written; the client is to fetch it, and may send the next request."""
        super().on_response_complete()
        self._await_client()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio lets it say that the transport stays open
        """The client sends no more. If it waits for an answer, it gets that first."""
        return self._close_once_answered()

    def send_400_response(self, msg: str) -> None:
        """Refuse what no handler gets to see, and hang up; but a request before it is answered first, and alone."""
        if self._close_once_answered():
            return
        fault = f"this is no HTTP request that can be read, or its head is over {MAX_HEAD_BYTES // 1024} KiB"
        body = refuse(Invalid(fault)).answer.model_dump_json(exclude_unset=True).encode()
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()

    def _close_once_answered(self) -> bool:
        """Whether a whole request is being answered; then the connection ends with its answer."""
        if not self._is_answering():
            return False
        self.cycle.keep_alive = False
        self.flow.pause_reading()
        return True

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _await_client(self) -> None:
        self._stop_awaiting()
        self._patience = self.loop.call_later(PATIENCE_S, self._give_up)

    def _stop_awaiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _give_up(self) -> None:
        if self._is_answering():  # and the client has begun to send the next request
            self._await_client()
        else:
            self.transport.abort()
