"""An HTTP server on loopback that stands in for a model's API, and answers as its script says."""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.real_clients.script import Json, Play

Events = Iterable[tuple[str, Json]]


class ModelHandler(BaseHTTPRequestHandler):
    """One connection of a client. An API's own handler says what it answers."""

    protocol_version = "HTTP/1.1"
    play: ClassVar[Play]

    def answer_post(self, body: Json) -> None:
        """Answer the POST to `self.path`."""
        raise NotImplementedError

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer_post(json.loads(raw or b"{}"))

    def do_GET(self) -> None:
        self.send_json({"error": {"type": "not_found_error", "message": self.path}}, status=404)

    def do_HEAD(self) -> None:
        self._send(200, "text/plain", b"")

    def send_json(self, answer: Json, status: int = 200) -> None:
        """Send the answer as JSON."""
        self._send(status, "application/json", json.dumps(answer).encode())

    def send_events(self, events: Events) -> None:
        """Send named server-sent events."""
        parts = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
        self._send(200, "text/event-stream", "".join(parts).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: what was asked is in `play.requests`."""

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(handler: type[ModelHandler], play: Play) -> Iterator[str]:
    """Serve the play on a free port of loopback, and give its base URL."""
    bound = type(handler.__name__, (handler,), {"play": play})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
