"""Answers stay short however long the rows are, and so does what is read for them."""

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlb.models import Answer, FetchRecordsRequest, FindCommandRequest, NextActionsRequest
from ctrlb.ports import Ports
from ctrlb.sessions import SHOWN_TEXT_CHARS, fetch_records, find_command, next_actions
from tests.conftest import caller_named
from tests.contract.session_rows import DATASET, NOW_US, ran

ANN = caller_named("ann")
MEBIBYTE = 1024 * 1024
LONG_CHARS = 200_000
ROWS = 10
PATHS = ["a.py"] * (LONG_CHARS // 8)


@pytest.fixture
def long_rows(stores: Ports) -> Ports:
    """A session whose every text is long."""
    command = f"{'x ' * (LONG_CHARS // 4)} make   lint {'y ' * (LONG_CHARS // 4)}"
    texts = {"command": command, "body": "é" * LONG_CHARS, "paths": json.dumps(PATHS), "extra": "e" * LONG_CHARS}
    for seq in range(ROWS):
        stores.sessions.write(DATASET, "ann", [ran("s1", seq, tool_use_id=str(seq), **texts)], NOW_US)
    return stores


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def size_of(answer: Answer) -> int:
    return len(answer.model_dump_json())


def test_of_each_text_of_a_row_4000_characters_are_fetched(long_rows: Ports, traced: None) -> None:
    answer = fetch_records(FetchRecordsRequest(session_id="s1", seq_from=0, seq_to=ROWS), ANN, long_rows)
    assert [len(row.command) for row in answer.rows] == [len(row.body) for row in answer.rows] == [4_000] * ROWS
    assert {row.body_len for row in answer.rows} == {LONG_CHARS}
    for row in answer.rows:
        shown = json.loads(row.paths)
        assert shown == PATHS[: len(shown)]
        assert SHOWN_TEXT_CHARS - 10 < len(row.paths) <= SHOWN_TEXT_CHARS
    assert tracemalloc.get_traced_memory()[1] < 2 * MEBIBYTE


def test_a_long_command_is_found_with_4000_characters_around_the_text(long_rows: Ports) -> None:
    answer = find_command(FindCommandRequest(command="make lint", limit=25), ANN, long_rows)
    assert answer.total == len(answer.occurrences) == ROWS
    for found in answer.occurrences:
        assert len(found.command) == SHOWN_TEXT_CHARS
        assert "x  make   lint y" in found.command


@pytest.mark.parametrize("asked", [{"k": 3}, {"tool": "Read"}], ids=["answered", "looked through"])
def test_next_actions_reads_the_texts_of_what_it_answers_only(
    long_rows: Ports, traced: None, asked: dict[str, Any]
) -> None:
    answer = next_actions(NextActionsRequest(session_id="s1", seq=0, **asked), ANN, long_rows)
    assert [len(event.text) for event in answer.events] == [2_000] * asked.get("k", 0)
    assert size_of(answer) < 10_000
    assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
