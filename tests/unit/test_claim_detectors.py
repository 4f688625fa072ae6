"""What the detectors find of claims and edits, the rows that they show for it, and that clocks add nothing to it."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctrlb.domain.claim_detectors import (
    CLOCK_SLACK_US,
    REFUSED_AGAIN,
    SHOWN_ROWS,
    accountable_edits,
    contentions,
    edits_against_claims,
    edits_without_claims,
    expired_holds,
    hold_times,
)
from ctrlb.domain.claim_rules import MAX_CLOCK_SKEW_US
from ctrlb.domain.detectors import Finding, ProvingRow
from ctrlb.domain.rows import Edit, Event, EventKind, Holder, SessionRow
from ctrlb.domain.run_rules import edits_of
from tests.unit.claim_history import History

A, B = Holder("ann", "a"), Holder("ann", "b")
S = 1_000_000
LEASE_US = 600 * S
NOW_US = 10_000 * S


def event(kind: EventKind, holder: Holder, at_s: float, key: str = "path:app.py", text: str = "") -> Event:
    ts_us = int(at_s * S)
    return Event(kind, holder, ts_us, key[5:], key, text, ts_us + LEASE_US if kind == "HOLD" else 0)


def edit(holder: Holder, at_s: float, path: str = "app.py", seq: int = 1) -> Edit:
    row = SessionRow(int(at_s * S), f"session of {holder.agent}", seq, run_id="r", agent=holder.agent)
    [made] = edits_of(replace(row, block_type="tool_use", paths=json.dumps([path])), holder.user)
    return made


def against(edits: Sequence[Edit], *events: Event, complete: bool = True) -> list[Finding]:
    return edits_against_claims(accountable_edits(edits, NOW_US), hold_times(events[::-1], complete))


def expired(edits: Sequence[Edit], *events: Event, complete: bool = True) -> list[Finding]:
    return expired_holds(accountable_edits(edits, NOW_US), hold_times(events[::-1], complete))


def unclaimed(edits: Sequence[Edit], *events: Event) -> list[Finding]:
    return edits_without_claims(accountable_edits(edits, NOW_US), events[::-1])


def shown(holder: Holder, at_s: float, seq: int | None = None) -> ProvingRow:
    if seq is None:
        return ProvingRow(holder.agent, int(at_s * S))
    return ProvingRow(holder.agent, int(at_s * S), f"session of {holder.agent}", seq, 0)


def test_an_edit_of_what_another_agent_held_is_found_with_the_claim_and_the_edits() -> None:
    edits = [edit(B, 100, seq=4), edit(A, 90), edit(B, 60, seq=3), edit(B, 1)]
    assert against(edits, event("HOLD", A, 10)) == [
        Finding(
            detector="edit_against_claim",
            key="path:app.py",
            agents=("b", "a"),
            message="app.py was edited by b while a held it",
            rows=(shown(A, 10), shown(B, 60, 3), shown(B, 100, 4)),
        )
    ]


def test_a_claim_is_over_once_it_is_given_back_or_finished_or_its_lease_has_run_out() -> None:
    for kind in ("RELEASE", "DONE"):
        assert against([edit(B, 100)], event("HOLD", A, 10), event(kind, A, 50)) == []
        assert against([edit(B, 40)], event("HOLD", A, 10), event(kind, A, 50)) != []
    assert against([edit(B, 611)], event("HOLD", A, 10)) == []
    assert against([edit(B, 700)], event("HOLD", A, 10), event("HOLD", A, 500)) != []


def test_who_took_over_edits_against_nobody_and_the_agent_before_against_it() -> None:
    events = event("HOLD", A, 10), event("HOLD", B, 700)
    assert against([edit(B, 800)], *events) == []
    assert [finding.agents for finding in against([edit(A, 800)], *events)] == [("a", "b")]


def test_an_agent_of_the_same_name_under_another_user_is_another() -> None:
    [finding] = against([edit(Holder("bob", "a"), 100)], event("HOLD", A, 10))
    assert finding.message == "app.py was edited by a (bob) while a (ann) held it"


def test_a_file_without_an_extension_may_be_claimed_under_its_bare_name() -> None:
    [finding] = against([edit(B, 100, "Makefile")], event("HOLD", A, 10, "name:makefile"))
    assert finding.key == "name:makefile"
    assert against([edit(B, 100, "src/Makefile")], event("HOLD", A, 10, "name:makefile")) == []


@pytest.mark.parametrize("at_s", [10, 14.9, 605.1, 610])
def test_an_edit_as_near_to_the_ends_of_a_claim_as_clocks_may_differ_proves_nothing(at_s: float) -> None:
    assert against([edit(B, at_s)], event("HOLD", A, 10)) == []
    assert expired([edit(A, at_s + 5)], event("HOLD", A, 10)) == []


def test_an_edit_that_names_no_agent_or_a_time_to_come_is_held_against_nobody() -> None:
    nameless = replace(edit(B, 100), holder=Holder("ann", "session of b"))
    late = NOW_US / S + CLOCK_SLACK_US / S + 1
    hold = event("HOLD", A, late - 100)
    assert accountable_edits([nameless], NOW_US) == []
    assert against([edit(B, late)], hold) == []
    assert against([edit(B, late - 1)], hold) != []


def test_work_on_after_the_lease_had_run_out_is_found() -> None:
    edits = [edit(A, 100), edit(A, 700, seq=5), edit(A, 900, seq=6)]
    assert expired(edits, event("HOLD", A, 10)) == [
        Finding(
            detector="expired_hold",
            key="path:app.py",
            agents=("a",),
            message="a edited app.py 290 s after its claim had run out",
            rows=(shown(A, 10), shown(A, 700, 5), shown(A, 900, 6)),
        )
    ]


def test_a_claim_that_was_renewed_given_back_or_taken_again_has_not_run_out() -> None:
    held = event("HOLD", A, 10)
    assert expired([edit(A, 700)], held, event("HOLD", A, 500)) == []
    assert expired([edit(A, 700)], held, event("RELEASE", A, 500)) == []
    assert expired([edit(A, 700)], held, event("HOLD", A, 690)) == []
    assert expired([edit(A, 700)], held, event("HOLD", A, 703)) == []
    assert expired([edit(A, 700)], held, event("HOLD", A, 800)) != []
    assert expired([edit(B, 700)], held) == []


def test_a_hold_that_may_have_ended_before_the_oldest_event_that_was_read_proves_nothing() -> None:
    hold, later = event("HOLD", A, 10), replace(event("HOLD", A, 11), key="path:other.py")
    edits = [edit(B, 100), edit(B, 100, "other.py")]
    assert len(against(edits, hold, later)) == 2
    assert [finding.key for finding in against(edits, hold, later, complete=False)] == ["path:other.py"]


def test_a_release_dated_before_its_hold_by_a_slow_clock_ends_it() -> None:
    events = event("RELEASE", A, 9.9), event("HOLD", A, 10)
    assert against([edit(B, 100)], *events) == []
    assert expired([edit(A, 700)], *events) == []


def test_an_agent_that_was_refused_again_and_again_is_found_until_it_holds_the_key() -> None:
    refused = [event("REFUSED", B, at_s, text="already held by a") for at_s in (20, 30, 40)]
    assert contentions(refused[::-1]) == [
        Finding(
            detector="contention",
            key="path:app.py",
            agents=("b",),
            message="b was refused 3 times on app.py: it was already held by a",
            rows=(shown(B, 20), shown(B, 30), shown(B, 40)),
        )
    ]
    held, others = event("HOLD", B, 50), event("HOLD", A, 50)
    assert contentions([others, *refused[::-1]]) != []
    assert contentions([held, *refused[::-1]]) == []
    assert contentions([refused[2], held, refused[1], refused[0]]) == []


def test_fewer_refusals_or_on_several_keys_or_of_several_agents_are_no_contention() -> None:
    keys = [event("REFUSED", B, at_s, f"path:{at_s}") for at_s in range(REFUSED_AGAIN)]
    agents = [event("REFUSED", Holder(user, "b"), 1) for user in ("ann", "bob", "cid")]
    assert contentions([event("REFUSED", B, 1)] * (REFUSED_AGAIN - 1)) == []
    assert contentions(keys) == []
    assert contentions(agents) == []


def test_an_agent_that_edited_what_it_never_claimed_is_found_once_in_a_run_that_claims_files() -> None:
    edits = [edit(B, 30, "b.py", seq=2), edit(B, 20, "c.py"), edit(A, 20)]
    message = "b edited b.py and 1 more without a claim"
    rows = shown(B, 20, 1), shown(B, 30, 2)
    assert unclaimed(edits, event("HOLD", A, 10)) == [Finding("edit_without_claim", "", ("b",), message, rows)]
    assert [found.message for found in unclaimed(edits[:1], event("HOLD", A, 10))] == [
        "b edited b.py without a claim",
    ]
    assert unclaimed(edits) == []
    assert unclaimed(edits, event("HOLD", A, 10, "name:task 1"), event("REFUSED", B, 11)) == []


@pytest.mark.parametrize("key", ["path:b.py", "path:/work/app/src/b.py", "name:b.py"])
def test_a_claim_at_any_time_and_however_spelled_makes_an_edit_claimed(key: str) -> None:
    assert unclaimed([edit(B, 30, "src/b.py")], event("HOLD", A, 10), event("HOLD", B, 900, key)) == []
    assert unclaimed([edit(B, 30, "src/b.py")], event("HOLD", A, 10), event("HOLD", A, 900, key)) != []


def test_findings_are_as_many_as_they_may_be_and_show_the_newest_rows() -> None:
    edits = [edit(B, 100 + number, seq=number) for number in range(SHOWN_ROWS + 5)]
    refused = [event("REFUSED", B, number) for number in range(SHOWN_ROWS + 5)]
    hold = event("HOLD", A, 10)
    for [finding] in (against(edits, hold), unclaimed(edits, hold), contentions(refused[::-1])):
        assert len([row for row in finding.rows if row.agent == "b"]) == SHOWN_ROWS
    [finding] = against(edits, hold)
    assert [row.seq for row in finding.rows] == [None, *range(5, SHOWN_ROWS + 5)]


@pytest.mark.parametrize("seed", range(150))
def test_whatever_clocks_say_within_their_bounds_every_finding_is_true(seed: int) -> None:
    history = History(random.Random(seed), CLOCK_SLACK_US, MAX_CLOCK_SKEW_US)
    for read in (len(history.events), 12):
        events, complete = history.newest(read), read >= len(history.events)
        times, edits = hold_times(events, complete), accountable_edits(history.edits, history.now_us)
        for finding in edits_against_claims(edits, times):
            for row in finding.rows:
                if row.session_id:
                    assert history.holder_at_edit(row.seq, finding.key) == Holder("ann", finding.agents[1])
                    assert row.agent == finding.agents[0] != finding.agents[1]
        for finding in expired_holds(edits, times):
            for row in finding.rows:
                if row.session_id:
                    assert history.had_run_out_at_edit(row.seq, finding.key, Holder("ann", row.agent))


def test_with_clocks_that_agree_every_edit_well_within_anothers_claim_is_found() -> None:
    found = 0
    for seed in range(100):
        history = History(random.Random(seed), 0, 0)
        edits = accountable_edits(history.edits, history.now_us)
        findings = edits_against_claims(edits, hold_times(history.newest(1_000), complete=True))
        told = {row.seq for finding in findings for row in finding.rows if row.session_id}
        assert told == history.edits_within_anothers_hold(CLOCK_SLACK_US)
        found += len(told)
    assert found > 100
