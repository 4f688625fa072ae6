"""The contract's "find_command" and "next_actions"."""

from typing import Any

import httpx2
import pytest

from tests.acceptance.calls import SESSIONS, Json, answered, eventually, fresh_word, refusal, row, upload


def commands(http: httpx2.Client, command: str, total: int, **params: Any) -> list[Json]:
    """The occurrences of a command, once as many are found as there should be."""

    def look() -> list[Json]:
        answer = answered(http.get(f"{SESSIONS}/commands", params={"command": command, **params}))
        assert set(answer) == {"total", "offset", "occurrences"}
        assert answer["total"] == total, answer
        occurrences: list[Json] = answer["occurrences"]
        return occurrences

    return eventually(look)


def following(http: httpx2.Client, session_id: str, seq: int, **params: Any) -> Json:
    return answered(http.get(f"{SESSIONS}/{session_id}/next", params={"seq": seq, **params}))


def call(session_id: str, seq: int, command: str, tool: str = "Bash", call_id: str = "", **columns: Any) -> Json:
    return row(session_id, seq, block_type="tool_use", tool_name=tool, command=command, tool_use_id=call_id, **columns)


def result(session_id: str, seq: int, body: str, tool: str = "Bash", call_id: str = "", **columns: Any) -> Json:
    return row(session_id, seq, block_type="tool_result", tool_name=tool, body=body, tool_use_id=call_id, **columns)


@pytest.mark.promise("find-command", "find-command-answer", "http-session-routes")
def test_a_command_is_found_by_any_part_of_it_newest_first(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(
        http,
        call(session_id, 1, f"go test ./internal/{word}"),
        call(session_id, 2, f"cd {word} && go   test\n\t./internal", tool="Shell"),
        call(session_id, 3, "go test ./other"),
    )
    assert commands(http, word, 2) == [
        {
            "session_id": session_id,
            "seq": 2,
            "tool_name": "Shell",
            "command": f"cd {word} && go   test\n\t./internal",
        },
        {"session_id": session_id, "seq": 1, "tool_name": "Bash", "command": f"go test ./internal/{word}"},
    ]
    assert [found["seq"] for found in commands(http, f"{word} &&  go test ./internal", 1)] == [2]
    assert [found["seq"] for found in commands(http, word[5:20], 2)] == [2, 1]


@pytest.mark.promise("find-command")
@pytest.mark.parametrize("text", ["100%", "*.py", "a_b", "c:\\dir", "'q'", '"q"', "$(x)", "é漢", "a\x00b", "-- AND"])
def test_every_character_of_a_command_is_just_text(http: httpx2.Client, session_id: str, text: str) -> None:
    word = fresh_word()
    upload(http, call(session_id, 1, f"run {text} {word}"), call(session_id, 2, f"run 100x.pya.b {word}"))
    assert [found["seq"] for found in commands(http, f"{text} {word}", 1)] == [1]


@pytest.mark.promise("find-command")
@pytest.mark.parametrize("text", ["q", "zz"])
def test_a_command_is_found_by_a_text_of_one_or_two_characters(http: httpx2.Client, session_id: str, text: str) -> None:
    upload(http, call(session_id, 1, f"{fresh_word()} {text}"))

    def look() -> None:
        assert answered(http.get(f"{SESSIONS}/commands", params={"command": text}))["total"] >= 1

    eventually(look)


@pytest.mark.promise("find-command")
def test_only_tool_calls_have_commands(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, row(session_id, 1, body=word), call(session_id, 2, word))
    assert [found["seq"] for found in commands(http, word, 1)] == [2]


@pytest.mark.promise("find-command-pages")
def test_ten_commands_come_by_default_up_to_25_when_asked_for(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, *(call(session_id, seq, f"{word} {seq}") for seq in range(30)))
    assert [found["seq"] for found in commands(http, word, 30)] == list(range(29, 19, -1))
    assert [found["seq"] for found in commands(http, word, 30, limit=25, offset=25)] == [4, 3, 2, 1, 0]


@pytest.mark.promise("next-actions", "http-session-routes")
def test_what_followed_a_call_is_its_result_then_the_next_calls_and_theirs(
    http: httpx2.Client, session_id: str
) -> None:
    upload(
        http,
        call(session_id, 12, "go test ./internal", call_id="c1"),
        result(session_id, 13, "FAIL", call_id="c1", is_error=True),
        row(session_id, 14, block_type="thinking", body="hm"),
        row(session_id, 15, block_type="text", body="I see"),
        call(session_id, 16, "", tool="Edit", call_id="c2", body='{"file_path": "a.go"}'),
        result(session_id, 17, "edited", tool="Edit", call_id="c2"),
    )
    assert following(http, session_id, 12) == {
        "session_id": session_id,
        "seq": 12,
        "events": [
            {"seq": 13, "kind": "result", "tool_name": "Bash", "is_error": True, "text": "FAIL"},
            {"seq": 16, "kind": "call", "tool_name": "Edit", "is_error": False, "text": '{"file_path": "a.go"}'},
            {"seq": 17, "kind": "result", "tool_name": "Edit", "is_error": False, "text": "edited"},
        ],
        "skipped_text_records": 2,
    }


@pytest.mark.promise("next-actions-k")
def test_three_calls_are_followed_by_default_and_eight_at_most(http: httpx2.Client, session_id: str) -> None:
    upload(http, *(call(session_id, seq, f"step {seq}", call_id=f"c{seq}") for seq in range(12)))
    assert [event["seq"] for event in following(http, session_id, 0)["events"]] == [1, 2, 3]
    assert [event["seq"] for event in following(http, session_id, 0, k=1)["events"]] == [1]
    assert [event["seq"] for event in following(http, session_id, 0, k=8)["events"]] == list(range(1, 9))
    assert "k" in refusal(http.get(f"{SESSIONS}/{session_id}/next", params={"seq": 0, "k": 9}), 400)


@pytest.mark.promise("next-actions-tool")
def test_only_the_calls_of_one_tool_are_followed_when_it_is_named(http: httpx2.Client, session_id: str) -> None:
    tools = ["Bash", "Read", "Edit", "Bash", "Read", "Bash"]
    upload(http, *(call(session_id, seq, "do", tool=tool, call_id=f"c{seq}") for seq, tool in enumerate(tools)))
    assert [event["seq"] for event in following(http, session_id, 0, tool="Bash")["events"]] == [3, 5]


@pytest.mark.promise("next-actions")
def test_parallel_calls_pair_with_their_own_results(http: httpx2.Client, session_id: str) -> None:
    upload(
        http,
        call(session_id, 1, "one", call_id="c1", block_idx=0),
        call(session_id, 1, "two", call_id="c2", block_idx=1),
        result(session_id, 2, "result of two", call_id="c2", block_idx=0),
        result(session_id, 2, "result of one", call_id="c1", block_idx=1),
    )
    events = following(http, session_id, 1, k=1)["events"]
    assert [(event["kind"], event["text"]) for event in events] == [
        ("result", "result of one"),
        ("call", "two"),
        ("result", "result of two"),
    ]


@pytest.mark.promise("next-actions")
def test_what_is_no_tool_call_is_not_found(http: httpx2.Client, session_id: str) -> None:
    upload(http, row(session_id, 0, body="only text"))
    for seq in (0, 1):
        refusal(http.get(f"{SESSIONS}/{session_id}/next", params={"seq": seq}), 404)
    refusal(http.get(f"{SESSIONS}/{session_id}-none/next", params={"seq": 0}), 404)
