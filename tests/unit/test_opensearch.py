"""Requests to a search service that is busy, down, small or strict; and rows as documents."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb.adapters.opensearch import RETRIES, OpenSearch, Signing
from ctrlb.adapters.opensearch_sessions import OpenSearchSessions
from ctrlb.adapters.opensearch_writer import OpenSearchWriter
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import (
    SHORTENED_CHARS,
    Document,
    index_alias,
    row_of,
    session_document,
    shortened,
)
from ctrlb.domain.session_text import searchable_text
from ctrlb.domain.streams import ALREADY, DONE, Outcome

DATASET = Dataset("acme", "agent_sessions")
SERVICE_BYTES = 3 * 1024 * 1024
Reply = tuple[int, Any]


@dataclass
class Service:
    """A loopback server that answers as it is told, and keeps what it was asked. It has the dataset's index."""

    url: str = ""
    reply: Callable[[bytes], Reply] = lambda _: (200, {})
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def service() -> Iterator[Service]:
    told = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            alias = index_alias(DATASET)
            self._answer(200, {f"{alias}-v1": {"aliases": {alias: {}}}})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.bodies.append(body)
            told.headers.append(dict(self.headers))
            self._answer(*told.reply(body))

        def _answer(self, status: int, content: Any) -> None:
            answer = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # the caller no longer waits
                self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        told.url = f"http://127.0.0.1:{server.server_port}"
        yield told
        server.shutdown()
        thread.join()


def document(seq: int, body: str) -> Document:
    row = SessionRow(ts_us=seq, session_id="one", seq=seq, body=body, body_len=len(body))
    return session_document(DATASET, "ann", row, 1)


def sent(written: Document) -> Any:
    """What the service reads of a document."""
    return json.loads(json.dumps(written.source))


def item(status: int) -> dict[str, Any]:
    error = {"error": {"type": "some_exception", "reason": "quotes the body"}} if status >= 400 else {}
    return {"index": {"status": status, **error}}


def items(body: bytes, status: int = 201) -> Reply:
    return 200, {"items": [item(status)] * (body.count(b"\n") // 2)}


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_service_is_asked_again_a_bounded_number_of_times(service: Service, status: int) -> None:
    replies: Iterator[Reply] = iter([(status, {}), (200, {"found": 1})])
    service.reply = lambda _: next(replies)
    assert OpenSearch(service.url).ask("POST", "/x/_search", {}).content == {"found": 1}
    service.reply = lambda _: (status, {})
    with pytest.raises(Unavailable, match=f"answered {status}"):
        OpenSearch(service.url).ask("POST", "/x/_search", {})
    assert len(service.bodies) == 2 + 1 + RETRIES


@pytest.mark.parametrize("status", [401, 403])
def test_a_service_that_lets_nobody_in_is_unavailable(service: Service, status: int) -> None:
    service.reply = lambda _: (status, {})
    with pytest.raises(Unavailable):
        OpenSearchSessions(OpenSearch(service.url)).commands(DATASET, "make", user=None, offset=0, limit=1)


def test_a_service_that_is_down_is_unavailable_and_its_documents_wait(service: Service) -> None:
    down = OpenSearch("http://127.0.0.1:1")
    with pytest.raises(Unavailable, match="did not answer"):
        down.ask("POST", "/x/_search", {})
    [outcome] = OpenSearchWriter(down).index([document(0, "words")])
    assert outcome.kind == "retry"


def test_a_slow_service_is_waited_for_within_bounds(service: Service) -> None:
    enough = threading.Event()
    service.reply = lambda _: (200, enough.wait(30))
    with pytest.raises(Unavailable, match="did not answer"):
        OpenSearch(service.url, timeout_s=0.05).ask("POST", "/x/_search", {})
    enough.set()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, DONE),
        (201, DONE),
        (409, ALREADY),
        (400, Outcome("poison", "400 some_exception")),
        (403, Outcome("retry", "403 some_exception")),
        (429, Outcome("retry", "429 some_exception")),
        (503, Outcome("retry", "503 some_exception")),
    ],
)
def test_the_outcome_of_a_document_follows_its_status(service: Service, status: int, outcome: Outcome) -> None:
    service.reply = lambda body: items(body, status)
    assert OpenSearchWriter(OpenSearch(service.url)).index([document(0, "a"), document(1, "b")]) == [outcome] * 2
    assert len(service.bodies) == 1


def test_a_service_for_small_requests_gets_documents_alone_and_of_a_large_one_the_beginning(service: Service) -> None:
    service.reply = lambda body: (413, {}) if len(body) > SERVICE_BYTES else items(body)
    documents = [document(0, "a" * SHORTENED_CHARS), document(1, "b" * 2 * SHORTENED_CHARS), document(2, "c" * 5)]
    documents.append(document(3, "d" * 4 * SHORTENED_CHARS))
    assert OpenSearchWriter(OpenSearch(service.url)).index(documents) == [DONE] * 4
    service.reply = lambda _: (413, {})
    refused = Outcome("poison", "too large for the search index")
    assert OpenSearchWriter(OpenSearch(service.url)).index(documents[:1]) == [refused]


def test_requests_are_signed_for_the_service(service: Service) -> None:
    signing = Signing(Credentials("key", "secret", "token"), "eu-central-1", "aoss")
    OpenSearch(service.url, signing).ask("POST", "/x/_search", {"query": "é"}, filter_path="hits,error")
    headers = {name.lower(): value for name, value in service.headers[0].items()}
    assert "/eu-central-1/aoss/aws4_request" in headers["authorization"]
    assert "host;x-amz-content-sha256;x-amz-date;x-amz-security-token" in headers["authorization"]
    assert headers["x-amz-security-token"] == "token"


TEXTS = st.text(st.sampled_from('ab {}[]":,\n\t\x00\x1b[0mé\u0301e.+语')) | st.sampled_from(
    ['{"a": ["b\\nc", 1.0]}', '"{\\"a\\": 1}"', "[]", "\x1b[31mred\x1b[0m", "e\u0301"]
)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(command=TEXTS, body=TEXTS, kind=st.sampled_from(["text", "tool_use"]))
def test_a_row_comes_back_from_its_document_as_it_was(command: str, body: str, kind: str) -> None:
    row = SessionRow(
        ts_us=1, session_id="one", seq=2, block_type=kind, command=command, body=body, body_len=len(body), cost_usd=0.5
    )
    source = sent(session_document(DATASET, "ann", row, 1))
    assert row_of(source) == row
    assert source["text"] == searchable_text(command, body)


def test_a_body_is_kept_once_where_the_text_ends_with_it() -> None:
    assert "body" not in sent(document(0, "plain words\nof two lines"))
    assert "body" in sent(document(0, '{"of": "json"}'))


@pytest.mark.parametrize("command", ["", "make test"])
def test_a_shortened_document_is_a_row_with_the_beginning_of_its_body(command: str) -> None:
    body = "word " * SHORTENED_CHARS
    row = SessionRow(ts_us=1, session_id="one", seq=2, command=command, body=body, body_len=len(body))
    short = row_of(sent(shortened(session_document(DATASET, "ann", row, 1))))
    assert short.command == command
    assert short.body_len == len(body)
    assert body.startswith(short.body)
    assert SHORTENED_CHARS - 20 < len(short.body) <= SHORTENED_CHARS
