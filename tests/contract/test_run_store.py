"""The port RunStore, on every set of stores: what the relay's and the sessions' rows of a run add up to."""

from dataclasses import replace

import pytest

from ctrlb.domain.rows import AgentActivity, Dataset, Edit, Event, Holder, Run, RunSummary, SessionRow
from ctrlb.ports import Ports
from tests.contract.relay_rows import DATASET, LEASE_US, NOW_US, RUN, ending, hold, note

ROW = SessionRow(
    ts_us=NOW_US,
    session_id="s1",
    seq=1,
    run_id=RUN.run_id,
    agent="a",
    block_type="tool_use",
    tool_name="Edit",
    cwd="/work/app",
    paths='["src/app.py"]',
)
ANN_A = Holder("ann", "a")
SECOND_US = 1_000_000


def upload(stores: Ports, *rows: SessionRow, user: str = "ann", dataset: Dataset = DATASET) -> None:
    stores.sessions.write(dataset, user, rows, NOW_US)


def started(stores: Ports, run_id: str, seconds: int, user: str = "ann") -> None:
    stores.relay.add_events(Run(DATASET, run_id), note("hello", user=user, ts_us=NOW_US + seconds * SECOND_US))


def listed(
    stores: Ports, before: tuple[int, str] | None = None, limit: int = 100, user: str | None = None
) -> list[str]:
    return [run.run_id for run in stores.runs.runs(DATASET, NOW_US, before, limit, user)]


def test_there_is_no_run_before_its_first_row(all_stores: Ports) -> None:
    assert all_stores.runs.runs(DATASET, NOW_US, None, 10, None) == []
    assert all_stores.runs.run(RUN, NOW_US, None) is None
    assert all_stores.runs.agents(RUN) == []
    assert all_stores.runs.resources(RUN, 500) == ([], 0)
    assert all_stores.runs.edits(RUN, 500) == []


def test_a_run_exists_from_its_first_row_in_the_relay(all_stores: Ports) -> None:
    all_stores.relay.add_events(RUN, note("hello"))
    summary = RunSummary("nightly", NOW_US, NOW_US, agents=1, events=1, held=0)
    assert all_stores.runs.run(RUN, NOW_US, None) == summary
    assert all_stores.runs.runs(DATASET, NOW_US, None, 10, None) == [summary]


def test_a_run_exists_from_its_first_row_in_a_session(all_stores: Ports) -> None:
    upload(all_stores, ROW)
    summary = RunSummary("nightly", NOW_US, NOW_US, agents=1, events=0, held=0)
    assert all_stores.runs.run(RUN, NOW_US, None) == summary
    assert all_stores.runs.runs(DATASET, NOW_US, None, 10, None) == [summary]


def test_session_rows_without_a_run_make_none(all_stores: Ports) -> None:
    upload(all_stores, replace(ROW, run_id=""))
    assert listed(all_stores) == []


def test_a_run_starts_with_the_first_and_lasts_to_the_last_of_all_its_rows_in_whatever_order(
    all_stores: Ports,
) -> None:
    all_stores.relay.add_events(RUN, note("hello", ts_us=NOW_US + 20))
    all_stores.relay.append(RUN, hold("path:a", 0, ts_us=NOW_US + 10))
    upload(all_stores, replace(ROW, ts_us=NOW_US + 40), replace(ROW, ts_us=NOW_US + 5, seq=2))
    all_stores.relay.add_events(RUN, note("late", agent="b", ts_us=NOW_US + 30))
    assert all_stores.runs.run(RUN, NOW_US, None) == RunSummary(
        "nightly", NOW_US + 5, NOW_US + 40, agents=2, events=3, held=1
    )
    all_stores.relay.add_events(RUN, note("early", ts_us=NOW_US + 1))
    all_stores.relay.add_events(RUN, note("last", ts_us=NOW_US + 99))
    assert all_stores.runs.run(RUN, NOW_US, None) == RunSummary(
        "nightly", NOW_US + 1, NOW_US + 99, agents=2, events=5, held=1
    )


def test_an_agent_counts_once_and_one_name_under_two_users_twice(all_stores: Ports) -> None:
    all_stores.relay.add_events(RUN, note("hello"))
    upload(all_stores, ROW, replace(ROW, seq=2), replace(ROW, session_id="s2"))
    upload(all_stores, replace(ROW, session_id="s3"), user="bob")
    summary = all_stores.runs.run(RUN, NOW_US, None)
    assert summary is not None
    assert summary.agents == 2


def test_held_counts_the_live_holds_that_are_last_in_their_record(all_stores: Ports) -> None:
    rows = [hold("path:held", 0), hold("path:held", 1), hold("path:again", 0), ending("RELEASE", "path:again", 1)]
    rows += [hold("path:again", 2, agent="b"), hold("path:done", 0), ending("DONE", "path:done", 1)]
    rows += [hold("path:free", 0), ending("RELEASE", "path:free", 1), hold("path:expired", 0, ts_us=NOW_US - 1)]
    for row in rows:
        all_stores.relay.append(RUN, row)
    for now_us, held in [(NOW_US, 3), (NOW_US + LEASE_US - 1, 2), (NOW_US + LEASE_US, 0)]:
        summary = all_stores.runs.run(RUN, now_us, None)
        assert summary is not None
        assert (summary.held, summary.events) == (held, len(rows))


