"""Rows sent again: they stay where they are, or leave nothing of what they said before. And the clock they get."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb.domain.errors import NotFound, Unavailable
from ctrlb.domain.rows import Run, SessionRow
from ctrlb.domain.run_rules import activities, merge_activities
from ctrlb.models import (
    MAX_TIMESTAMP_US,
    MIN_TIMESTAMP_US,
    FetchRecordsRequest,
    GetRunAnswer,
    GetRunRequest,
    SearchSessionsRequest,
    SessionRecord,
    UploadRecordsRequest,
)
from ctrlb.ports import Ports
from ctrlb.runs import get_run
from ctrlb.sessions import fetch_records, search_sessions, upload_records
from ctrlb.wiring import embedded
from tests.conftest import NOW_US, HandClock, caller_named
from tests.contract.session_rows import DATASET, said

ANN = caller_named("ann")
DAY_S = 86_400


def upload(stores: Ports, seq: int, **columns: Any) -> None:
    row = {"session_id": "s1", "seq": seq, "agent": "a", "run_id": "nightly", "body": "needle", **columns}
    upload_records(UploadRecordsRequest.model_validate({"records": [row]}), ANN, stores)


def rows(stores: Ports) -> list[SessionRecord]:
    return fetch_records(FetchRecordsRequest(session_id="s1", seq_from=0, seq_to=9), ANN, stores).rows


def found(stores: Ports) -> list[int]:
    return [hit.seq for hit in search_sessions(SearchSessionsRequest(term="needle"), ANN, stores).hits]


def run(stores: Ports, run_id: str = "nightly") -> GetRunAnswer:
    return get_run(GetRunRequest(run_id=run_id), ANN, stores)


def test_rows_without_times_that_are_sent_again_change_nothing(stores: Ports, clock: HandClock) -> None:
    edit = {"block_type": "tool_use", "paths": '["a.py"]'}
    upload(stores, 1, **edit)
    clock.move_s(1)
    upload(stores, 2)
    before = (rows(stores), found(stores), run(stores).model_dump(exclude={"status"}))
    clock.move_s(DAY_S)
    upload(stores, 1, **edit)
    assert (rows(stores), found(stores), run(stores).model_dump(exclude={"status"})) == before
    assert run(stores).status == "done"


def test_a_run_that_its_only_row_has_left_is_no_run(stores: Ports) -> None:
    upload(stores, 1, run_id="old-run")
    upload(stores, 1, run_id="new-run")
    with pytest.raises(NotFound):
        run(stores, "old-run")
    assert run(stores, "new-run").agents[0].sessions == ["s1"]
    upload(stores, 1, run_id="")
    with pytest.raises(NotFound):
        run(stores, "new-run")


def test_when_a_row_moves_the_runs_first_and_last_times_are_those_of_its_rows(stores: Ports) -> None:
    for seq in (1, 2, 3):
        upload(stores, seq, _timestamp=NOW_US + seq)
    upload(stores, 3, _timestamp=NOW_US + 1, block_type="result")
    assert (run(stores).started, run(stores).last) == (NOW_US + 1, NOW_US + 2)
    upload(stores, 1, _timestamp=NOW_US + 5)
    upload(stores, 3, _timestamp=NOW_US + 4)
    assert (run(stores).started, run(stores).last) == (NOW_US + 2, NOW_US + 5)


def test_an_agent_whose_rows_have_left_the_run_is_not_in_it(stores: Ports) -> None:
    for seq, agent in ((1, "a"), (2, "b"), (3, "a")):
        upload(stores, seq, agent=agent)
    upload(stores, 2, agent="a")
    upload(stores, 3, agent="", agent_id="c")
    assert [agent.agent for agent in run(stores).agents] == ["a", "c"]


def test_a_last_row_that_is_no_result_any_more_ends_no_session(stores: Ports, clock: HandClock) -> None:
    upload(stores, 1, block_type="result")
    upload(stores, 1, block_type="text")
    clock.move_s(200)
    assert [agent.silent for agent in run(stores).agents] == [True]


ROWS = st.builds(
    said,
    session_id=st.sampled_from(["s1", "s2"]),
    seq=st.integers(0, 2),
    body=st.just(""),
    ts_us=st.integers(NOW_US, NOW_US + 3),
    run_id=st.sampled_from(["", "r1", "r2"]),
    agent=st.sampled_from(["", "a", "s1"]),
    agent_id=st.sampled_from(["", "a"]),
)
UPLOADS = st.lists(st.lists(ROWS, min_size=1, max_size=4, unique_by=lambda row: row.identity), max_size=6)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(uploads=UPLOADS)
def test_after_any_uploads_the_runs_are_those_of_the_rows_that_stand(uploads: list[list[SessionRow]]) -> None:
    stand: dict[tuple[str, int, int], SessionRow] = {}
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as ports:
        for rows in uploads:
            ports.sessions.write(DATASET, "ann", rows, NOW_US)
            stand.update({row.identity: row for row in rows})
        for run_id in ("r1", "r2"):
            told = [activity for run, activity in activities(list(stand.values()), "ann") if run == run_id]
            assert ports.runs.agents(Run(DATASET, run_id)) == merge_activities(told)
            summary = ports.runs.run(Run(DATASET, run_id), NOW_US, None)
            times = [row.ts_us for row in stand.values() if row.run_id == run_id]
            shown = (summary.started_us, summary.last_us) if summary else None
            assert shown == ((min(times), max(times)) if times else None)


@pytest.mark.parametrize("now_us", [-1, 0, MIN_TIMESTAMP_US - 1, MAX_TIMESTAMP_US])
def test_while_the_clock_is_not_set_nothing_is_written(stores: Ports, clock: HandClock, now_us: int) -> None:
    upload(stores, 1)
    clock.us, set_us = now_us, clock.us
    with pytest.raises(Unavailable, match="clock is not set"):
        upload(stores, 2)
    clock.us = set_us
    assert [row.seq for row in rows(stores)] == [1]
