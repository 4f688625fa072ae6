"""kill -9 in the middle of uploads and claims: whatever was answered is there after the next start."""

import itertools
import threading
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.calls import Json, check, claim, records, release, row, search, upload
from tests.laptop import Laptop
from tests.laptop_mode.conftest import client

UPLOADERS, CLAIMERS, CRASHES = 3, 4, 3
ANSWERS_BEFORE_CRASH = 150
ANSWERS_TIMEOUT_S = 60
ROWS = 5


@dataclass
class Uploads:
    """What one client sent of its session, and how many of its uploads were answered."""

    session_id: str
    sent: list[list[Json]] = field(default_factory=list)
    answered: int = 0


@dataclass
class Claims:
    """What one agent was told about each resource; None where the answer never came."""

    agent: str
    told: dict[str, Json | None] = field(default_factory=dict)


class Clients:
    """Clients that go on until their server dies."""

    def __init__(self, laptop: Laptop, crash: int) -> None:
        self._laptop = laptop
        self._answers = threading.Semaphore(0)
        self.run_id = f"run-{crash}"
        self.uploads = [Uploads(f"session-{crash}-{number}") for number in range(UPLOADERS)]
        self.claims = [Claims(f"agent-{number}") for number in range(CLAIMERS)]
        threads = [threading.Thread(target=self._upload, args=(one,)) for one in self.uploads]
        threads += [threading.Thread(target=self._claim, args=(one,)) for one in self.claims]
        self._threads = threads

    def run_until_killed(self) -> None:
        """Let them work, and kill the server once they have got enough answers."""
        for thread in self._threads:
            thread.start()
        for _ in range(ANSWERS_BEFORE_CRASH):
            assert self._answers.acquire(timeout=ANSWERS_TIMEOUT_S)
        self._laptop.kill()
        for thread in self._threads:
            thread.join(ANSWERS_TIMEOUT_S)
            assert not thread.is_alive()

    def _upload(self, uploads: Uploads) -> None:
        try:
            with client(self._laptop, self._laptop.key) as http:
                for number in itertools.count():
                    seqs = range(number * ROWS, (number + 1) * ROWS)
                    word = uploads.session_id.replace("-", "")
                    uploads.sent.append([row(uploads.session_id, seq, body=f"{word} row {seq}") for seq in seqs])
                    upload(http, *uploads.sent[-1])
                    uploads.answered += 1
                    self._answers.release()
        except httpx2.TransportError:
            return

    def _claim(self, claims: Claims) -> None:
        try:
            with client(self._laptop, self._laptop.key) as http:
                for number in itertools.count():
                    resource = f"src/{number}.py"
                    claims.told[resource] = None
                    answer = claim(http, self.run_id, claims.agent, resource)
                    if answer["held"] and number % 3 == 0:
                        release(http, self.run_id, claims.agent, resource)
                        answer = {"held": False, "finished_by": claims.agent}
                    claims.told[resource] = answer
                    self._answers.release()
        except httpx2.TransportError:
            return


@pytest.mark.slow
@pytest.mark.promise("upload-accepted", "claim-held", "claim-record-only-grows")
def test_what_was_answered_before_a_kill_is_there_after_the_next_start(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    rounds: list[Clients] = []
    for crash in range(CRASHES):
        rounds.append(Clients(laptop, crash))
        rounds[-1].run_until_killed()
        laptop = Laptop(tmp_path)
    try:
        with client(laptop, laptop.key) as http:
            for clients in rounds:
                for uploads in clients.uploads:
                    assert_uploads_are_there(http, uploads)
                assert_claims_are_there(http, clients)
    finally:
        laptop.stop()


def assert_uploads_are_there(http: httpx2.Client, uploads: Uploads) -> None:
    """Every row of an answered upload, and of the last one, which was not answered, all or none."""
    assert uploads.answered > 0
    kept: list[Json] = []
    while page := records(http, uploads.session_id, len(kept), len(kept) + 49):
        kept += page
    bodies = [kept_row["body"] for kept_row in kept]
    answered = [sent["body"] for rows in uploads.sent[: uploads.answered] for sent in rows]
    unanswered = [sent["body"] for rows in uploads.sent[uploads.answered :] for sent in rows]
    assert len(unanswered) <= ROWS
    assert bodies in (answered, answered + unanswered)
    assert search(http, uploads.session_id.replace("-", ""))["total"] == len(bodies)


def assert_claims_are_there(http: httpx2.Client, clients: Clients) -> None:
    """Every holder with its lease, and everything done, as the agents were told it."""
    told = [(resource, one.agent, answer) for one in clients.claims for resource, answer in one.told.items()]
    held = {resource: (agent, answer["lease_until"]) for resource, agent, answer in told if answer and answer["held"]}
    done = {resource: answer["finished_by"] for resource, _, answer in told if answer and "finished_by" in answer}
    in_doubt = {resource for resource, _, answer in told if answer is None}
    assert held
    assert done
    assert not held.keys() & done.keys()
    for resource, _, answer in told:
        if answer and "held_by" in answer and resource not in in_doubt | done.keys():
            assert answer["held_by"] == held[resource][0]
    resources = sorted(held.keys() - in_doubt)
    found: dict[str, tuple[str, int]] = {}
    for start in range(0, len(resources), 64):
        for conflict in check(http, clients.run_id, "agent-probe", *resources[start : start + 64])["conflicts"]:
            found[conflict["path"]] = (conflict["held_by"], conflict["lease_until"])
    assert found == {resource: held[resource] for resource in resources}
    for resource, agent in done.items():
        assert claim(http, clients.run_id, "agent-probe", resource)["finished_by"] == agent