def test_runs_are_listed_newest_started_first_and_paged_below_the_last_one_seen(all_stores: Ports) -> None:
    for run_id, seconds in [("b", 1), ("a", 1), ("c", 1), ("old", 0), ("new", 2)]:
        started(all_stores, run_id, seconds)
    upload(all_stores, replace(ROW, run_id="session", ts_us=NOW_US + SECOND_US))
    order = ["new", "session", "c", "b", "a", "old"]
    assert listed(all_stores) == order
    for limit in (1, 2, 4):
        pages: list[str] = []
        before: tuple[int, str] | None = None
        while page := all_stores.runs.runs(DATASET, NOW_US, before, limit, None):
            assert len(page) <= limit
            pages += [run.run_id for run in page]
            before = (page[-1].started_us, page[-1].run_id)
        assert pages == order
    assert listed(all_stores, before=(NOW_US + SECOND_US, "c")) == ["b", "a", "old"]
    assert listed(all_stores, before=(NOW_US, "old")) == []


def test_a_user_sees_the_runs_with_a_row_of_theirs_in_the_relay_or_in_a_session(all_stores: Ports) -> None:
    for run_id, seconds in [("of ann", 1), ("of both", 2), ("of bob", 3)]:
        started(all_stores, run_id, seconds, user="bob" if run_id == "of bob" else "ann")
    upload(all_stores, replace(ROW, run_id="of both"), user="bob")  # it started with this row, whoever asks
    assert listed(all_stores, user="ann") == ["of ann", "of both"]
    assert listed(all_stores, user="bob") == ["of bob", "of both"]
    assert listed(all_stores, user="cid") == []
    assert all_stores.runs.run(Run(DATASET, "of ann"), NOW_US, "bob") is None
    whole = all_stores.runs.run(Run(DATASET, "of both"), NOW_US, None)
    assert whole is not None
    assert whole.agents == 2
    assert all_stores.runs.run(Run(DATASET, "of both"), NOW_US, "ann") == whole
    assert all_stores.runs.run(Run(DATASET, "of both"), NOW_US, "bob") == whole


@pytest.mark.parametrize("other", [Dataset("acme", "other"), Dataset("umbrella", DATASET.name)])
def test_runs_of_other_datasets_and_workspaces_are_other_runs(all_stores: Ports, other: Dataset) -> None:
    all_stores.relay.append(Run(other, RUN.run_id), hold("path:a", 0))
    upload(all_stores, ROW, dataset=other)
    assert listed(all_stores) == []
    assert all_stores.runs.run(RUN, NOW_US, None) is None
    assert all_stores.runs.agents(RUN) == []
    assert all_stores.runs.resources(RUN, 500) == ([], 0)
    assert all_stores.runs.edits(RUN, 500) == []
    assert all_stores.runs.run(Run(other, RUN.run_id), NOW_US, None) is not None


def test_agents_come_in_order_of_their_first_row_with_their_last_one_and_sessions(all_stores: Ports) -> None:
    all_stores.relay.add_events(RUN, note("hello", ts_us=NOW_US + 10))
    all_stores.relay.append(RUN, hold("path:a", 0, agent="b", ts_us=NOW_US + 5))
    upload(
        all_stores,
        replace(ROW, ts_us=NOW_US + 7),
        replace(ROW, ts_us=NOW_US + 90, seq=2, block_type="result"),
        replace(ROW, ts_us=NOW_US + 50, session_id="s2"),
    )
    all_stores.relay.add_events(RUN, Event("CHECK", Holder("ann", "c"), NOW_US + 20, "a", "path:a"))
    assert all_stores.runs.agents(RUN) == [
        AgentActivity(Holder("ann", "b"), NOW_US + 5, NOW_US + 5, ""),
        AgentActivity(ANN_A, NOW_US + 7, NOW_US + 90, "result", ("s1", "s2")),
        AgentActivity(Holder("ann", "c"), NOW_US + 20, NOW_US + 20, ""),
    ]
    all_stores.relay.add_events(RUN, note("and on", ts_us=NOW_US + 91))
    assert all_stores.runs.agents(RUN)[1] == AgentActivity(ANN_A, NOW_US + 7, NOW_US + 91, "", ("s1", "s2"))


def test_resources_are_the_last_rows_newest_first_and_how_many_records_there_are(all_stores: Ports) -> None:
    first = [hold(f"path:{index}", 0, ts_us=NOW_US + index) for index in range(6)]
    last = [ending("DONE", "path:1", 1, ts_us=NOW_US + 50), hold("path:3", 1, agent="b", ts_us=NOW_US + 2)]
    for row in [*first, *last]:
        all_stores.relay.append(RUN, row)
    all_stores.relay.add_events(RUN, Event("REFUSED", ANN_A, NOW_US + 99, "7", "path:7"))
    expected = [last[0], first[5], first[4], last[1], first[2], first[0]]
    assert all_stores.runs.resources(RUN, 500) == (expected, 6)
    assert all_stores.runs.resources(RUN, 2) == (expected[:2], 6)


