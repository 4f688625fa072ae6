"""The server that agents share: many calls on its threads, call after call."""

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.laptop import Laptop
from tests.mcp.door import LEGACY, MODERN, McpDoor

AGENTS = 16
CALLS = 25
WARM_CALLS = 400
MANY_CALLS = 4_000
MAX_GROWTH_BYTES = 4 * 1024 * 1024


def test_agents_of_both_eras_at_once_each_get_their_own_answers(mcp: McpDoor, run_id: str) -> None:
    start = threading.Barrier(AGENTS)

    def agent(number: int) -> list[str]:
        era = MODERN if number % 2 else LEGACY
        own = {"X-CtrlB-Run": f"{run_id}-{number}", "X-CtrlB-Agent": f"agent-{number}"}
        with McpDoor(mcp.url, mcp.key) as door:
            start.wait()
            for index in range(CALLS):
                assert (
                    door.answer("post", {"text": f"note {index} of {number}"}, own, era)["agent"]
                    == own["X-CtrlB-Agent"]
                )
            return [event["text"] for event in door.answer("peers", {}, own, era)["events"]]

    with ThreadPoolExecutor(AGENTS) as pool:
        seen = list(pool.map(agent, range(AGENTS)))
    assert seen == [[f"note {index} of {number}" for index in reversed(range(CALLS))] for number in range(AGENTS)]


@pytest.mark.promise("claim-first-wins")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_of_agents_that_claim_one_file_at_once_one_gets_it(mcp: McpDoor, run_id: str, era: str) -> None:
    start = threading.Barrier(AGENTS)

    def claim(number: int) -> tuple[bool, str]:
        with McpDoor(mcp.url, mcp.key) as door:
            start.wait()
            answer = door.answer(
                "claim", {"run_id": run_id, "agent": f"agent-{number}", "resource": "src/app.py"}, era=era
            )
            return answer["held"], answer.get("held_by", f"agent-{number}")

    with ThreadPoolExecutor(AGENTS) as pool:
        answers = list(pool.map(claim, range(AGENTS)))
    assert sorted(held for held, _ in answers) == [False] * (AGENTS - 1) + [True]
    assert len({holder for _, holder in answers}) == 1


@pytest.mark.slow
def test_memory_does_not_grow_with_the_calls(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    try:
        with McpDoor(laptop.url, laptop.key) as door:
            calls: list[Callable[[], object]] = [
                lambda: door.answer("peers", {"run_id": "run-1"}),
                lambda: door.answer("peers", {"run_id": "run-1"}, era=MODERN),
                lambda: door.error("claim", {}, era=MODERN),
                lambda: door.send({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                lambda: door.send("not JSON"),
            ]
            for index in range(WARM_CALLS):
                calls[index % len(calls)]()
            warm_bytes = _resident_bytes(laptop)
            for index in range(MANY_CALLS):
                calls[index % len(calls)]()
            assert _resident_bytes(laptop) - warm_bytes < MAX_GROWTH_BYTES
    finally:
        laptop.stop()


def _resident_bytes(laptop: Laptop) -> int:
    shown = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(laptop.process.pid)], capture_output=True, check=True, text=True
    )
    return int(shown.stdout) * 1024
