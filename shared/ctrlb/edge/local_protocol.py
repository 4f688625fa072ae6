"""HTTP as uvicorn reads it, with what a server needs that anybody may talk to: bounds, and one error shape."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ctrlb.answers import refuse
from ctrlb.domain.errors import Invalid

MAX_HEAD_BYTES = 64 * 1024
"""A longer head (request line and headers) is refused. Looked at as it comes, so one read, 256 KiB, may pass."""


class LocalProtocol(HttpToolsProtocol):
    """A connection. What it cannot read never reaches a handler, and is refused in the one error shape too."""

    _in_head = True
    _head_bytes = 0

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

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; one that comes after the body (a trailer) is passed over: it could change what was decided."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is read; the body follows."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

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
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            return False
        cycle.keep_alive = False
        self.flow.pause_reading()
        return True
