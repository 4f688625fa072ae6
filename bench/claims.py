"""Claims: what one costs through HTTP and MCP, beside a bare handler that makes the same row."""

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.floor import WAIT_MS
from bench.load import LoadProcess, Round, request
from bench.report import Line, paired_ratio, say
from bench.servers import FLOOR, PRODUCT, Server
from ctrlb.domain.rows import Audit
from ctrlb.laptop import WORKSPACE
from ctrlb.wiring import embedded

MOST_TIMES_FLOOR = 3.0
AGENTS = (1, 16)
REQUESTS = {1: 500, 16: 3_000}
ROUNDS = 9
QUICK_REQUESTS = {1: 100, 16: 600}
QUICK_ROUNDS = 2
HELD = b'"held":true'
"""A claim that is refused costs something else, so none may be."""
_MCP_HEADERS = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n"

Claim = Callable[[str, int], bytes]
"""From a key and a number that is used once, the request that claims a resource of its own."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A server and the claims it is sent."""

    server: Server
    claim: Claim

    def play(self, load: LoadProcess, agents: int, first: int, count: int) -> Round:
        requests = [self.claim(self.server.key, number) for number in range(first, first + count)]
        return load.send(self.server.port, requests, agents, HELD)


def measure(folder: Path, quick: bool) -> list[Line]:
    """Rounds of claims on the product and on the floor, in turn."""
    product_folder = folder / "claims"
    with Server(PRODUCT, product_folder):
        pass  # makes the folder, with its first key
    _set_wait(product_folder, WAIT_MS)
    with Server(PRODUCT, product_folder) as product, Server(FLOOR, folder / "floor") as floor, LoadProcess() as load:
        lines = []
        for agents in AGENTS:
            lines += _compare("HTTP", agents, _Side(product, _over_http), _Side(floor, _over_http), load, quick)
        for agents in AGENTS:
            lines += _compare("MCP", agents, _Side(product, _over_mcp), _Side(floor, _over_http), load, quick)
    return lines


def _compare(door: str, agents: int, product: _Side, floor: _Side, load: LoadProcess, quick: bool) -> list[Line]:
    count = (QUICK_REQUESTS if quick else REQUESTS)[agents]
    ours, bare = list[Round](), list[Round]()
    base = (AGENTS.index(agents) + (door == "MCP") * len(AGENTS)) * 1_000_000
    for turn in range(1 + (QUICK_ROUNDS if quick else ROUNDS)):
        first = base + turn * count
        ours.append(product.play(load, agents, first, count))
        bare.append(floor.play(load, agents, first, count))
        say(
            f"claims over {door}, {agents} agents, round {turn}: {ours[-1].per_s:,.0f}/s, floor {bare[-1].per_s:,.0f}/s"
        )
    return _lines(door, agents, ours[1:], bare[1:])  # the first round warms both up


def _lines(door: str, agents: int, ours: list[Round], bare: list[Round]) -> list[Line]:
    what = f"claim, {door}, {agents} agent{'s' if agents > 1 else ''}"
    cost = _line(f"{what}: cost, ms", ours, bare, lambda turn: _cost_ms(turn, agents))
    if door == "HTTP":
        cost = replace(cost, aim=f"≤ {MOST_TIMES_FLOOR} of the floor", met=float(cost.ratio) <= MOST_TIMES_FLOOR)
    return [
        cost,
        _line(f"{what}: claims/s", ours, bare, lambda turn: turn.per_s, ",.0f"),
        _line(f"{what}: p50, ms", ours, bare, lambda turn: turn.p50_ms),
        _line(f"{what}: p99, ms", ours, bare, lambda turn: turn.p99_ms),
    ]


def _cost_ms(turn: Round, agents: int) -> float:
    """What a claim costs beside its wait. Agents that are many keep the server busy while one of them waits."""
    return 1_000 / turn.per_s - (WAIT_MS if agents == 1 else 0)


def _line(what: str, ours: list[Round], bare: list[Round], figure: Callable[[Round], float], form: str = ".2f") -> Line:
    left, right = [figure(turn) for turn in ours], [figure(turn) for turn in bare]
    return Line(
        what,
        format(statistics.median(left), form),
        format(statistics.median(right), form),
        f"{paired_ratio(left, right):.2f}",
    )


def _over_http(key: str, number: int) -> bytes:
    claim = {"agent": f"agent-{number % 16}", "resource": f"src/app/module_{number}.py", "cwd": "/work/app"}
    return request("POST", "/ai/relay/agent_sessions/runs/bench/claims", key, json.dumps(claim).encode())


def _over_mcp(key: str, number: int) -> bytes:
    arguments = {"run_id": "bench", "agent": f"agent-{number % 16}", "resource": f"src/app/module_{number}.py"}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "claim", "arguments": arguments}}
    return request("POST", "/mcp", key, json.dumps(call).encode(), _MCP_HEADERS)


def _set_wait(folder: Path, wait_ms: int) -> None:
    with embedded(folder) as stores:
        audit = Audit(WORKSPACE, stores.clock.now_us(), "bench", "change_settings", "", f"wait_ms: {wait_ms}")
        before = stores.identity.settings(WORKSPACE)
        stores.identity.change_settings(WORKSPACE, before, replace(before, wait_ms=wait_ms), None, audit)
