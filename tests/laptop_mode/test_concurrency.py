"""Requests run beside each other: no agent waits for the wait of another."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.acceptance.calls import answered, claim

AGENTS = 16
WAIT_S = 1.0


@pytest.mark.promise("settings-wait")
def test_sixteen_claims_at_once_take_about_as_long_as_one(http: httpx2.Client, person: httpx2.Client) -> None:
    answered(person.put("/ai/relay/settings", json={"waitMs": int(WAIT_S * 1_000)}))
    start_s = time.monotonic()
    with ThreadPoolExecutor(AGENTS) as pool:
        jobs = [pool.submit(claim, http, "run-16", f"agent-{n}", f"src/{n}.py") for n in range(AGENTS)]
        answers = [job.result() for job in jobs]
    took_s = time.monotonic() - start_s
    assert all(answer["held"] for answer in answers)
    assert WAIT_S <= took_s < AGENTS * WAIT_S  # which one after the other they would take at the least
