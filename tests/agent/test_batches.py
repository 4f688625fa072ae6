"""How rows are written, cut to what a request may hold, and gathered into requests."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent.uploading import batches
from ctrlb_agent.uploading.batches import MAX_BYTES, MAX_ROWS, Row, Unwritable, body_of, row_of, shortened

TEXTS = st.text(max_size=30)


def columns(**more: Any) -> dict[str, Any]:
    return {"session_id": "s", "seq": 1, "block_idx": 0, **more}


def sized(size: int, seq: int = 1) -> Row:
    return Row("s", seq, 0, b"x" * size)


@given(st.lists(st.lists(st.integers(1, 40), max_size=4), max_size=40))
def test_every_row_goes_once_in_its_order_and_every_request_is_in_its_bounds(
    sizes: list[list[int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "MAX_BYTES", 100)
        patch.setattr(batches, "MAX_ROWS", 5)
        lines = [([sized(size, number) for size in line], number) for number, line in enumerate(sizes)]
        found = list(batches.batches(lines))
    assert [row for rows, _ in found for row in rows] == [row for rows, _ in lines for row in rows]
    sent = 0
    for index, (rows, mark) in enumerate(found):
        assert len(rows) <= 5
        assert len(body_of(rows)) <= 100
        assert rows or index == len(found) - 1
        sent += len(rows)
        if mark is not None:
            assert sum(len(line) for line in sizes[: mark + 1]) <= sent
    assert not lines or found[-1][1] == len(lines) - 1


def test_rows_of_1000_lines_are_two_requests() -> None:
    found = list(batches.batches(([sized(10)], number) for number in range(1, 1_001)))
    assert [(len(rows), mark) for rows, mark in found] == [(MAX_ROWS, 500), (MAX_ROWS, 1_000)]


def test_a_request_ends_within_a_line_of_many_blocks_and_its_mark_before_that_line() -> None:
    found = list(batches.batches([([sized(10)] * 499, 1), ([sized(10)] * 3, 2), ([], 3)]))
    assert [(len(rows), mark) for rows, mark in found] == [(500, 1), (2, 3)]


def test_a_line_of_more_blocks_than_a_request_has_no_mark_before_its_end() -> None:
    found = list(batches.batches([([sized(10)] * 1_100, 1)]))
    assert [(len(rows), mark) for rows, mark in found] == [(500, None), (500, None), (100, 1)]


def test_lines_without_rows_are_marked_too() -> None:
    assert list(batches.batches([([], 1), ([], 2)])) == [([], 2)]
    assert list(batches.batches([])) == []


@given(TEXTS)
def test_a_row_is_written_in_utf8_and_read_as_it_was(text: str) -> None:
    row = row_of(columns(body=text))
    assert json.loads(row.data) == columns(body=text)
    assert row.data == json.dumps(columns(body=text), ensure_ascii=False, separators=(",", ":")).encode()


def test_half_of_a_surrogate_pair_is_replaced_and_a_whole_pair_is_kept() -> None:
    written = row_of(columns(body="a\ud800b\udc00c\ud83d\ude00", extra={"\udfff": "x"})).data
    assert json.loads(written)["body"] == "a\ufffdb\ufffdc\U0001f600"
    assert json.loads(written)["extra"] == {"\ufffd": "x"}


def test_a_number_that_json_does_not_have_is_said() -> None:
    with pytest.raises(Unwritable):
        row_of(columns(cost_usd=float("inf")))


@pytest.mark.parametrize("char", ["x", "ä", "\U0001f600", '"', "\n", "\x01"])
@pytest.mark.parametrize("name", ["body", "command"])
def test_a_text_that_is_too_long_is_cut_as_little_as_need_be_and_says_by_how_much(name: str, char: str) -> None:
    text = char * 3_000
    whole = columns(**{"body": "short", "command": "short", name: text}, paths='["a"]')
    row = row_of(whole, 1_000)
    cut = json.loads(row.data)
    assert 1_000 - 20 < len(row.data) <= 1_000
    kept, mark, tail = cut[name].partition("… [cut by ctrlb-agent: ")
    assert mark
    assert tail == f"{3_000 - len(kept):,} more characters]"
    assert text.startswith(kept)
    assert {**cut, name: text} == whole


def test_a_command_and_a_body_that_are_both_too_long_are_both_cut() -> None:
    row = row_of(columns(body="b" * 5_000, command="c" * 3_000), 1_000)
    cut = json.loads(row.data)
    assert len(row.data) <= 1_000
    assert cut["body"] == "… [cut by ctrlb-agent: 5,000 more characters]"
    assert cut["command"].startswith("ccc")


def test_a_text_that_just_fits_is_whole() -> None:
    text = "x" * (1_000 - len(row_of(columns(body="")).data))
    assert json.loads(row_of(columns(body=text), 1_000).data)["body"] == text
    assert "cut by" in json.loads(row_of(columns(body=text + "x"), 1_000).data)["body"]


def test_a_row_of_the_largest_request_is_under_4_mib() -> None:
    body = body_of([row_of(columns(body="ä" * 5_000_000))])
    assert MAX_BYTES - 100 < len(body) <= MAX_BYTES < 4 << 20


def test_what_is_cut_again_says_all_that_is_missing() -> None:
    once = row_of(columns(body="x" * 9_000), 2_000)
    twice = shortened(once)
    assert twice is not None
    body = json.loads(twice.data)["body"]
    kept = len(body.partition("…")[0])
    assert body == f"{'x' * kept}… [cut by ctrlb-agent: {9_000 - kept:,} more characters]"
    assert len(twice.data) <= len(once.data) // 2


def test_a_row_without_a_text_cannot_be_shortened() -> None:
    assert shortened(row_of(columns(extra="x" * 1_000))) is None
