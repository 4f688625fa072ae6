"""The contract's "fetch_records" and what session routes share."""

import httpx2
import pytest

from tests.acceptance.calls import MAX_SEQ, SESSIONS, answered, records, refusal, row, upload


@pytest.mark.promise("fetch-rows")
def test_rows_come_in_order_of_seq_and_block_whatever_the_order_of_upload(http: httpx2.Client, session_id: str) -> None:
    places = [(2, 1), (10, 0), (2, 0), (1, 0), (9, 0)]
    upload(http, *(row(session_id, seq, block_idx=block_idx) for seq, block_idx in places))
    assert [(kept["seq"], kept["block_idx"]) for kept in records(http, session_id)] == sorted(places)


@pytest.mark.promise("fetch-rows")
def test_both_ends_of_the_range_are_answered(http: httpx2.Client, session_id: str) -> None:
    upload(http, *(row(session_id, seq) for seq in range(6)))
    assert [kept["seq"] for kept in records(http, session_id, 2, 4)] == [2, 3, 4]
    assert records(http, session_id, 6, MAX_SEQ) == []


@pytest.mark.promise("fetch-limit")
def test_at_most_50_rows_are_answered(http: httpx2.Client, session_id: str) -> None:
    upload(http, *(row(session_id, seq) for seq in range(60)))
    assert [kept["seq"] for kept in records(http, session_id, 5)] == list(range(5, 55))


@pytest.mark.promise("fetch-body-cut")
def test_a_body_is_cut_at_4000_characters_and_its_full_length_told(http: httpx2.Client, session_id: str) -> None:
    body = "é👩" * 2_500
    upload(http, row(session_id, 0, body=body), row(session_id, 1, body=body[:4_000]))
    assert [(kept["body"], kept["body_len"]) for kept in records(http, session_id)] == [
        (body[:4_000], 5_000),
        (body[:4_000], 4_000),
    ]


def test_a_row_is_read_as_soon_as_its_upload_was_answered(http: httpx2.Client, session_id: str) -> None:
    for seq in range(20):
        upload(http, row(session_id, seq))
        assert len(records(http, session_id)) == seq + 1


def test_a_session_that_nobody_wrote_is_not_found(http: httpx2.Client, session_id: str) -> None:
    assert session_id in refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": 1}), 404)


@pytest.mark.promise("reads-may-name-a-dataset")
def test_a_read_may_name_another_dataset_and_finds_none_of_this_ones_rows(http: httpx2.Client, session_id: str) -> None:
    upload(http, row(session_id, 0, body="alpha beta gamma", command="echo alpha"))
    other = "/ai/sessions/another-dataset"
    assert answered(http.get(f"{other}/search", params={"term": "alpha"}))["total"] == 0
    assert answered(http.get(f"{other}/commands", params={"command": "echo"}))["total"] == 0
    refusal(http.get(f"{other}/{session_id}/records", params={"seq_from": 0, "seq_to": 1}), 404)


@pytest.mark.parametrize("session", ["a.b", "with space", "漢字", "100%", "a+b", "?x=1", "#f", "name:x", "..."])
def test_a_session_id_may_hold_any_printable_characters(http: httpx2.Client, session_id: str, session: str) -> None:
    name = f"{session} {session_id}"
    upload(http, row(name, 0, body="kept"))
    assert [kept["body"] for kept in records(http, name)] == ["kept"]


def test_sessions_with_ids_that_begin_alike_are_apart(http: httpx2.Client, session_id: str) -> None:
    names = [session_id, f"{session_id}#1", f"{session_id}#1#2", f"{session_id} "]
    for number, name in enumerate(names):
        upload(http, row(name, 0, body=f"number {number}"))
    for number, name in enumerate(names):
        assert [kept["body"] for kept in records(http, name)] == [f"number {number}"]