def test_edits_are_those_of_tool_calls_newest_first(all_stores: Ports) -> None:
    upload(
        all_stores,
        ROW,
        replace(ROW, seq=2, ts_us=NOW_US + 2, paths='["/work/app/src/app.py", "Makefile"]', block_idx=3),
        replace(ROW, seq=3, ts_us=NOW_US + 3, block_type="tool_result"),
    )
    upload(all_stores, replace(ROW, session_id="s2", agent="b", ts_us=NOW_US + 1), user="bob")
    first = Edit(ANN_A, "path:src/app.py", "src/app.py", NOW_US, "s1", 1, 0)
    by_bob = Edit(Holder("bob", "b"), "path:src/app.py", "src/app.py", NOW_US + 1, "s2", 1, 0)
    newest = all_stores.runs.edits(RUN, 500)
    assert {edit.key for edit in newest[:2]} == {"path:src/app.py", "path:Makefile"}
    assert {(edit.seq, edit.block_idx, edit.ts_us) for edit in newest[:2]} == {(2, 3, NOW_US + 2)}
    assert newest[2:] == [by_bob, first]
    assert all_stores.runs.edits(RUN, 3) == newest[:3]


def edited(stores: Ports, limit: int = 500) -> list[int]:
    """The seqs of the run's edits."""
    return [edit.seq for edit in stores.runs.edits(RUN, limit)]


CALL = replace(ROW, tool_use_id="call-1")
FAILED = replace(
    CALL, seq=2, ts_us=NOW_US + 1, block_type="tool_result", tool_name="", paths="", is_error=True, body="denied"
)


@pytest.mark.promise("edit-not-made-counts-not")
@pytest.mark.parametrize("order", ["with its result", "before it", "after it"])
def test_an_edit_that_was_denied_or_failed_is_none(all_stores: Ports, order: str) -> None:
    other = replace(CALL, seq=9, tool_use_id="call-2", ts_us=NOW_US + 9)
    uploads = {
        "with its result": [[CALL, FAILED, other]],
        "before it": [[CALL, other], [FAILED]],
        "after it": [[FAILED], [other, CALL]],
    }
    for rows in uploads[order]:
        upload(all_stores, *rows)
    assert edited(all_stores) == [9]
    upload(all_stores, CALL, FAILED)  # sent again
    assert edited(all_stores) == [9]


def test_an_edit_counts_while_its_result_is_not_there_or_is_no_error_or_anothers(all_stores: Ports) -> None:
    upload(all_stores, CALL, replace(CALL, session_id="s2", seq=3))
    assert edited(all_stores) == [3, 1]
    upload(
        all_stores,
        replace(FAILED, is_error=False),
        replace(FAILED, seq=4, tool_use_id="call-9"),
        replace(FAILED, seq=5, tool_use_id=""),
        replace(FAILED, seq=6, block_type="text"),
        replace(FAILED, seq=7, run_id="other"),
        replace(FAILED, session_id="s3", seq=1),
    )
    upload(all_stores, FAILED, dataset=Dataset("acme", "other"))
    upload(all_stores, FAILED, dataset=Dataset("umbrella", DATASET.name))
    assert edited(all_stores) == [3, 1]
    upload(all_stores, replace(FAILED, session_id="s2", seq=8))
    assert edited(all_stores) == [1]


def test_calls_without_an_id_pair_with_no_result(all_stores: Ports) -> None:
    upload(all_stores, ROW, replace(FAILED, tool_use_id=""))
    assert edited(all_stores) == [1]


def test_the_newest_edits_are_those_that_were_made(all_stores: Ports) -> None:
    calls = [replace(CALL, seq=seq, ts_us=NOW_US + seq, tool_use_id=f"call-{seq}") for seq in range(10)]
    failed = [replace(FAILED, seq=100 + seq, tool_use_id=f"call-{seq}") for seq in range(5, 10)]
    upload(all_stores, *calls, *failed)
    assert edited(all_stores, 3) == [4, 3, 2]


def test_a_result_that_is_corrected_gives_the_edit_back(all_stores: Ports) -> None:
    all_stores.sessions.write(DATASET, "ann", [CALL, FAILED], NOW_US)
    assert edited(all_stores) == []
    all_stores.sessions.write(DATASET, "ann", [replace(FAILED, is_error=False)], NOW_US + 1)
    assert edited(all_stores) == [1]
    all_stores.sessions.write(DATASET, "ann", [replace(FAILED, body="denied again")], NOW_US + 2)
    assert edited(all_stores) == []


def test_an_upload_sent_again_changes_nothing(all_stores: Ports) -> None:
    upload(all_stores, ROW)
    before = (all_stores.runs.run(RUN, NOW_US, None), all_stores.runs.agents(RUN), all_stores.runs.edits(RUN, 500))
    upload(all_stores, ROW)
    after = (all_stores.runs.run(RUN, NOW_US, None), all_stores.runs.agents(RUN), all_stores.runs.edits(RUN, 500))
    assert after == before
