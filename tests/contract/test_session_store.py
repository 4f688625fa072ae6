"""The port SessionStore: rows by identity, the last one stands, a session has one owner."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ctrlb.domain.rows import NO_TIME_US, Dataset, SessionRow
from ctrlb.domain.session_text import cut_texts
from ctrlb.ports import SessionStore, SessionTaken
from tests.contract.session_adapters import StoreOpening
from tests.contract.session_rows import DATASET, NOW_US, ran, said

FULL = SessionRow(
    ts_us=NOW_US,
    session_id="s/1 % é",
    seq=2**53 - 1,
    block_idx=7,
    host="h",
    harness="claude",
    parent_session="p",
    agent_id="sub",
    run_id="run",
    agent="a",
    role="assistant",
    block_type="tool_use",
    tool_name="Edit",
    tool_use_id="call-1",
    command="rm  -rf 'x'\n",
    paths='["a.py", "b.py"]',
    body="body \x00 with é and 😀\n",
    body_len=21,
    is_error=True,
    is_summary=True,
    cwd="/work",
    git_branch="main",
    cost_usd=0.25,
    input_tokens=1e9,
    output_tokens=0.5,
    user_name="ann",
    extra='{"more": 1}',
)
EVERYTHING = (0, 2**53 - 1, 1_000, 1_000)


@pytest.fixture
def store(open_store: StoreOpening, tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(tmp_path) as opened:
        yield opened


def all_rows(store: SessionStore, session_id: str, dataset: Dataset = DATASET) -> list[SessionRow]:
    return store.rows(dataset, session_id, *EVERYTHING)


def test_a_row_comes_back_with_every_column_as_it_was_written(store: SessionStore) -> None:
    store.write(DATASET, "ann", [FULL], NOW_US)
    [row] = all_rows(store, FULL.session_id)
    assert row == FULL
    assert [type(value) for value in (row.is_error, row.is_summary, row.cost_usd)] == [bool, bool, float]


def test_a_store_without_rows_answers_empty(store: SessionStore) -> None:
    assert store.owner(DATASET, "s1") is None
    assert all_rows(store, "s1") == []


def test_an_upload_without_rows_writes_nothing(store: SessionStore) -> None:
    store.write(DATASET, "ann", [], NOW_US)
    assert all_rows(store, "s1") == []


def test_rows_come_in_order_of_seq_and_block_within_the_bounds_asked_for(store: SessionStore) -> None:
    rows = [said("s1", seq, "text", block_idx=block, ts_us=NOW_US) for seq in (3, 1, 2, 10) for block in (1, 0)]
    store.write(DATASET, "ann", rows, NOW_US)
    found = store.rows(DATASET, "s1", 2, 9, 3, 100)
    assert [(row.seq, row.block_idx) for row in found] == [(2, 0), (2, 1), (3, 0)]


@pytest.mark.parametrize("body", ["abcdef", "ééé€€€", "😀😀😀😀", "a\x00b\x00c"], ids=["ascii", "two", "four", "nul"])
def test_a_body_is_cut_at_characters_and_its_length_is_of_the_whole(store: SessionStore, body: str) -> None:
    store.write(DATASET, "ann", [said("s1", 1, body)], NOW_US)
    [row] = store.rows(DATASET, "s1", 1, 1, 1, 3)
    assert (row.body, row.body_len) == (body[:3], len(body))


def test_every_text_is_cut_and_none_is_read_where_none_is_wanted(store: SessionStore) -> None:
    long = replace(FULL, command="é" * 300, paths='["a.py"]' * 40, extra='{"more": 1}' * 30)
    store.write(DATASET, "ann", [long], NOW_US)
    for chars in (0, 1, 100, 1_000):
        expected = cut_texts(long, chars)
        assert store.rows(DATASET, long.session_id, *EVERYTHING[:3], chars) == [expected]
        assert store.rows_at(DATASET, long.session_id, [(long.seq, long.block_idx)], chars) == [expected]


def test_rows_are_read_by_their_places(store: SessionStore) -> None:
    rows = [said("s1", seq, f"text {seq}.{block}", block_idx=block) for seq in range(20) for block in (0, 1)]
    store.write(DATASET, "ann", [*rows, said("s2", 1, "another")], NOW_US)
    places = [(row.seq, row.block_idx) for row in rows[::3]]
    found = store.rows_at(DATASET, "s1", [*places, (99, 0), (1, 7)], 100)
    assert sorted(found, key=lambda row: row.identity) == rows[::3]
    assert store.rows_at(DATASET, "s1", [], 100) == store.rows_at(DATASET, "s3", places, 100) == []


def test_a_body_of_4_mebibytes_is_kept_whole(store: SessionStore) -> None:
    body = "0123456789abcdef" * (4 * 1024 * 1024 // 16)
    store.write(DATASET, "ann", [said("s1", 1, body)], NOW_US)
    assert store.rows(DATASET, "s1", 1, 1, 1, len(body))[0].body == body


def test_the_same_rows_sent_again_change_nothing(store: SessionStore) -> None:
    rows = [said("s1", seq, f"text {seq}") for seq in range(5)]
    store.write(DATASET, "ann", rows, NOW_US)
    store.write(DATASET, "ann", [*rows[2:], said("s1", 9, "new")], NOW_US + 1)
    assert all_rows(store, "s1") == [*rows, said("s1", 9, "new")]


def test_a_row_sent_without_a_time_gets_that_of_its_arrival_and_keeps_it(store: SessionStore) -> None:
    untimed = ran("s1", 1, "make", ts_us=NO_TIME_US, run_id="run", paths='["a.py"]')
    store.write(DATASET, "ann", [untimed, said("s1", 2, "timed")], NOW_US)
    store.write(DATASET, "ann", [untimed, replace(said("s1", 2, "timed"), ts_us=NO_TIME_US)], NOW_US + 5)
    assert all_rows(store, "s1") == [replace(untimed, ts_us=NOW_US), said("s1", 2, "timed")]
    store.write(DATASET, "ann", [replace(untimed, command="make [REDACTED]")], NOW_US + 9)
    assert all_rows(store, "s1")[0] == replace(untimed, command="make [REDACTED]", ts_us=NOW_US)
    store.write(DATASET, "ann", [replace(untimed, ts_us=NOW_US + 7), replace(untimed, seq=3)], NOW_US + 9)
    assert [row.ts_us for row in all_rows(store, "s1")] == [NOW_US + 7, said("s1", 2, "").ts_us, NOW_US + 9]


def test_a_row_sent_again_with_other_columns_takes_the_place_of_the_first(store: SessionStore) -> None:
    store.write(DATASET, "ann", [ran("s1", 1, "export KEY=secret"), said("s1", 2, "kept")], NOW_US)
    redacted = ran("s1", 1, "export KEY=[REDACTED]", ts_us=NOW_US - 5, cost_usd=1.5)
    store.write(DATASET, "ann", [redacted], NOW_US)
    assert all_rows(store, "s1") == [redacted, said("s1", 2, "kept")]


def test_a_session_belongs_to_the_user_of_its_first_write(store: SessionStore) -> None:
    store.write(DATASET, "ann", [said("s1", 1, "mine")], NOW_US)
    with pytest.raises(SessionTaken) as taken:
        store.write(DATASET, "bob", [said("s2", 1, "new"), said("s1", 1, "not his")], NOW_US)
    assert taken.value.session_id == "s1"
    assert all_rows(store, "s1") == [said("s1", 1, "mine")]
    assert (store.owner(DATASET, "s1"), store.owner(DATASET, "s2")) == ("ann", None)
    assert all_rows(store, "s2") == []


@pytest.mark.parametrize("other", [Dataset("acme", "other"), Dataset("other", "agent_sessions")], ids=["name", "space"])
def test_the_same_session_id_in_another_dataset_is_another_session(store: SessionStore, other: Dataset) -> None:
    store.write(DATASET, "ann", [said("s1", 1, "one")], NOW_US)
    store.write(other, "bob", [said("s1", 1, "two")], NOW_US)
    assert [row.body for row in all_rows(store, "s1") + all_rows(store, "s1", other)] == ["one", "two"]
    assert (store.owner(DATASET, "s1"), store.owner(other, "s1")) == ("ann", "bob")


@pytest.mark.races
def test_of_users_that_begin_a_session_at_once_one_gets_it_whole(store: SessionStore) -> None:
    users = [f"user{number}" for number in range(8)]
    together = threading.Barrier(len(users))

    def begin(user: str) -> bool:
        together.wait()
        try:
            store.write(DATASET, user, [said("s1", seq, f"by {user}") for seq in range(20)], NOW_US)
        except SessionTaken:
            return False
        return True

    with ThreadPoolExecutor(len(users)) as threads:
        won = [user for user, first in zip(users, threads.map(begin, users), strict=True) if first]
    assert won == [store.owner(DATASET, "s1")]
    assert [row.body for row in all_rows(store, "s1")] == [f"by {won[0]}"] * 20


@pytest.mark.races
def test_uploads_of_many_sessions_at_once_lose_no_row(store: SessionStore) -> None:
    uploads = [[said(f"s{session}", seq, "text", ts_us=NOW_US) for seq in range(50)] for session in range(16)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda rows: store.write(DATASET, "ann", rows, NOW_US), [*uploads, *uploads]))
    assert all(all_rows(store, rows[0].session_id) == rows for rows in uploads)


def test_rows_survive_closing(open_store: StoreOpening, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write(DATASET, "ann", [FULL], NOW_US)
    with open_store(tmp_path) as store:
        assert all_rows(store, FULL.session_id) == [FULL]
        store.write(DATASET, "ann", [replace(FULL, body="other")], NOW_US)
        assert all_rows(store, FULL.session_id) == [replace(FULL, body="other")]
