"""Agents in processes of their own that claim the same keys at the same moments."""

import multiprocessing
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import httpx2

from tests.acceptance.calls import claim

START_TIMEOUT_S = 120
RACE_TIMEOUT_S = 600

Told = tuple[str, str, dict[str, Any]]
"""An agent, the key that it claimed, and what it was told."""


@dataclass(frozen=True)
class Race:
    """What the racers need to know."""

    url: str
    api_key: str
    run_id: str
    keys: Sequence[str]


def told_in_race(race: Race, processes: int, threads: int) -> list[Told]:
    """What every agent was told about every key, when all of them claim one key after the other at once."""
    context = multiprocessing.get_context("spawn")
    start: Barrier = context.Barrier(processes * threads)
    told: Queue[list[Told]] = context.Queue()
    racers = [
        context.Process(
            target=_race, args=(race, [f"agent-{number}-{thread}" for thread in range(threads)], start, told)
        )
        for number in range(processes)
    ]
    for racer in racers:
        racer.start()
    try:
        return [one for _ in range(processes * threads) for one in told.get(timeout=RACE_TIMEOUT_S)]
    finally:
        for racer in racers:
            racer.join(START_TIMEOUT_S)
            racer.close()


def _race(race: Race, agents: Sequence[str], start: Barrier, told: "Queue[list[Told]]") -> None:
    threads = [threading.Thread(target=_claim_all, args=(race, agent, start, told)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _claim_all(race: Race, agent: str, start: Barrier, told: "Queue[list[Told]]") -> None:
    answers: list[Told] = []
    try:
        with httpx2.Client(base_url=race.url, headers={"Authorization": f"Bearer {race.api_key}"}, timeout=60) as http:
            for key in race.keys:
                start.wait(START_TIMEOUT_S)
                answers.append((agent, key, claim(http, race.run_id, agent, key)))
    finally:
        told.put(answers)
