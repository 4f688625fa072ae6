"""The agents' connection: kept between requests, never longer than its deadline, clear about what went wrong."""

import socket
import time

import pytest

from ctrlb_agent.connection import Answer, Connection, Unreachable, error_of
from tests.agent.scripted_server import (
    Behaviour,
    ScriptedServer,
    answers,
    answers_once,
    closes,
    drips,
    hangs,
    response,
    says,
)
from tests.nobody import NOBODY

DEADLINE_S = 60.0
SHORT_S = 0.3
SPARE_S = 30.0  # for the machine that runs the tests


def get(connection: Connection, deadline_s: float = DEADLINE_S) -> Answer:
    return connection.request("GET", "/x?y=1", deadline_s=deadline_s)


def test_requests_share_one_connection() -> None:
    with ScriptedServer(answers(200, b"{}")) as server:
        connection = Connection(server.url, "a-key")
        for _ in range(3):
            assert get(connection) == Answer(200, b"{}", None)
        connection.close()

    assert server.connections == 1
    assert len(server.requests) == 3


def test_a_request_carries_the_key_the_path_and_the_body() -> None:
    with ScriptedServer(answers(202, b'{"accepted":1}')) as server:
        connection = Connection(server.url + "/base/", "a-key")
        connection.request("POST", "/records", b"[]", deadline_s=DEADLINE_S, gzipped=True)
        connection.close()

    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"POST /base/records HTTP/1.1"
    assert {b"Authorization: Bearer a-key", b"Content-Encoding: gzip"} <= set(head.splitlines())
    assert body == b"[]"


def test_without_a_key_no_authorization_is_sent() -> None:
    with ScriptedServer(answers(200, b"{}")) as server:
        connection = Connection(server.url, "")
        get(connection)
        connection.close()

    assert b"authorization" not in server.requests[0].lower()


def test_a_kept_connection_that_the_server_has_closed_is_opened_again() -> None:
    with ScriptedServer(answers_once(200, b"1"), answers(200, b"2")) as server:
        connection = Connection(server.url, "")
        first, second = get(connection), get(connection)
        connection.close()

    assert (first.body, second.body) == (b"1", b"2")
    assert server.connections == 2


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\n", response(200, b"whole")[:-2]])
def test_a_request_is_sent_once_more_when_its_kept_connection_dies_under_it(raw: bytes) -> None:
    def dies_at_the_second(server: ScriptedServer, connection: socket.socket) -> None:
        server.read_request(connection)
        connection.sendall(response(200, b"1"))
        server.read_request(connection)
        connection.sendall(raw)

    with ScriptedServer(dies_at_the_second, answers(200, b"2")) as server:
        connection = Connection(server.url, "")
        assert [get(connection).body, get(connection).body] == [b"1", b"2"]
        connection.close()

    assert (server.connections, len(server.requests)) == (2, 3)


def test_a_connection_that_the_server_ends_is_not_kept() -> None:
    with ScriptedServer(answers(200, b"{}", "Connection: close")) as server:
        connection = Connection(server.url, "")
        get(connection)
        get(connection)

    assert server.connections == 2


def test_a_refusal_is_an_answer_with_the_time_to_wait() -> None:
    with ScriptedServer(answers(429, b'{"error":"slow down"}', "Retry-After: 7")) as server:
        connection = Connection(server.url, "")
        answer = get(connection)
        connection.close()

    assert answer == Answer(429, b'{"error":"slow down"}', 7.0)


@pytest.mark.parametrize(
    "behaviour",
    [hangs, drips(response(200, b"{}" * 1_000)), drips(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000)],
    ids=["silent", "a byte at a time", "a header without an end"],
)
def test_the_deadline_is_for_the_whole_request(behaviour: Behaviour) -> None:
    with ScriptedServer(behaviour) as server:
        began_s = time.monotonic()
        with pytest.raises(Unreachable, match="did not answer in time"):
            get(Connection(server.url, ""), SHORT_S)
        took_s = time.monotonic() - began_s

    assert SHORT_S * 0.9 <= took_s < SHORT_S + SPARE_S


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n",
        response(200, b'{"whole": true}')[:-5],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"\x00\xff" * 1_000,
    ],
    ids=["nothing", "another protocol", "half a head", "half a body", "half a chunk", "no status", "noise"],
)
def test_half_an_answer_is_none(raw: bytes) -> None:
    with ScriptedServer(says(raw)) as server, pytest.raises(Unreachable):
        get(Connection(server.url, ""))


