"""Buckets of tokens: what they give at once and for long, and what they remember."""

import sys
import threading

import pytest

from ctrlb.domain.rates import Rate, take
from ctrlb.edge import limits
from ctrlb.edge.limits import Buckets
from tests.conftest import HandClock


@pytest.mark.parametrize("rate", [Rate(200, 1_000), Rate(0.5, 1), Rate(20, 500)])
def test_a_bucket_gives_its_burst_and_then_its_rate(rate: Rate) -> None:
    full_at_s, now_s, taken = 0.0, 1_000.0, 0
    while True:
        wait_s, full_at_s = take(full_at_s, now_s, rate)
        if wait_s:
            break
        taken += 1
    assert taken == rate.burst
    assert wait_s == pytest.approx(1 / rate.per_s)
    assert take(full_at_s, now_s + wait_s * 1.001, rate)[0] == 0
    assert take(full_at_s, now_s + wait_s * 0.5, rate)[0] > 0


def test_a_clock_that_was_set_back_keeps_nobody_waiting_for_longer_than_an_empty_bucket() -> None:
    wait_s, _ = take(1_000_000.0, 5.0, Rate(10, 100))
    assert wait_s <= 1 / 10


def test_memory_is_bounded_however_many_call(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_COUNTED", 100)
    buckets = Buckets(Rate(1, 1), clock.elapsed_s)
    for number in range(1_000):
        assert buckets.take(str(number)) == 0
    assert len(buckets._full_at_s) == 100
    assert buckets.take("999") > 0  # the newest are remembered
    assert buckets.take("0") == 0


@pytest.mark.races
def test_threads_together_get_no_more_than_the_burst(clock: HandClock) -> None:
    buckets = Buckets(Rate(1, 500), clock.elapsed_s)
    taken: list[float] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda: taken.extend(buckets.take("key") for _ in range(200))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert sum(wait_s == 0 for wait_s in taken) == 500
