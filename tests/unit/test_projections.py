"""Projections of a run's rows are the same in whatever order and however often the rows are delivered."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb.domain import projections
from ctrlb.domain.projections import Fact, Projection, RelayFact, RunHead, SessionFact, merged_activity, project
from ctrlb.domain.rows import AgentActivity, ClaimKind, ClaimRow, Dataset, Event, Holder, Run, SessionRow

DATASET = Dataset("acme", "agent_sessions")
RUNS = [Run(DATASET, "nightly"), Run(DATASET, "other")]
HOLDERS = st.builds(Holder, st.sampled_from(["ann", "bob"]), st.sampled_from(["a", "b"]))
TIMES = st.integers(0, 5)
KINDS: list[ClaimKind] = ["HOLD", "RELEASE", "DONE"]


@st.composite
def records(draw: st.DrawFn) -> list[Fact]:
    """The rows of some records, and events beside them, as the relay writes them: a number is given once."""
    facts: list[Fact] = []
    for key in draw(st.lists(st.sampled_from(["path:a", "path:b"]), unique=True)):
        run = draw(st.sampled_from(RUNS))
        for number in range(draw(st.integers(0, 4))):
            ts_us, kind, holder = draw(TIMES), draw(st.sampled_from(KINDS)), draw(HOLDERS)
            row = ClaimRow(number, kind, key, key, holder, ts_us, ts_us + 9 if kind == "HOLD" else 0, "r")
            facts.append(RelayFact(run, row, f"{ts_us} {number}"))
    for holder in draw(st.lists(HOLDERS, max_size=3)):
        ts_us = draw(TIMES)
        facts.append(RelayFact(draw(st.sampled_from(RUNS)), Event("NOTE", holder, ts_us), f"{ts_us}"))
    return facts


@st.composite
def uploads(draw: st.DrawFn) -> list[Fact]:
    """Session rows, some in several versions: one time of writing is one version."""
    facts: list[Fact] = []
    for seq in range(draw(st.integers(0, 3))):
        for written_us in draw(st.lists(TIMES, unique=True, max_size=3)):
            row = SessionRow(
                ts_us=draw(TIMES),
                session_id=draw(st.sampled_from(["s1", "s2"])),
                seq=seq,
                run_id=draw(st.sampled_from(["", "nightly"])),
                agent=draw(st.sampled_from(["", "a"])),
                block_type=draw(st.sampled_from(["text", "tool_use", "tool_result", "result"])),
                tool_use_id=draw(st.sampled_from(["", "call"])),
                is_error=draw(st.booleans()),
                paths=draw(st.sampled_from(["", '["a.py"]', '["a.py", "b.py"]'])),
            )
            facts.append(SessionFact(DATASET, row, "ann", written_us))
    return facts


FACTS = st.tuples(records(), uploads()).map(lambda both: both[0] + both[1])


def comparable(found: dict[Run, Projection]) -> object:
    return {run: (each.head, each.relay_us, each.activities, each.resources, each.edits) for run, each in found.items()}


@given(FACTS, st.data())
def test_rows_delivered_twice_and_in_any_order_project_the_same(facts: list[Fact], data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(facts))) if facts else []
    delivered = data.draw(st.permutations([*facts, *again]))
    assert comparable(project(delivered)) == comparable(project(facts))


@given(
    st.lists(TIMES, min_size=3, max_size=3), st.lists(st.sampled_from(["", "text", "result"]), min_size=3, max_size=3)
)
def test_activities_merge_in_any_order(times: list[int], types: list[str]) -> None:
    one, other, third = (
        AgentActivity(Holder("ann", "a"), us, us, kind, ("s1",)) for us, kind in zip(times, types, strict=True)
    )
    assert merged_activity(one, other) == merged_activity(other, one)
    assert merged_activity(one, merged_activity(other, third)) == merged_activity(merged_activity(one, other), third)
    assert merged_activity(one, one) == one


def test_a_version_without_edits_takes_the_place_of_one_that_had_some() -> None:
    row = SessionRow(ts_us=1, session_id="s", seq=1, run_id="nightly", block_type="tool_use", paths='["secret.py"]')
    first, later = SessionFact(DATASET, row, "ann", 1), SessionFact(DATASET, replace(row, paths=""), "ann", 2)
    for facts in ([first, later], [later, first]):
        assert project(facts)[RUNS[0]].edits["s", 1, 0].edits == ()


@given(st.lists(st.frozensets(st.text("abcdefgh", min_size=1, max_size=1)), max_size=6), st.randoms())
def test_the_agents_that_a_full_head_keeps_are_the_same_in_whatever_order_they_come(
    told: list[frozenset[str]], rng: random.Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projections, "COUNTED_AGENTS", 3)
        outcomes = []
        for _ in range(3):
            head = RunHead(0, 0)
            for agents in rng.sample([*told, *told], 2 * len(told)):
                head = head.merged(RunHead(0, 0, agents=agents))
            outcomes.append(head.agents)
    assert set(map(len, outcomes)) == {min(3, len(frozenset().union(*told)))}
    assert len(set(outcomes)) == 1
