"""What the detectors find, and the rows that they show for it."""

import random

from ctrlb.domain.detectors import Finding, ProvingRow, duplicate_edits, silent_agents
from ctrlb.domain.rows import AgentActivity, Edit, Holder

A, B = Holder("ann", "a"), Holder("ann", "b")


def edit(holder: Holder, key: str, ts_us: int, seq: int = 1) -> Edit:
    return Edit(holder, key, key.removeprefix("path:"), ts_us, f"session of {holder.agent}", seq, 0)


def test_a_path_that_two_agents_edited_is_one_finding_with_the_rows_that_prove_it() -> None:
    edits = [edit(B, "path:app.py", 20, seq=7), edit(A, "path:app.py", 10), edit(A, "path:own.py", 30)]
    assert duplicate_edits(edits) == [
        Finding(
            detector="duplicate_edit",
            key="path:app.py",
            agents=("a", "b"),
            message="app.py was edited by a and b",
            rows=(ProvingRow("a", 10, "session of a", 1, 0), ProvingRow("b", 20, "session of b", 7, 0)),
        )
    ]


def test_an_agent_that_edits_a_path_again_is_no_duplicate() -> None:
    assert duplicate_edits([edit(A, "path:app.py", 10), edit(A, "path:app.py", 20)]) == []
    assert duplicate_edits([]) == []


def test_agents_of_one_name_under_two_users_are_two_agents_and_told_apart() -> None:
    found = duplicate_edits([edit(A, "path:app.py", 10), edit(Holder("bob", "a"), "path:app.py", 20)])
    assert [finding.agents for finding in found] == [("a (ann)", "a (bob)")]
    assert found[0].message == "app.py was edited by a (ann) and a (bob)"


def test_every_agent_is_named_once_and_the_latest_edited_path_comes_first() -> None:
    c = Holder("cid", "c")
    edits = [edit(holder, key, ts) for ts, (holder, key) in enumerate([(A, "path:x"), (B, "path:x"), (c, "path:x")])]
    edits += [edit(A, "path:x", 4), edit(A, "path:y", 5), edit(B, "path:y", 6)]
    for seed in range(10):
        found = duplicate_edits(random.Random(seed).sample(edits, len(edits)))
        assert [finding.message for finding in found] == [
            "y was edited by a and b",
            "x was edited by a, b and c",
        ]


def test_an_agent_that_stopped_writing_is_silent_and_one_that_ended_its_session_is_not() -> None:
    found = silent_agents(
        [
            AgentActivity(A, 0, 700_000_000, "text", ("s1",)),
            AgentActivity(B, 0, 600_000_000, ""),
            AgentActivity(Holder("ann", "ended"), 0, 1, "result"),
            AgentActivity(Holder("ann", "busy"), 0, 999_000_000, "text"),
        ],
        now_us=1_000_000_000,
        silent_after_us=120_000_000,
        live=True,
    )
    told = "wrote its last row {} s ago and has not ended its session"
    assert found == [
        Finding("silent_agent", "", ("b",), f"b {told.format(400)}", (ProvingRow("b", 600_000_000),)),
        Finding("silent_agent", "", ("a",), f"a {told.format(300)}", (ProvingRow("a", 700_000_000),)),
    ]


def test_nobody_is_silent_in_a_run_that_is_done() -> None:
    assert silent_agents([AgentActivity(A, 0, 1, "text")], now_us=10**9, silent_after_us=1, live=False) == []
