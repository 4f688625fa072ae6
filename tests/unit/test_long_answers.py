"""Answers stay within what a function in AWS may send, 6 MB with all escapes, whatever names the rows have."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from ctrlb.adapters.dynamodb_items import MAX_ITEM_BYTES, size_of
from ctrlb.adapters.dynamodb_projected_items import Counted, head_item
from ctrlb.answers import Answered
from ctrlb.domain.projections import RunHead, agent_name
from ctrlb.domain.rows import COUNTED_AGENTS, Event, Holder, Run, SessionRow
from ctrlb.edge.http import response
from ctrlb.models import Answer, GetRunAnswer, GetRunRequest, PeersAnswer, PeersRequest
from ctrlb.notes import peers
from ctrlb.ports import Ports
from ctrlb.runs import AGENT_SESSIONS, RUN_AGENTS, get_run
from tests.conftest import NOW_US, caller_named
from tests.contract.relay_rows import DATASET, RUN, hold

MAX_ANSWER_BYTES = 6 * 1024 * 1024
ADMIN = caller_named("ada", "Admin")
QUOTES = '"' * 4_000


def over_http(answer: Answer) -> int:
    """The bytes of the answer as a function hands it to the gateway."""
    return len(json.dumps(response(Answered(200, answer)), ensure_ascii=False).encode())


def over_mcp(answer: Answer) -> int:
    """The same of a tool's, which says everything twice."""
    text = answer.model_dump_json()
    body = json.dumps({"content": [{"type": "text", "text": text}], "structuredContent": json.loads(text)})
    return len(json.dumps({"statusCode": 200, "body": body}).encode())


@pytest.mark.parametrize("name", [QUOTES, "\\" * 4_000, "漢" * 4_000, "👩" * 4_000])
def test_peers_of_a_run_with_long_names_shows_the_newest_events_that_fit(stores: Ports, name: str) -> None:
    for number in range(200):
        stores.relay.add_events(RUN, Event("REFUSED", Holder("ann", "a"), NOW_US + number, name, f"name:{name}", name))
    answer = peers(PeersRequest(run_id=RUN.run_id, limit=500), ADMIN, stores)
    assert isinstance(answer, PeersAnswer)
    assert 20 < len(answer.events) < 200
    assert [event.ts for event in answer.events] == [NOW_US + 199 - at for at in range(len(answer.events))]
    assert over_mcp(answer) < MAX_ANSWER_BYTES


def test_a_run_with_long_names_is_shown_as_far_as_it_fits(stores: Ports) -> None:
    for number in range(200):
        key = f"{number:04}{QUOTES}"
        stores.relay.append(RUN, replace(hold(f"path:{key}", 0, ts_us=NOW_US + number), resource=key))
        agent = f"{number:03}" + '"' * 197
        paths = json.dumps([f"{number // 2}{QUOTES}"])
        row = SessionRow(NOW_US, f"{agent}", 1, run_id=RUN.run_id, agent=agent, block_type="tool_use", paths=paths)
        stores.sessions.write(DATASET, "ann", [row], NOW_US)
    run = get_run(GetRunRequest(run_id=RUN.run_id), ADMIN, stores)
    assert isinstance(run, GetRunAnswer)
    assert (run.agents_total, run.events_total, run.resources_total) == (201, 200, 200)
    assert all(20 < len(shown) < 200 for shown in (run.events, run.resources, run.detectors))
    assert over_http(run) < MAX_ANSWER_BYTES


def test_of_many_agents_those_are_shown_that_wrote_last_each_with_its_last_sessions(
    stores: Ports, fill: Callable[[int], None]
) -> None:
    fill(RUN_AGENTS + 5)
    rows = [
        SessionRow(NOW_US + number, f"s{number:03}", 1, run_id=RUN.run_id, agent="agent-0000")
        for number in range(AGENT_SESSIONS + 5)
    ]
    stores.sessions.write(DATASET, "ann", rows, NOW_US)
    run = get_run(GetRunRequest(run_id=RUN.run_id), ADMIN, stores)
    assert isinstance(run, GetRunAnswer)
    assert run.agents_total == RUN_AGENTS + 5
    names = [f"agent-{number:04}" for number in (0, *range(6, RUN_AGENTS + 5))]
    assert sorted(agent.agent for agent in run.agents) == names
    first = next(agent for agent in run.agents if agent.agent == names[0])
    assert first.sessions == [f"s{number:03}" for number in range(5, AGENT_SESSIONS + 5)]


def test_agents_are_counted_up_to_a_bound(stores: Ports, fill: Callable[[int], None]) -> None:
    fill(COUNTED_AGENTS + 1)
    summary = stores.runs.run(RUN, NOW_US, None)
    assert summary is not None
    assert summary.agents == COUNTED_AGENTS


def test_the_head_of_a_run_fits_in_its_item_however_many_agents_it_has() -> None:
    head = RunHead(NOW_US, NOW_US, users=frozenset(["ann"]))
    for number in range(2 * COUNTED_AGENTS):
        agents = frozenset([agent_name(Holder("ann", f"agent-{number}"))])
        head = head.merged(RunHead(NOW_US, NOW_US, agents=agents))
    assert len(head.agents) == COUNTED_AGENTS
    run = Run(DATASET, "👩" * 200)
    assert size_of(head_item(run, head, 10**9, Counted(10**9, "9" * 49))) < MAX_ITEM_BYTES / 10


@pytest.fixture
def fill(stores: Ports) -> Callable[[int], None]:
    """Has so many agents upload a row in the run, each a microsecond after the one before."""

    def upload(agents: int) -> None:
        rows = [
            SessionRow(NOW_US - agents + number, "s", number, run_id=RUN.run_id, agent=f"agent-{number:04}")
            for number in range(agents)
        ]
        stores.sessions.write(DATASET, "ann", rows, NOW_US)

    return upload
