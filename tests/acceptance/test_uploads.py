"""The contract's "Upload session records"."""

import gzip
import json
from typing import Any

import httpx2
import pytest

from tests.acceptance.calls import BASE_US, SESSIONS, Json, answered, eventually, records, refusal, row, upload

PATH = f"{SESSIONS}/records"
MIB = 1024 * 1024
ALL_COLUMNS: Json = {
    "_timestamp": BASE_US,
    "host": "build-01",
    "harness": "script",
    "parent_session": "",
    "agent_id": "",
    "run_id": "",
    "agent": "agent-a",
    "seq": 1,
    "block_idx": 0,
    "role": "assistant",
    "block_type": "tool_use",
    "tool_name": "Edit",
    "tool_use_id": "call-1",
    "command": "",
    "paths": '["src/app.py"]',
    "body": '{"file_path": "src/app.py"}',
    "is_error": False,
    "is_summary": False,
    "cwd": "/work/app",
    "git_branch": "main",
    "cost_usd": 0.0,
    "input_tokens": 0.0,
    "output_tokens": 0.0,
}


@pytest.mark.promise("upload-accepted", "fetch-rows", "times-are-microseconds")
def test_a_row_with_all_columns_is_accepted_and_read_back(http: httpx2.Client, session_id: str) -> None:
    sent = {**ALL_COLUMNS, "session_id": session_id}
    assert answered(http.post(PATH, json=[sent]), 202) == {"accepted": 1}
    assert records(http, session_id) == [
        {
            "ts": BASE_US,
            "seq": 1,
            "block_idx": 0,
            "role": "assistant",
            "block_type": "tool_use",
            "tool_name": "Edit",
            "tool_use_id": "call-1",
            "command": "",
            "paths": '["src/app.py"]',
            "is_error": False,
            "body_len": 27,
            "body": '{"file_path": "src/app.py"}',
        }
    ]


@pytest.mark.promise("upload-required-fields")
def test_session_id_and_seq_are_enough(http: httpx2.Client, session_id: str) -> None:
    assert answered(http.post(PATH, json=[{"session_id": session_id, "seq": 0}]), 202) == {"accepted": 1}
    (kept,) = records(http, session_id)
    assert kept.pop("ts") > BASE_US  # the time of arrival
    assert kept == {
        "seq": 0,
        "block_idx": 0,
        "role": "",
        "block_type": "text",
        "tool_name": "",
        "tool_use_id": "",
        "command": "",
        "paths": "",
        "is_error": False,
        "body_len": 0,
        "body": "",
    }


@pytest.mark.promise("upload-required-fields", "error-400")
@pytest.mark.parametrize("field", ["session_id", "seq"])
def test_a_row_without_a_required_field_is_refused(http: httpx2.Client, session_id: str, field: str) -> None:
    rows = [row(session_id, 0), row(session_id, 1)]
    del rows[1][field]
    assert refusal(http.post(PATH, json=rows), 400) == f"row 1: {field} is required"
    refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": 9}), 404)


@pytest.mark.promise("upload-block-types")
def test_every_block_type_of_the_contract_is_kept(http: httpx2.Client, session_id: str) -> None:
    types = ["text", "thinking", "tool_use", "tool_result", "result"]
    upload(http, *(row(session_id, seq, block_type=block_type) for seq, block_type in enumerate(types)))
    assert [kept["block_type"] for kept in records(http, session_id)] == types


@pytest.mark.promise("upload-any-harness")
def test_a_client_names_its_own_harness(http: httpx2.Client, session_id: str) -> None:
    upload(http, row(session_id, 0, harness="our-nightly-script"))
    assert len(records(http, session_id)) == 1


@pytest.mark.promise("upload-column-types")
def test_whole_numbers_may_be_written_as_floats_and_floats_as_whole_numbers(
    http: httpx2.Client, session_id: str
) -> None:
    content = f'[{{"session_id": "{session_id}", "seq": 3.0, "block_idx": 1.0, "cost_usd": 1, "input_tokens": 12}}]'
    assert answered(http.post(PATH, content=content), 202) == {"accepted": 1}
    assert [(kept["seq"], kept["block_idx"]) for kept in records(http, session_id)] == [(3, 1)]


@pytest.mark.parametrize("column", ["timestamp", "uuid", "ts_us", "extra", "body_len"])
def test_a_column_that_the_contract_does_not_name_changes_nothing(
    http: httpx2.Client, session_id: str, column: str
) -> None:
    upload(http, row(session_id, 0, **{column: {"deep": ["value"]}}))
    assert [(kept["ts"], kept["body_len"]) for kept in records(http, session_id)] == [(BASE_US, 0)]


def test_a_field_that_is_null_counts_as_left_out(http: httpx2.Client, session_id: str) -> None:
    upload(http, row(session_id, 0, command=None, is_error=None, cost_usd=None, block_idx=None))
    assert [kept["command"] for kept in records(http, session_id)] == [""]


def test_a_row_sent_again_is_one_row(http: httpx2.Client, session_id: str) -> None:
    rows = [row(session_id, seq, body=f"block {seq}") for seq in range(3)]
    upload(http, *rows)
    before = records(http, session_id)
    upload(http, *rows)
    assert records(http, session_id) == before


