"""The contract's "search_sessions"."""

import json
from typing import Any

import httpx2
import pytest

from tests.acceptance.calls import SESSIONS as SESSIONS_PATH
from tests.acceptance.calls import Json, eventually, fresh_word, refusal, row, search, upload


def found(http: httpx2.Client, term: str, total: int, **params: Any) -> list[Json]:
    """The hits of a search, once it finds as many as it should."""

    def look() -> list[Json]:
        answer = search(http, term, **params)
        assert answer["total"] == total, answer
        hits: list[Json] = answer["hits"]
        return hits

    return eventually(look)


@pytest.mark.promise("search-answer", "http-search")
def test_a_hit_answers_where_it_is_and_what_stands_around_it(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(
        http,
        row(
            session_id,
            7,
            role="user",
            block_type="tool_result",
            tool_name="Bash",
            is_error=True,
            parent_session="parent-1",
            body=f"the word {word} stands here",
        ),
    )
    found(http, word, 1)
    assert search(http, word) == {
        "total": 1,
        "offset": 0,
        "capped_at": None,
        "hits": [
            {
                "session_id": session_id,
                "parent_session": "parent-1",
                "seq": 7,
                "role": "user",
                "block_type": "tool_result",
                "tool_name": "Bash",
                "is_error": True,
                "snippet": f"the word {word} stands here",
            }
        ],
    }


@pytest.mark.promise("search-fields", "http-search")
def test_messages_thinking_calls_commands_and_results_are_searched(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(
        http,
        row(session_id, 0, block_type="text", body=f"message {word}"),
        row(session_id, 1, block_type="thinking", body=f"thinking {word}"),
        row(session_id, 2, block_type="tool_use", tool_name="Edit", body=json.dumps({"file_path": f"src/{word}"})),
        row(session_id, 3, block_type="tool_use", tool_name="Bash", command=f"make {word}"),
        row(session_id, 4, block_type="tool_result", body=f"result {word}"),
        row(session_id, 5, block_type="result", body=f"end {word}"),
        row(session_id, 6, block_type="text", body="nothing of the kind"),
    )
    assert [hit["seq"] for hit in found(http, word, 6, order="oldest")] == [0, 1, 2, 3, 4, 5]


@pytest.mark.promise("search-fields")
def test_past_sessions_and_subagents_are_searched_too(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, row(session_id, 0, body=word))
    upload(http, row(f"{session_id}-child", 1, body=word, parent_session=session_id, agent_id="sub-1"))
    hits = found(http, word, 2)
    assert [(hit["session_id"], hit["parent_session"]) for hit in hits] == [
        (f"{session_id}-child", session_id),
        (session_id, ""),
    ]


@pytest.mark.promise("http-search", "search-term")
def test_words_are_whole_and_their_case_does_not_matter(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, row(session_id, 0, body=f"{word}longer"), row(session_id, 1, body=f"({word.upper()}),"))
    assert [hit["seq"] for hit in found(http, word, 1)] == [1]
    assert [hit["seq"] for hit in found(http, word.title(), 1)] == [1]


@pytest.mark.promise("search-term")
def test_a_phrase_is_its_words_in_order_next_to_each_other(http: httpx2.Client, session_id: str) -> None:
    one, two = fresh_word(), fresh_word()
    upload(
        http,
        row(session_id, 0, body=f"{one} {two}"),
        row(session_id, 1, body=f"{two} {one}"),
        row(session_id, 2, body=f"{one} and {two}"),
        row(session_id, 3, body=f"{one}/{two}.py"),
    )
    assert [hit["seq"] for hit in found(http, one, 4, order="oldest")] == [0, 1, 2, 3]
    assert [hit["seq"] for hit in found(http, f"{one}   {two}", 2, order="oldest")] == [0, 3]
    assert [hit["seq"] for hit in found(http, f"{one}/{two}.py", 1)] == [3]


@pytest.mark.promise("search-term", "error-400")
@pytest.mark.parametrize("term", ["", "ab", "-- // ::", "x" * 51, "\x00\x00\x00"])
def test_a_term_without_a_word_of_3_to_50_characters_is_refused(http: httpx2.Client, term: str) -> None:
    assert "term" in refusal(http.get(f"{SESSIONS_PATH}/search", params={"term": term}), 400)


@pytest.mark.promise("search-term")
def test_a_search_without_a_term_is_refused(http: httpx2.Client) -> None:
    assert refusal(http.get(f"{SESSIONS_PATH}/search"), 400) == "term is required"


@pytest.mark.promise("search-filters")
def test_a_search_can_be_narrowed_to_a_session_and_a_tool(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(
        http,
        row(session_id, 0, body=word, tool_name="Bash"),
        row(session_id, 1, body=word, tool_name="Edit"),
        row(f"{session_id}-2", 2, body=word, tool_name="Bash"),
    )
    found(http, word, 3)
    assert [hit["seq"] for hit in found(http, word, 2, session_id=session_id, order="oldest")] == [0, 1]
    assert [hit["seq"] for hit in found(http, word, 2, tool="Bash", order="oldest")] == [0, 2]
    assert [hit["seq"] for hit in found(http, word, 1, tool="Bash", session_id=session_id)] == [0]
    found(http, word, 0, tool="bash")


@pytest.mark.promise("search-order")
def test_the_newest_hit_comes_first_unless_the_oldest_is_asked_for(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, *(row(session_id, seq, body=word) for seq in (2, 0, 1)))
    assert [hit["seq"] for hit in found(http, word, 3)] == [2, 1, 0]
    assert [hit["seq"] for hit in found(http, word, 3, order="newest")] == [2, 1, 0]
    assert [hit["seq"] for hit in found(http, word, 3, order="oldest")] == [0, 1, 2]


@pytest.mark.promise("search-one-per-session")
def test_one_hit_of_each_session_is_kept_when_asked_for(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, *(row(f"{session_id}-{seq % 3}", seq, body=word) for seq in range(9)))
    found(http, word, 9)
    assert [hit["seq"] for hit in found(http, word, 3, one_per_session="true")] == [8, 7, 6]
    assert [hit["seq"] for hit in found(http, word, 3, one_per_session="true", order="oldest")] == [0, 1, 2]


@pytest.mark.promise("search-pages")
def test_ten_hits_come_by_default_up_to_25_when_asked_for_and_offset_pages(
    http: httpx2.Client, session_id: str
) -> None:
    word = fresh_word()
    upload(http, *(row(session_id, seq, body=word) for seq in range(30)))
    assert [hit["seq"] for hit in found(http, word, 30, order="oldest")] == list(range(10))
    pages = [found(http, word, 30, order="oldest", limit=25, offset=offset) for offset in (0, 25, 50)]
    assert [[hit["seq"] for hit in page] for page in pages] == [list(range(25)), list(range(25, 30)), []]
    assert search(http, word, limit=25, offset=25)["offset"] == 25


@pytest.mark.promise("search-answer")
def test_a_snippet_is_300_characters_around_the_hit_in_the_longest_of_bodies(
    http: httpx2.Client, session_id: str
) -> None:
    word = fresh_word()
    upload(http, row(session_id, 0, body="äöü " * 400_000 + word + " ßéñ" * 100_000))
    (hit,) = found(http, word, 1)
    assert word in hit["snippet"]
    assert len(hit["snippet"]) == 300
    assert "ü" in hit["snippet"].partition(word)[0]
    assert "ß" in hit["snippet"].partition(word)[2]


def test_a_row_that_was_replaced_is_found_by_its_new_text_only(http: httpx2.Client, session_id: str) -> None:
    secret, redacted = fresh_word(), fresh_word()
    upload(http, row(session_id, 0, body=f"token {secret}"))
    found(http, secret, 1)
    upload(http, row(session_id, 0, body=f"token {redacted}"))
    found(http, redacted, 1)
    found(http, secret, 0)


def test_json_is_searched_by_what_it_says_not_by_how_it_is_escaped(http: httpx2.Client, session_id: str) -> None:
    word = fresh_word()
    upload(http, row(session_id, 0, block_type="tool_use", body=json.dumps({"text": f"première\nligne\n{word}"})))
    assert [hit["seq"] for hit in found(http, f"première ligne {word}", 1)] == [0]
    found(http, f"n{word}", 0)
