"""Uploads and the time: a row sent again stays where it is, and no row gets a time that cannot be."""

from typing import Any

import pytest

from ctrlb.domain.errors import Unavailable
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
from tests.conftest import HandClock, caller_named

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


@pytest.mark.parametrize("now_us", [-1, 0, MIN_TIMESTAMP_US - 1, MAX_TIMESTAMP_US])
def test_while_the_clock_is_not_set_nothing_is_written(stores: Ports, clock: HandClock, now_us: int) -> None:
    upload(stores, 1)
    clock.us, set_us = now_us, clock.us
    with pytest.raises(Unavailable, match="clock is not set"):
        upload(stores, 2)
    clock.us = set_us
    assert [row.seq for row in rows(stores)] == [1]