def test_a_row_without_a_time_keeps_that_of_its_first_arrival(http: httpx2.Client, session_id: str) -> None:
    untimed = {"session_id": session_id, "seq": 1}
    upload(http, untimed)
    [first] = records(http, session_id)
    upload(http, untimed)
    assert records(http, session_id) == [first]
    upload(http, untimed | {"command": "make"})
    assert records(http, session_id) == [first | {"command": "make"}]


def test_a_row_sent_with_another_body_takes_the_place_of_the_first(http: httpx2.Client, session_id: str) -> None:
    upload(http, row(session_id, 0, body="the token is abc"))
    upload(http, row(session_id, 0, body="the token is [REDACTED]"))
    assert [kept["body"] for kept in records(http, session_id)] == ["the token is [REDACTED]"]


def test_of_two_equal_rows_in_one_upload_the_last_one_stands_and_both_are_counted(
    http: httpx2.Client, session_id: str
) -> None:
    upload(http, row(session_id, 0, body="first"), row(session_id, 0, body="second"))
    assert [kept["body"] for kept in records(http, session_id)] == ["second"]


def test_an_upload_of_no_rows_accepts_none(http: httpx2.Client) -> None:
    assert answered(http.post(PATH, json=[]), 202) == {"accepted": 0}


@pytest.mark.promise("upload-refuses-another-user", "error-403")
def test_a_row_that_names_another_user_refuses_the_whole_upload(http: httpx2.Client, session_id: str) -> None:
    rows = [row(session_id, 0), row(session_id, 1, user_name="somebody-else")]
    assert "row 1: user_name" in refusal(http.post(PATH, json=rows), 403)
    refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": 9}), 404)


@pytest.mark.promise("upload-row-limit")
def test_500_rows_are_accepted_and_501_are_not(http: httpx2.Client, session_id: str) -> None:
    rows = [row(session_id, seq) for seq in range(501)]
    assert "500" in refusal(http.post(PATH, json=rows), 400)
    refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": 9}), 404)
    upload(http, *rows[:500])
    assert [kept["seq"] for kept in records(http, session_id, 450)] == list(range(450, 500))


@pytest.mark.promise("upload-byte-limit")
def test_4_mib_are_accepted_and_a_byte_more_is_not(http: httpx2.Client, session_id: str) -> None:
    overhead = len(json.dumps([row(session_id, 0, body="")]))
    whole = json.dumps([row(session_id, 0, body="x" * (4 * MIB - overhead))]).encode()
    assert len(whole) == 4 * MIB
    assert "4 MiB" in refusal(http.post(PATH, content=whole + b" "), 413)
    refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": 9}), 404)
    assert answered(http.post(PATH, content=whole), 202) == {"accepted": 1}
    assert [kept["body_len"] for kept in records(http, session_id)] == [4 * MIB - overhead]


def test_an_upload_may_be_compressed_in_one_member_or_several(http: httpx2.Client, session_id: str) -> None:
    text = json.dumps([row(session_id, seq, body="the same again " * 100) for seq in range(100)]).encode()
    compressed = gzip.compress(text[:5_000]) + gzip.compress(text[5_000:])
    for content in (gzip.compress(text), compressed):
        response = http.post(PATH, content=content, headers={"Content-Encoding": "gzip"})
        assert answered(response, 202) == {"accepted": 100}
    assert len(records(http, session_id, 60)) == 40


@pytest.mark.promise("upload-keeps-text")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("password = hunter2", id="a secret"),
        pytest.param("before\x00after", id="a NUL character"),
        pytest.param("naïve, 漢字, 👩‍👩‍👧, \u202e", id="all of Unicode"),
        pytest.param("\r\n\t  \x1b[31mred\x1b[0m\n", id="control characters and white space"),
        pytest.param('{"a": "\\ud83d\\ude00 \\u0000"}', id="JSON with escapes"),
        pytest.param("'; DROP TABLE sessions; --", id="another language"),
    ],
)
def test_a_body_is_kept_character_for_character(http: httpx2.Client, session_id: str, body: str) -> None:
    upload(http, row(session_id, 0, body=body))
    assert [(kept["body"], kept["body_len"]) for kept in records(http, session_id)] == [(body, len(body))]


def test_a_long_command_and_long_paths_are_kept_and_shown_in_part(http: httpx2.Client, session_id: str) -> None:
    paths = [f"src/{'d' * 50}/{number}.py" for number in range(1_000)]
    columns: dict[str, Any] = {"command": f"make {'x' * 100_000} {session_id}", "paths": json.dumps(paths)}
    upload(http, row(session_id, 0, block_type="tool_use", tool_use_id="i" * 1_024, **columns))
    (kept,) = records(http, session_id)
    assert (kept["tool_use_id"], kept["command"]) == ("i" * 1_024, columns["command"][:4_000])
    shown = json.loads(kept["paths"])
    assert shown == paths[: len(shown)]
    assert 3_900 < len(kept["paths"]) <= 4_000

    def look() -> list[str]:
        answer = answered(http.get(f"{SESSIONS}/commands", params={"command": session_id}))
        assert answer["total"] == 1
        return [found["command"] for found in answer["occurrences"]]

    assert eventually(look) == [columns["command"][-4_000:]]
