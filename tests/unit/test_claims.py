"""The contract's "How a claim is decided", with rivals let in at the moments that matter."""

from dataclasses import replace

import pytest

from ctrlb.claims import CALL_BUDGET_S, check, claim, release
from ctrlb.domain.claim_rules import MAX_CLOCK_SKEW_US
from ctrlb.domain.errors import Invalid, Unavailable
from ctrlb.domain.rows import ClaimRow, Dataset, Run, Settings
from ctrlb.models import CheckRequest, ClaimAnswer, ClaimRequest, PeersRequest, ReleaseAnswer, ReleaseRequest
from ctrlb.notes import peers
from ctrlb.ports import Ports
from tests.conftest import NOW_US, HandClock, caller_named
from tests.relay_doubles import AlwaysTaken, AnswersLost, PassingRelay

ANN = caller_named("ann")
BOB = caller_named("bob")
RUN = "nightly"
APP = "src/app.py"
KEY = "path:src/app.py"
LEASE_S = 600


def take(stores: Ports, agent: str, resource: str = APP, user: str = "ann", cwd: str = "") -> ClaimAnswer:
    return claim(ClaimRequest(run_id=RUN, agent=agent, resource=resource, cwd=cwd), caller_named(user), stores)


def give(stores: Ports, agent: str, *, finished: bool = True, user: str = "ann") -> ReleaseAnswer:
    request = ReleaseRequest(run_id=RUN, agent=agent, resource=APP, finished=finished)
    return release(request, caller_named(user), stores)


def kinds(stores: Ports) -> list[str]:
    return [event.kind for event in peers(PeersRequest(run_id=RUN, limit=500), ANN, stores).events]


def test_a_free_resource_is_held_for_the_lease(stores: Ports, clock: HandClock) -> None:
    answer = take(stores, "a")
    assert answer.model_dump(exclude_unset=True) == {
        "held": True,
        "resource": APP,
        "key": KEY,
        "lease_until": NOW_US + LEASE_S * 1_000_000,
    }
    assert clock.us == NOW_US + 20_000  # waitMs between the write and the read


def test_the_loser_is_told_the_holder(stores: Ports) -> None:
    take(stores, "a")
    assert take(stores, "b").model_dump(exclude_unset=True) == {
        "held": False,
        "resource": APP,
        "key": KEY,
        "held_by": "a",
        "message": "src/app.py is already held by a; pick something else",
    }
    assert kinds(stores) == ["REFUSED", "HOLD"]


def test_the_same_agent_name_of_another_user_is_another_agent(stores: Ports) -> None:
    take(stores, "a")
    refused = take(stores, "a", user="bob")
    assert not refused.held
    assert refused.message == "src/app.py is already held by another user's a; pick something else"
    assert give(stores, "a", user="bob").released == 0


def test_a_finished_resource_is_refused_for_good(stores: Ports, clock: HandClock) -> None:
    take(stores, "a")
    assert give(stores, "a").model_dump() == {"released": 1, "finished": True, "resource": APP, "key": KEY}
    clock.move_s(10 * LEASE_S)
    for agent in ("a", "b"):
        assert take(stores, agent).model_dump(exclude_unset=True) == {
            "held": False,
            "resource": APP,
            "key": KEY,
            "finished_by": "a",
            "message": "src/app.py was already finished by a; pick something else",
        }


def test_a_resource_handed_back_is_free_at_once(stores: Ports) -> None:
    take(stores, "a")
    assert give(stores, "a", finished=False).released == 1
    assert take(stores, "b").held


def test_claiming_again_renews_and_never_shortens(stores: Ports, clock: HandClock) -> None:
    first = take(stores, "a")
    clock.move_s(60)
    second = take(stores, "a")
    assert (second.held, second.renewed) == (True, True)
    assert first.lease_until is not None
    assert second.lease_until is not None
    assert second.lease_until > first.lease_until
    short = replace(ANN, settings=Settings(lease_seconds=60))
    third = claim(ClaimRequest(run_id=RUN, agent="a", resource=APP), short, stores)
    assert third.lease_until == second.lease_until


@pytest.mark.promise("claim-lease-ends")
def test_an_expired_hold_is_taken_over_on_one_try_after_the_clock_bound(stores: Ports, clock: HandClock) -> None:
    until = take(stores, "a").lease_until or 0
    clock.us = until + MAX_CLOCK_SKEW_US - 1
    assert take(stores, "b").held_by == "a"
    clock.us = until + MAX_CLOCK_SKEW_US
    taken = take(stores, "b")
    assert (taken.held, taken.renewed) == (True, None)


def test_the_holder_of_a_lapsed_lease_takes_it_anew_at_once(stores: Ports, clock: HandClock) -> None:
    clock.us = take(stores, "a").lease_until or 0
    again = take(stores, "a")
    assert (again.held, again.renewed) == (True, None)


@pytest.mark.promise("claim-lease-ends", "release-none-held")
def test_a_late_release_counts_nothing_and_writes_nothing(stores: Ports, clock: HandClock) -> None:
    clock.us = take(stores, "a").lease_until or 0
    assert give(stores, "a").released == 0
    assert kinds(stores) == ["HOLD"]
    clock.move_s(1)
    assert take(stores, "b").held


def test_a_claim_whose_answer_was_lost_is_not_refused_because_of_itself(stores: Ports) -> None:
    lossy = replace(stores, relay=AnswersLost(stores.relay))
    assert take(lossy, "a").model_dump(exclude_unset=True).keys() == {"held", "resource", "key", "lease_until"}
    assert take(lossy, "a").renewed
    assert give(lossy, "a").released == 1
    assert kinds(stores) == ["DONE", "HOLD", "HOLD"]


