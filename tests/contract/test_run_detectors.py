"""What `get_run` finds in the rows of a run, the same on every store."""

import json
from dataclasses import replace

import pytest

from ctrlb.domain.rows import Event, Holder, SessionRow
from ctrlb.models import DetectorFinding, GetRunAnswer, GetRunRequest
from ctrlb.ports import Ports
from ctrlb.runs import RUN_EVENTS, get_run
from tests.conftest import HandClock, caller_named
from tests.contract.relay_rows import DATASET, LEASE_US, NOW_US, RUN, ending, hold, note

ADMIN = caller_named("ada", "Admin")
SECOND_US = 1_000_000
APP = "path:src/app.py"
B = Holder("ann", "b")
PATHS = json.dumps(["/work/app/src/app.py"])
CALL = SessionRow(NOW_US, "s1", 1, run_id=RUN.run_id, block_type="tool_use", paths=PATHS, cwd="/work/app")


def edit(stores: Ports, agent: str, at_us: int, **columns: object) -> None:
    row = replace(CALL, ts_us=at_us, session_id=f"session of {agent}", agent=agent, **columns)  # type: ignore[arg-type]
    stores.sessions.write(DATASET, "ann", [row], NOW_US)


def found(stores: Ports, detector: str, now_us: int) -> list[DetectorFinding]:
    clock = HandClock()
    clock.us = now_us
    run = get_run(GetRunRequest(run_id=RUN.run_id), ADMIN, replace(stores, clock=clock))
    assert isinstance(run, GetRunAnswer)
    return [finding for finding in run.detectors if finding.detector == detector]


def proofs(finding: DetectorFinding) -> list[tuple[str, int, str, int | None]]:
    return [(row.agent, row.ts, row.session_id, row.seq) for row in finding.rows]


@pytest.mark.promise("run-edit-against-claim")
def test_an_edit_of_a_file_that_another_held(all_stores: Ports) -> None:
    edited_us, ended_us = NOW_US + 20 * SECOND_US, NOW_US + 60 * SECOND_US
    all_stores.relay.append(RUN, hold(APP, 0))
    all_stores.relay.append(RUN, ending("DONE", APP, 1, ts_us=ended_us))
    edit(all_stores, "b", edited_us)
    edit(all_stores, "c", ended_us)
    [finding] = found(all_stores, "edit_against_claim", ended_us)
    assert (finding.key, finding.agents) == (APP, ["b", "a"])
    assert finding.message == "/work/app/src/app.py was edited by b while a held it"
    assert proofs(finding) == [("a", NOW_US, "", None), ("b", edited_us, "session of b", 1)]


@pytest.mark.promise("run-edit-against-claim", "edit-not-made-counts-not")
def test_an_edit_of_a_call_that_was_denied_is_against_nobodys_claim(all_stores: Ports) -> None:
    all_stores.relay.append(RUN, hold(APP, 0))
    edit(all_stores, "b", NOW_US + 20 * SECOND_US, tool_use_id="call-1")
    assert len(found(all_stores, "edit_against_claim", NOW_US + 30 * SECOND_US)) == 1
    denied = {"block_type": "tool_result", "is_error": True, "paths": "", "tool_use_id": "call-1"}
    edit(all_stores, "b", NOW_US + 21 * SECOND_US, seq=2, **denied)
    assert found(all_stores, "edit_against_claim", NOW_US + 30 * SECOND_US) == []


@pytest.mark.promise("run-expired-hold")
def test_work_on_a_file_after_the_lease_ran_out_which_a_renewal_moves(all_stores: Ports) -> None:
    renewed_us = NOW_US + 300 * SECOND_US
    late_us = renewed_us + LEASE_US + 20 * SECOND_US
    all_stores.relay.append(RUN, hold(APP, 0))
    all_stores.relay.append(RUN, hold(APP, 1, ts_us=renewed_us))
    edit(all_stores, "a", NOW_US + LEASE_US + 20 * SECOND_US)
    assert found(all_stores, "expired_hold", late_us) == []
    edit(all_stores, "a", late_us, seq=2)
    [finding] = found(all_stores, "expired_hold", late_us)
    assert (finding.key, finding.agents) == (APP, ["a"])
    assert finding.message == "a edited /work/app/src/app.py 20 s after its claim had run out"
    assert proofs(finding) == [("a", renewed_us, "", None), ("a", late_us, "session of a", 2)]


@pytest.mark.promise("run-contention")
def test_an_agent_that_is_refused_again_and_again(all_stores: Ports) -> None:
    refused = Event("REFUSED", B, NOW_US, "src/app.py", APP, "already held by a")
    all_stores.relay.add_events(RUN, refused, replace(refused, ts_us=NOW_US + 1))
    assert found(all_stores, "contention", NOW_US + 9) == []
    all_stores.relay.add_events(RUN, replace(refused, ts_us=NOW_US + 2))
    [finding] = found(all_stores, "contention", NOW_US + 9)
    assert (finding.key, finding.agents) == (APP, ["b"])
    assert finding.message == "b was refused 3 times on src/app.py: it was already held by a"
    assert proofs(finding) == [("b", NOW_US + number, "", None) for number in range(3)]


@pytest.mark.promise("run-edit-without-claim")
def test_an_edit_without_a_claim_unless_events_are_left_out_that_may_have_one(all_stores: Ports) -> None:
    all_stores.relay.append(RUN, hold("path:other.py", 0))
    edit(all_stores, "b", NOW_US)
    [finding] = found(all_stores, "edit_without_claim", NOW_US)
    assert (finding.key, finding.agents) == ("", ["b"])
    assert finding.message == "b edited /work/app/src/app.py without a claim"
    assert proofs(finding) == [("b", NOW_US, "session of b", 1)]
    notes = [note("hello", ts_us=NOW_US + number) for number in range(RUN_EVENTS - 1)]
    all_stores.relay.add_events(RUN, *notes)
    assert found(all_stores, "edit_without_claim", NOW_US + RUN_EVENTS) == []
