"""Keys of the DynamoDB tables: two different addresses never share one, and their order is the numbers'."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb.adapters import dynamodb_keys as keys
from ctrlb.domain.rows import Dataset, Run

# What keys are made of, more often than other characters, and ids that are longer than a key may be.
TEXTS = st.text(st.sampled_from("ab0123456789:,#") | st.characters(exclude_categories=["Cs"]), max_size=6)
IDS = TEXTS | TEXTS.map(lambda text: text * 300)
RUNS = st.builds(Run, st.builds(Dataset, IDS, IDS), IDS)
SEQS = st.integers(0, 2**53 - 1)
BLOCKS = st.integers(0, 2**31 - 1)
TIMES = st.integers(0, 4_102_444_800_000_000)

Key = tuple[str, str]


def claim_key(run: Run, resource: str, number: int) -> Key:
    return keys.run_pk(run), keys.claim_sk(resource, number)


def row_key(run: Run, seq: int, block: int) -> Key:
    return keys.session_pk(run.dataset, run.run_id), keys.row_sk(seq, block)


ADDRESSES = st.one_of(
    st.tuples(st.just(claim_key), RUNS, IDS, st.integers(0, 10**10 - 1)),
    st.tuples(st.just(row_key), RUNS, SEQS, BLOCKS),
)


@given(ADDRESSES, ADDRESSES)
def test_two_addresses_share_a_key_only_if_they_are_one(one: tuple, other: tuple) -> None:  # type: ignore[type-arg]
    assert (one[0](*one[1:]) == other[0](*other[1:])) == (one == other)


@given(st.lists(IDS, max_size=4), st.lists(IDS, max_size=4))
def test_ids_that_are_joined_give_the_text_of_no_others(one: list[str], other: list[str]) -> None:
    assert (keys.joined(*one) == keys.joined(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [(("a", "b"), ("a,1:b",)), (("1:a",), ("a",)), (("", "a"), ("a", "")), (("ab", "c"), ("a", "bc"))]
)
def test_no_id_reaches_into_the_next(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert keys.joined(*one) != keys.joined(*other)


@given(RUNS, IDS, SEQS, BLOCKS)
def test_no_key_is_longer_than_dynamodb_allows(run: Run, text: str, seq: int, block: int) -> None:
    assert max(len(key.encode()) for key in (keys.run_pk(run), keys.session_pk(run.dataset, text))) <= 2_048
    sort_keys = [keys.claim_sk(text, 0), keys.member_sk(text), keys.key_sk(text), keys.edit_sk(text, seq, block)]
    assert max(len(key.encode()) for key in sort_keys) <= 1_024


@given(st.tuples(SEQS, BLOCKS), st.tuples(SEQS, BLOCKS))
def test_rows_are_ordered_by_seq_and_block_and_read_back(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (keys.row_sk(*one) < keys.row_sk(*other)) == (one < other)
    assert keys.place_of_row(keys.row_sk(*one)) == one


@given(st.tuples(TIMES, TIMES), st.tuples(TIMES, TIMES))
def test_rows_of_a_run_are_ordered_by_their_time_then_by_their_arrival(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (keys.at(*one, "x") < keys.at(*other, "x")) == (one < other)
    assert keys.time_of(keys.at(*one, "x")) == one[0]


@pytest.mark.parametrize("number", [-1, 10**10])
def test_a_number_that_would_break_the_order_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="no number of up to 10 digits"):
        keys.claim_sk("path:a", number)