def test_a_server_that_closes_at_once_is_unreachable() -> None:
    with ScriptedServer(closes) as server, pytest.raises(Unreachable):
        get(Connection(server.url, ""))


def test_where_nothing_listens_is_said() -> None:
    with pytest.raises(Unreachable, match=f"nothing listens at {NOBODY}"):
        get(Connection(NOBODY, ""))


@pytest.mark.parametrize("url", ["", "127.0.0.1:8321", "ftp://x", "http://", "http://[::1", "http://x:port"])
def test_an_address_that_is_none_is_said(url: str) -> None:
    with pytest.raises(Unreachable):
        get(Connection(url, ""))


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(says(b"HTTP/1.1 407 No\r\n\r\n")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        with pytest.raises(Unreachable):
            get(Connection("https://ctrlb.example", ""))

    assert proxy.requests[0].startswith(b"CONNECT ctrlb.example:443 ")


SIGNED_IN = b"Proxy-Authorization: Basic dXNlcjpwQHNz"  # user:p@ss


def test_a_proxy_is_asked_for_the_whole_address_of_a_plain_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(answers(200, b"{}")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:p%40ss@"))
        connection = Connection("http://someone:secret@ctrlb.example:8080/base", "a-key")
        assert [get(connection).status, get(connection).status] == [200, 200]
        connection.close()

    assert proxy.connections == 1
    for request in proxy.requests:
        head = request.splitlines()
        assert head[0] == b"GET http://ctrlb.example:8080/base/x?y=1 HTTP/1.1"
        assert {b"Host: ctrlb.example:8080", b"Authorization: Bearer a-key", SIGNED_IN} <= set(head)


def test_a_proxy_that_passes_encrypted_bytes_on_learns_its_user_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(says(b"HTTP/1.1 407 No\r\n\r\n")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//user:p%40ss@"))
        with pytest.raises(Unreachable, match="407") as raised:
            get(Connection("https://ctrlb.example", "a-key"))

    assert SIGNED_IN in proxy.requests[0].splitlines()
    assert b"a-key" not in proxy.requests[0]
    assert "p@ss" not in str(raised.value)


@pytest.mark.parametrize("key", ["a\nsecret", "a\rsecret", "secret\x7f", "secrét", "\udcffsecret", "sec\u2028ret"])
def test_a_key_that_can_be_none_is_named_and_not_shown(key: str) -> None:
    with ScriptedServer(answers(200, b"{}")) as server, pytest.raises(Unreachable, match="the key holds") as raised:
        get(Connection(server.url, key))

    assert "secret" not in str(raised.value)
    assert "Bearer" not in str(raised.value)
    assert server.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@127.0.0.1:1",
        "http://user:secret@127.0.0.1:x",
        "http://user:secret@[::1",
        "http://user:sec/secret@127.0.0.1:1",
        "http://user:a@secret@127.0.0.1:1",
        "user:secret@127.0.0.1",
        "ftp://user:secret@x",
        "http://user:secret@no such host\n",
    ],
)
def test_a_password_in_the_address_is_not_shown(url: str) -> None:
    with pytest.raises(Unreachable) as raised:
        get(Connection(url, "a-key"))

    assert "secret" not in str(raised.value)
    assert "user" not in str(raised.value)
    assert "…@" in str(raised.value)


def test_no_proxy_is_used_for_a_host_that_is_excepted(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(closes) as proxy, ScriptedServer(answers(200, b"{}")) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        connection = Connection(server.url, "")
        answer = get(connection)
        connection.close()

    assert answer.status == 200
    assert proxy.connections == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":"run_id is required"}', "run_id is required"),
        (b'{"error":"expired","code":"MCP_KEY_EXPIRED"}', "expired (MCP_KEY_EXPIRED)"),
        (b"<html>", "the server answered 502"),
        (b"[]", "the server answered 502"),
        (b'{"error":' + b"[" * 900 + b"]" * 900 + b"}", "the server answered 502"),
        (b'{"error":"expired","code":{}}', "expired"),
        (b"", "the server answered 502"),
    ],
)
def test_an_error_is_told_in_the_servers_words(body: bytes, said: str) -> None:
    assert error_of(Answer(502, body, None)) == said
