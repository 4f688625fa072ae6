"""How session rows lie in DynamoDB and S3: compressed where that saves a write unit, and nothing lost or left."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb.adapters.dynamodb_items import MAX_ITEM_BYTES, size_of, write_units
from ctrlb.adapters.dynamodb_session_items import session_row, stored_row
from ctrlb.domain.rows import SessionRow
from ctrlb.domain.session_text import cut_texts
from tests.aws.conftest import Deployed
from tests.contract.session_rows import DATASET, NOW_US, ran, said

MEBIBYTE = 1024 * 1024


def no_object(key: str) -> bytes:
    raise AssertionError(f"the object {key} is not needed")


@pytest.mark.parametrize("chars", [0, 1, 900, 5_000, 100_000])
def test_a_body_is_compressed_only_where_that_saves_a_write_unit(chars: int) -> None:
    row = said("s1", 1, "All work and no play. " * (chars // 22))
    stored = stored_row(DATASET, "ann", row, NOW_US)
    plain = {name: value for name, value in stored.item.items() if name != "body_z"} | {"body": {"S": row.body}}
    if "body_z" in stored.item:
        assert write_units(size_of(stored.item)) < write_units(size_of(plain))
    else:
        assert write_units(size_of(plain)) == 1
    assert stored.content is None
    assert session_row(stored.item, len(row.body), no_object) == row


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 300), st.integers(0, 5_000))
def test_a_body_is_read_cut_as_it_was_written_whole(text: str, times: int, chars: int) -> None:
    row = said("s1", 1, text * times)
    stored = stored_row(DATASET, "ann", row, NOW_US)
    assert session_row(stored.item, chars, no_object) == replace(row, body=row.body[:chars])


@pytest.mark.parametrize("column", ["body", "command", "paths", "extra"])
def test_a_row_that_an_item_cannot_hold_comes_back_whole(deployed: Deployed, noise: str, column: str) -> None:
    columns: dict[str, Any] = {column: noise}
    row = replace(ran("s1", 1, "make", body="made"), **columns)
    stored = stored_row(DATASET, "ann", row, NOW_US)
    assert size_of(stored.item) <= MAX_ITEM_BYTES
    assert stored.content is not None
    deployed.sessions.write(DATASET, "ann", [row, said("s1", 2, "text")], NOW_US)
    assert deployed.sessions.rows(DATASET, "s1", 0, 9, 9, MEBIBYTE) == [row, said("s1", 2, "text")]
    cut = deployed.sessions.rows(DATASET, "s1", 0, 9, 9, 4_000)
    assert cut == [cut_texts(row, 4_000), said("s1", 2, "text")]


def test_the_first_4000_characters_of_a_long_body_are_read_without_its_object(deployed: Deployed, noise: str) -> None:
    deployed.sessions.write(DATASET, "ann", [said("s1", 1, noise)], NOW_US)
    deployed.s3.sent.clear()
    [row] = deployed.sessions.rows(DATASET, "s1", 0, 9, 9, 4_000)
    assert (row.body, row.body_len, deployed.s3.sent) == (noise[:4_000], len(noise), [])


def test_a_row_sent_again_shorter_leaves_no_object_behind(deployed: Deployed, noise: str) -> None:
    long, other = said("s1", 1, noise), said("s1", 2, "text")
    deployed.sessions.write(DATASET, "ann", [long, other], NOW_US)
    assert deployed.s3.sent == ["PutObject"]
    redacted = said("s1", 1, "[REDACTED]")
    deployed.sessions.write(DATASET, "ann", [redacted], NOW_US + 1)
    assert deployed.s3.sent == ["PutObject", "DeleteObject"]
    assert deployed.sessions.rows(DATASET, "s1", 0, 9, 9, MEBIBYTE) == [redacted, other]


def test_a_session_that_never_had_an_object_asks_nothing_of_the_bucket(deployed: Deployed) -> None:
    for written_us in (NOW_US, NOW_US + 1):
        deployed.sessions.write(DATASET, "ann", [said("s1", 1, "text")], written_us)
    assert deployed.s3.sent == []


def test_a_row_that_needs_an_object_only_later_leaves_none_behind_either(deployed: Deployed, noise: str) -> None:
    for written_us, body in enumerate(["text", noise, "text"]):
        deployed.sessions.write(DATASET, "ann", [said("s1", 1, body)], NOW_US + written_us)
    assert deployed.s3.sent == ["PutObject", "DeleteObject"]


def test_every_column_comes_back_from_its_item() -> None:
    row = SessionRow(
        NOW_US, "s", 3, 4, cost_usd=1e300, input_tokens=-0.5, is_error=True, extra='{"a": 1}', body_len=2**40
    )
    assert session_row(stored_row(DATASET, "ann", row, NOW_US).item, 9, no_object) == row
