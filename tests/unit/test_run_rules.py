"""What a run's rows say: edits, activity, life and silence."""

import json
import random
from dataclasses import replace

import pytest

from ctrlb.domain.rows import AgentActivity, ClaimKind, ClaimRow, Edit, Holder, SessionRow
from ctrlb.domain.run_rules import (
    activities,
    edits_of,
    is_live,
    is_silent,
    merge_activities,
    resource_state,
)

ANN_A = Holder("ann", "a")
EDIT = SessionRow(
    ts_us=1_000,
    session_id="s1",
    seq=4,
    block_idx=2,
    run_id="run",
    agent="a",
    block_type="tool_use",
    cwd="/work/app",
    paths='["src/app.py"]',
)


def keys(row: SessionRow) -> list[str]:
    return [edit.key for edit in edits_of(row, "ann")]


def test_a_tool_call_with_paths_is_an_edit_with_the_row_that_proves_it() -> None:
    assert edits_of(EDIT, "ann") == [Edit(ANN_A, "path:src/app.py", "src/app.py", 1_000, "s1", 4, 2)]


@pytest.mark.parametrize("change", [{"run_id": ""}, {"block_type": "tool_result"}, {"paths": ""}])
def test_a_row_without_a_run_or_a_call_or_paths_is_no_edit(change: dict[str, str]) -> None:
    assert edits_of(replace(EDIT, **change), "ann") == []  # type: ignore[arg-type]  # all three are strings


def test_paths_are_keyed_as_paths_also_without_an_extension() -> None:
    assert keys(replace(EDIT, paths='["Makefile", "/work/app/LICENSE", "task:x"]')) == [
        "path:Makefile",
        "path:LICENSE",
        "path:task:x",
    ]


def test_two_spellings_of_a_path_in_one_call_are_one_edit() -> None:
    row = replace(EDIT, paths='["src/app.py", "/work/app/src/app.py", "docs/a.md"]')
    assert keys(row) == ["path:src/app.py", "path:docs/a.md"]


@pytest.mark.parametrize(
    "paths",
    ["src/app.py", "{}", '"src/app.py"', "null", "[", "[1, null, []]", '["", " ", "a\\u0000b"]', "[" * 100_000],
)
def test_what_is_no_path_is_skipped(paths: str) -> None:
    assert keys(replace(EDIT, paths=paths)) == []


def test_a_path_beside_one_that_has_no_key_still_counts() -> None:
    assert keys(replace(EDIT, paths=json.dumps(["a\nb", "ok.py", 7]))) == ["path:ok.py"]


def test_an_agent_without_a_name_goes_by_its_subagent_then_by_its_session() -> None:
    unnamed = replace(EDIT, agent="", agent_id="sub")
    assert edits_of(unnamed, "ann")[0].holder == Holder("ann", "sub")
    assert edits_of(replace(unnamed, agent_id=""), "ann")[0].holder == Holder("ann", "s1")


def test_activity_is_told_for_each_run_agent_and_session() -> None:
    rows = [
        replace(EDIT, ts_us=30, seq=2, block_type="result"),
        replace(EDIT, ts_us=10, seq=1),
        replace(EDIT, ts_us=20, session_id="s2"),
        replace(EDIT, ts_us=20, run_id="other"),
        replace(EDIT, ts_us=20, agent="b"),
        replace(EDIT, ts_us=5, run_id=""),
    ]
    assert activities(rows, "ann") == [
        ("run", AgentActivity(ANN_A, 10, 30, "result", ("s1",))),
        ("run", AgentActivity(ANN_A, 20, 20, "tool_use", ("s2",))),
        ("other", AgentActivity(ANN_A, 20, 20, "tool_use", ("s1",))),
        ("run", AgentActivity(Holder("ann", "b"), 20, 20, "tool_use", ("s1",))),
    ]


def test_of_rows_of_one_moment_the_last_in_the_session_is_the_last() -> None:
    rows = [replace(EDIT, seq=9, block_type="result"), replace(EDIT, seq=8, block_idx=5, block_type="text")]
    assert [activity.last_block_type for _, activity in activities(rows, "ann")] == ["result"]


def test_relay_and_session_activity_of_an_agent_are_one() -> None:
    relay = AgentActivity(ANN_A, 5, 50, "")
    sessions = [AgentActivity(ANN_A, 10, 40, "text", ("s1",)), AgentActivity(ANN_A, 1, 9, "result", ("s0",))]
    assert merge_activities([relay, *sessions]) == [AgentActivity(ANN_A, 1, 50, "", ("s0", "s1"))]


def test_agents_are_listed_in_order_of_their_first_row_however_they_are_read() -> None:
    found = [
        AgentActivity(Holder("u", "b"), 2, 9, ""),
        AgentActivity(Holder("u", "a"), 2, 9, ""),
        AgentActivity(Holder("v", "a"), 1, 9, ""),
        AgentActivity(Holder("u", "a"), 3, 9, ""),
    ]
    for seed in range(10):
        shuffled = random.Random(seed).sample(found, len(found))
        assert [(one.holder.user, one.holder.agent, one.first_us) for one in merge_activities(shuffled)] == [
            ("v", "a", 1),
            ("u", "a", 2),
            ("u", "b", 2),
        ]


@pytest.mark.parametrize("other", ["", "text", "result"])
def test_a_session_that_ended_at_the_moment_of_another_row_has_ended(other: str) -> None:
    rows = [AgentActivity(ANN_A, 1, 50, "result", ("s1",)), AgentActivity(ANN_A, 50, 50, other)]
    assert merge_activities(rows)[0].last_block_type == "result"
    assert merge_activities(reversed(rows))[0].last_block_type == "result"


def test_a_session_row_at_the_moment_of_a_relay_row_is_the_last() -> None:
    rows = [AgentActivity(ANN_A, 1, 50, ""), AgentActivity(ANN_A, 1, 50, "text", ("s1",))]
    assert merge_activities(rows) == [AgentActivity(ANN_A, 1, 50, "text", ("s1",))]


@pytest.mark.parametrize(
    ("last_us", "live_hold", "live"), [(400, False, False), (401, False, True), (0, True, True), (2_000, False, True)]
)
def test_a_run_is_live_while_a_hold_is_or_its_last_row_is_younger_than_the_lease(
    last_us: int, live_hold: bool, live: bool
) -> None:
    assert is_live(last_us, live_hold, now_us=1_000, lease_us=600) is live


@pytest.mark.parametrize(
    ("last_us", "block_type", "silent"),
    [(880, "text", False), (879, "text", True), (879, "", True), (879, "result", False), (2_000, "text", False)],
)
def test_an_agent_is_silent_when_its_last_row_is_old_and_did_not_end_a_session(
    last_us: int, block_type: str, silent: bool
) -> None:
    assert is_silent(AgentActivity(ANN_A, 0, last_us, block_type), now_us=1_000, silent_after_us=120) is silent


@pytest.mark.parametrize(
    ("kind", "lease_until_us", "state"),
    [("HOLD", 1_001, "held"), ("HOLD", 1_000, "expired"), ("RELEASE", 0, "released"), ("DONE", 0, "done")],
)
def test_the_last_row_and_the_present_are_the_state(kind: ClaimKind, lease_until_us: int, state: str) -> None:
    row = ClaimRow(3, kind, "path:a.py", "a.py", ANN_A, 500, lease_until_us, "request")
    assert resource_state(row, now_us=1_000) == state
