"""Agents on several servers race for resources that lie in DynamoDB: each resource gets one holder, known to all."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctrlb import claims
from ctrlb.adapters.aws_client import ATTEMPTS, CONNECT_TIMEOUT_S, READ_TIMEOUT_S
from ctrlb.claims import CALL_BUDGET_S, claim, release
from ctrlb.domain.rows import Settings
from ctrlb.models import ClaimAnswer, ClaimRequest, ReleaseRequest
from tests import server_limits
from tests.aws.stores import aws_stores
from tests.conftest import caller_named

AGENTS = 8
RESOURCES = 20


def test_a_claim_of_a_free_resource_ends_within_its_budget_if_no_try_is_answered_in_time() -> None:
    """One write and one read, each tried as often as it may be."""
    assert 2 * ATTEMPTS * (CONNECT_TIMEOUT_S + READ_TIMEOUT_S) + Settings().wait_ms / 1_000 < CALL_BUDGET_S


@pytest.mark.emulator
@pytest.mark.usefixtures("on_emulator")
def test_of_agents_that_claim_at_once_one_holds_and_all_learn_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("CALL_BUDGET_S", "LAST_TURN_S"):
        monkeypatch.setattr(claims, limit, server_limits.LONG_S)
    together = threading.Barrier(AGENTS)

    def work(number: int) -> list[ClaimAnswer]:
        answers = []
        caller = caller_named(f"user-{number}", settings=Settings(wait_ms=1))
        with aws_stores(tmp_path) as ports:
            for index in range(RESOURCES):
                together.wait(60)
                request = ClaimRequest(run_id="race", agent=f"agent-{number}", resource=f"src/{index}.py")
                answers.append(claim(request, caller, ports))
                if index % 2 and answers[-1].held:  # and while the others still claim, some hand theirs back
                    back = ReleaseRequest(run_id="race", agent=request.agent, resource=request.resource, finished=True)
                    assert release(back, caller, ports).released == 1
        return answers

    with ThreadPoolExecutor(AGENTS) as threads:
        answers = list(threads.map(work, range(AGENTS)))
    for index in range(RESOURCES):
        of_resource = [each[index] for each in answers]
        [winner] = [f"agent-{number}" for number, answer in enumerate(of_resource) if answer.held]
        told = {answer.held_by or answer.finished_by for answer in of_resource if not answer.held}
        assert told == {winner}
