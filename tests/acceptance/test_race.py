"""The contract's "How a claim is decided", when many claim at the same moment."""

import httpx2
import pytest

from tests.acceptance.calls import RUNS, answered
from tests.acceptance.conftest import Deployment
from tests.acceptance.racing import Race, told_in_race

PROCESSES, THREADS, KEYS = 4, 4, 200


@pytest.mark.slow
@pytest.mark.promise("claim-first-wins", "claim-refused")
def test_of_16_agents_that_claim_200_keys_at_once_one_gets_each_and_the_others_are_told_who(
    deployment: Deployment, http: httpx2.Client, run_id: str
) -> None:
    keys = [f"path:src/{number}.py" for number in range(KEYS)]
    told = told_in_race(Race(deployment.url, deployment.key, run_id, keys), PROCESSES, THREADS)
    assert len(told) == PROCESSES * THREADS * KEYS
    winners = {key: [agent for agent, claimed, answer in told if claimed == key and answer["held"]] for key in keys}
    assert {key: len(agents) for key, agents in winners.items()} == dict.fromkeys(keys, 1)
    for agent, key, answer in told:
        (winner,) = winners[key]
        assert answer.get("held_by", agent) == winner
        assert "renewed" not in answer
    assert len({agents[0] for agents in winners.values()}) > 1  # it was a race
    holders: dict[str, str] = {}
    for start in range(0, KEYS, 64):
        body = {"agent": "agent-probe", "paths": [key.removeprefix("path:") for key in keys[start : start + 64]]}
        conflicts = answered(http.post(f"{RUNS}/{run_id}/check", json=body))["conflicts"]
        holders |= {conflict["key"]: conflict["held_by"] for conflict in conflicts}
    assert holders == {key: agents[0] for key, agents in winners.items()}