@pytest.mark.promise("claim-first-wins")
def test_a_rival_between_the_look_and_the_write_wins(stores: Ports, clock: HandClock) -> None:
    """The record is free when it is read; a rival takes the next number before our write."""
    take(stores, "a")
    give(stores, "a", finished=False)

    class RivalFirst(PassingRelay):
        rivals = 1

        def append(self, run: Run, row: ClaimRow) -> None:
            if row.number > 0 and self.rivals:
                self.rivals -= 1
                assert take(stores, "rival").held
            super().append(run, row)

    refused = take(replace(stores, relay=RivalFirst(stores.relay)), "b")
    assert refused.held_by == "rival"
    assert not [event for event in kinds(stores) if event == "HOLD"][2:]


def test_a_hold_that_was_released_during_the_wait_is_not_reported_as_held(stores: Ports, clock: HandClock) -> None:
    """Two processes act as one agent: the other finishes the task while this one waits."""

    def finish() -> None:
        clock.on_wait = lambda: None
        assert give(stores, "a").released == 1

    clock.on_wait = finish
    assert take(stores, "a").finished_by == "a"


def test_a_claim_that_takes_too_long_promises_nothing(stores: Ports, clock: HandClock) -> None:
    clock.on_wait = lambda: clock.move_s(CALL_BUDGET_S + 1)
    with pytest.raises(Unavailable, match="could not be decided in time"):
        take(stores, "a")


def test_no_turn_begins_late(stores: Ports, clock: HandClock) -> None:
    """The number is always taken, and each look at the record takes a second: it ends long before 16 turns."""

    class SlowAndTaken(AlwaysTaken):
        reads = 0

        def last(self, run: Run, key: str) -> ClaimRow | None:
            self.reads += 1
            clock.move_s(1)
            return None

    slow = SlowAndTaken(stores.relay)
    with pytest.raises(Unavailable):
        take(replace(stores, relay=slow), "a")
    assert slow.reads == 3


def test_a_record_that_is_always_taken_ends_in_a_bound(stores: Ports) -> None:
    with pytest.raises(Unavailable):
        take(replace(stores, relay=AlwaysTaken(stores.relay)), "a")


def test_absolute_and_relative_spellings_meet_on_one_key(stores: Ports) -> None:
    assert take(stores, "a", "/work/app/src/app.py", cwd="/work/app").key == KEY
    assert take(stores, "b", "./src//app.py").held_by == "a"
    request = ReleaseRequest(run_id=RUN, agent="a", resource=KEY)
    assert release(request, ANN, stores).released == 1


def test_runs_are_isolated(stores: Ports) -> None:
    take(stores, "a")
    other = claim(ClaimRequest(run_id="other", agent="b", resource=APP), ANN, stores)
    assert other.held
    assert stores.relay.last(Run(Dataset("rival", "agent_sessions"), RUN), KEY) is None


def test_another_dataset_is_not_written_to(stores: Ports) -> None:
    with pytest.raises(Invalid, match="writes go to agent_sessions"):
        claim(ClaimRequest(dataset="elsewhere", run_id=RUN, agent="a", resource=APP), ANN, stores)


@pytest.mark.parametrize(("mode", "allowed"), [("advisory", True), ("enforce", False)])
def test_the_check_names_the_holder(stores: Ports, mode: str, allowed: bool) -> None:
    lease_until = take(stores, "a").lease_until
    settings = Settings(enforce="enforce" if mode == "enforce" else "advisory")
    request = CheckRequest(run_id=RUN, agent="b", paths=["README.md", "/work/app/src/app.py"], cwd="/work/app")
    assert check(request, replace(ANN, settings=settings), stores).model_dump() == {
        "mode": mode,
        "allowed": allowed,
        "conflicts": [
            {"path": "/work/app/src/app.py", "key": KEY, "held_by": "a", "lease_until": lease_until},
        ],
    }
    assert kinds(stores) == ["CHECK", "HOLD"]


def test_the_check_is_silent_when_the_mode_is_off_or_the_path_is_ones_own(stores: Ports) -> None:
    take(stores, "a")
    off = replace(ANN, settings=Settings(enforce="off"))
    request = CheckRequest(run_id=RUN, agent="b", paths=[APP])
    assert check(request, off, stores).model_dump() == {"mode": "off", "allowed": True, "conflicts": []}
    assert check(request.model_copy(update={"agent": "a"}), ANN, stores).conflicts == []
    assert kinds(stores) == ["HOLD"]


@pytest.mark.parametrize("claimed", ["Makefile", "path:Makefile"])
def test_the_check_finds_a_file_without_extension_under_either_key(stores: Ports, claimed: str) -> None:
    key = take(stores, "a", claimed).key
    answer = check(CheckRequest(run_id=RUN, agent="b", paths=["Makefile"]), BOB, stores)
    assert [(conflict.path, conflict.key) for conflict in answer.conflicts] == [("Makefile", key)]
    assert check(CheckRequest(run_id=RUN, agent="b", paths=["other.py"]), BOB, stores).conflicts == []


def test_a_finished_file_is_no_conflict(stores: Ports) -> None:
    take(stores, "a")
    give(stores, "a")
    assert check(CheckRequest(run_id=RUN, agent="b", paths=[APP]), BOB, stores).allowed
    assert kinds(stores) == ["DONE", "HOLD"]


def test_a_path_that_cannot_be_one_is_named(stores: Ports) -> None:
    with pytest.raises(Invalid, match=r"^paths\[1\]"):
        check(CheckRequest(run_id=RUN, agent="b", paths=["a.py", "a\x00b.py"]), BOB, stores)
