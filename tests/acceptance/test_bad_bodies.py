"""Bodies that are not what they should be as a whole: each is refused, and nothing is written."""

import gzip
import json
import os

import httpx2
import pytest

from tests.acceptance.calls import MAX_SEQ, RUNS, SESSIONS, claim, kinds, post, records, refusal, row

PATH = f"{SESSIONS}/records"
MIB = 1024 * 1024
NOT_OBJECTS = {
    "empty": b"",
    "white space": b"  ",
    "broken": b'{"agent": "a", "text": "t"',
    "text after it": b'{"agent": "a", "text": "t"} x',
    "one quote": b"{'agent': 'a', 'text': 't'}",
    "null": b"null",
    "number": b"5",
    "text": b'"agent"',
    "array": b'[{"agent": "a", "text": "t"}]',
    "form": b"agent=a&text=t",
    "not UTF-8": b'{"agent": "a", "text": "\xff\xfe"}',
    "UTF-16": '{"agent": "a", "text": "t"}'.encode("utf-16"),
    "raw control character": b'{"agent": "a", "text": "\x01"}',
    "deep array": b"[" * 200_000,
    "deep object": b'{"a":' * 100_000,
    "deep but closed": b'{"agent": "a", "text": "t", "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "binary": bytes(range(256)),
    "huge number": b'{"agent": "a", "text": "t", "x": 1' + b"0" * 100_000 + b"]}",
}


@pytest.mark.promise("error-400", "error-shape")
@pytest.mark.parametrize("name", NOT_OBJECTS)
@pytest.mark.parametrize("route", ["posts", "claims", "check"])
def test_a_body_that_is_no_json_object_is_refused(http: httpx2.Client, run_id: str, route: str, name: str) -> None:
    response = http.post(f"{RUNS}/{run_id}/{route}", content=NOT_OBJECTS[name])
    assert "JSON" in refusal(response, 400)
    assert kinds(http, run_id) == []


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("half", [b"\\ud83d", b"\xed\xa0\x80"], ids=["escaped", "in bytes"])
@pytest.mark.parametrize("field", ["text", "x"])
def test_half_of_a_surrogate_pair_is_refused_by_its_field(
    http: httpx2.Client, run_id: str, field: str, half: bytes
) -> None:
    content = b'{"agent": "a", "text": "t", "%s": "%s"}' % (field.encode(), half)
    assert refusal(http.post(f"{RUNS}/{run_id}/posts", content=content), 400).startswith(field)
    assert kinds(http, run_id) == []


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("name", ["broken", "null", "number", "array", "form", "not UTF-8", "deep array"])
def test_a_release_whose_body_is_no_json_object_is_refused(http: httpx2.Client, run_id: str, name: str) -> None:
    claim(http, run_id, "agent-a")
    params = {"agent": "agent-a", "resource": "src/app.py"}
    response = http.request("DELETE", f"{RUNS}/{run_id}/claims", params=params, content=NOT_OBJECTS[name])
    assert "JSON" in refusal(response, 400)
    assert kinds(http, run_id) == ["HOLD"]


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"5", b"[", b'[{"session_id": "s", "seq": 1},]', b"[\xff]"])
def test_an_upload_that_is_no_json_array_is_refused(http: httpx2.Client, content: bytes) -> None:
    assert "JSON" in refusal(http.post(PATH, content=content), 400)


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_an_upload_with_a_column_that_is_nested_too_deep_is_refused(
    http: httpx2.Client, session_id: str, depth: int
) -> None:
    content = json.dumps([row(session_id, 0), row(session_id, 1, x="HERE")])
    assert refusal(http.post(PATH, content=content.replace('"HERE"', "[" * depth + "]" * depth)), 400)
    assert_no_session(http, session_id)


@pytest.mark.promise("upload-byte-limit")
@pytest.mark.parametrize("size", [4 * MIB + 1, 9 * MIB, 11 * MIB, 40 * MIB])
def test_a_body_over_4_mib_is_too_large_wherever_it_goes(
    http: httpx2.Client, run_id: str, session_id: str, size: int
) -> None:
    text = "x" * size
    assert "larger" in refusal(http.post(PATH, json=[row(session_id, 0, body=text)]), 413)
    assert "larger" in refusal(http.post(f"{RUNS}/{run_id}/posts", json={"agent": "a", "text": text}), 413)
    assert_no_session(http, session_id)
    assert kinds(http, run_id) == []


def whole_gzip(session_id: str) -> bytes:
    return gzip.compress(json.dumps([row(session_id, 0, body=os.urandom(2_000).hex())]).encode())


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("fault", ["truncated", "no end", "broken", "checksum", "plain", "empty", "text after it"])
def test_a_body_that_is_not_the_gzip_it_claims_to_be_is_refused(
    http: httpx2.Client, session_id: str, fault: str
) -> None:
    whole = whole_gzip(session_id)
    content = {
        "truncated": whole[: len(whole) // 2],
        "no end": whole[:-1],
        "broken": whole[:100] + b"\x00" * 100 + whole[200:],
        "checksum": whole[:-8] + b"\x00" * 8,
        "plain": json.dumps([row(session_id, 0)]).encode(),
        "empty": b"",
        "text after it": whole + b"text",
    }[fault]
    assert "gzip" in refusal(http.post(PATH, content=content, headers={"Content-Encoding": "gzip"}), 400)
    assert_no_session(http, session_id)


@pytest.mark.promise("upload-byte-limit")
@pytest.mark.parametrize("members", [1, 3])
def test_a_gzip_body_that_inflates_past_4_mib_is_too_large(http: httpx2.Client, session_id: str, members: int) -> None:
    start, end = json.dumps([row(session_id, 0, body="HERE")]).encode().split(b"HERE")
    filling = [b"x" * (200 * MIB // members)] * members
    content = gzip.compress(start) + b"".join(gzip.compress(part, 9) for part in filling) + gzip.compress(end)
    assert len(content) < MIB
    assert "4 MiB" in refusal(http.post(PATH, content=content, headers={"Content-Encoding": "gzip"}), 413)
    assert_no_session(http, session_id)


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "nonsense"])
def test_a_body_in_another_encoding_is_refused(http: httpx2.Client, session_id: str, encoding: str) -> None:
    content = whole_gzip(session_id)
    assert "Content-Encoding" in refusal(http.post(PATH, content=content, headers={"Content-Encoding": encoding}), 400)
    assert_no_session(http, session_id)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "nonsense"])
def test_json_is_read_whatever_the_content_type_says(http: httpx2.Client, run_id: str, content_type: str) -> None:
    response = http.post(
        f"{RUNS}/{run_id}/posts",
        content=b'{"agent": "agent-a", "text": "hello"}',
        headers={"Content-Type": content_type},
    )
    assert response.status_code == 201
    assert kinds(http, run_id) == ["NOTE"]


def test_the_service_answers_as_before_after_all_that(http: httpx2.Client, run_id: str, session_id: str) -> None:
    post(http, run_id, "agent-a", "still here")
    assert http.post(PATH, json=[row(session_id, 0)]).status_code == 202
    assert len(records(http, session_id)) == 1


def assert_no_session(http: httpx2.Client, session_id: str) -> None:
    refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": MAX_SEQ}), 404)
