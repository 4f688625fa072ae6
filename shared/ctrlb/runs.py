"""What the Runs page shows: the list of runs, and one run with what the detectors find in it."""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from operator import attrgetter

from ctrlb.domain.access import Caller
from ctrlb.domain.claim_detectors import (
    accountable_edits,
    contentions,
    edits_against_claims,
    edits_without_claims,
    expired_holds,
    hold_times,
)
from ctrlb.domain.cursors import read_cursor, written_cursor
from ctrlb.domain.detectors import Finding, duplicate_edits, silent_agents
from ctrlb.domain.errors import NotFound
from ctrlb.domain.rows import AgentActivity, ClaimRow, Dataset, Edit, Event, Run, RunSummary
from ctrlb.domain.run_rules import is_live, is_silent, resource_state
from ctrlb.models import (
    DetectorFinding,
    DetectorRow,
    GetRunAnswer,
    GetRunRequest,
    ListRunsAnswer,
    ListRunsRequest,
    RunAgent,
    RunListItem,
    RunResource,
    RunStatus,
    fitting,
)
from ctrlb.notes import peer_events
from ctrlb.ports import Ports

RUN_AGENTS = 500
AGENT_SESSIONS = 100
RUN_EVENTS = 500
RUN_RESOURCES = 500
RUN_EDITS = 5_000
"""How many of a run's newest edits the detectors look at."""
RUNS_READ = 1_000
"""How many runs one call looks at for those of the asked status; the cursor goes on from there."""
RUNS_READ_AT_ONCE = 200


def list_runs(request: ListRunsRequest, caller: Caller, ports: Ports) -> ListRunsAnswer:
    """The runs that the caller has a row in, or all with `relay.read_all`, newest started first."""
    dataset = caller.dataset_to_read(request.dataset)
    before = read_cursor(request.cursor) if request.cursor else None
    now_us = ports.clock.now_us()
    at_once = request.limit + 1 if request.status == "all" else RUNS_READ_AT_ONCE
    items: list[RunListItem] = []
    cursor: str | None = None
    for looked_at, summary in enumerate(_newest_first(dataset, now_us, before, at_once, caller, ports)):
        if before is not None and (len(items) == request.limit or looked_at == RUNS_READ):
            cursor = written_cursor(before)
            break
        status = _status(summary, caller, now_us)
        if request.status in ("all", status):
            items.append(_list_item(summary, status))
        before = (summary.started_us, summary.run_id)
    return ListRunsAnswer(runs=items, next_cursor=cursor)


def get_run(request: GetRunRequest, caller: Caller, ports: Ports) -> GetRunAnswer:
    """One run, if the caller sees a row of it; the answer does not tell an unknown run from a hidden one."""
    run = Run(caller.dataset_to_read(request.dataset), request.run_id)
    now_us = ports.clock.now_us()
    summary = ports.runs.run(run, now_us, caller.seen_user)
    if summary is None:
        raise NotFound(f"you see no row of the run {request.run_id} in {run.dataset.name}")
    status = _status(summary, caller, now_us)
    activities = ports.runs.agents(run)
    latest = set(nlargest(RUN_AGENTS, activities, key=attrgetter("last_us", "first_us")))
    shown = [activity for activity in activities if activity in latest]
    resources, resources_total = ports.runs.resources(run, RUN_RESOURCES)
    silent_after_us = caller.settings.silent_after_seconds * 1_000_000
    live = status == "live"
    edits = ports.runs.edits(run, RUN_EDITS)
    events = ports.relay.newest(run, RUN_EVENTS)  # read after the edits, so no claim that was before one is missing
    findings = [
        *duplicate_edits(edits),
        *silent_agents(shown, now_us, silent_after_us, live),
        *_findings_on_claims(edits, events, now_us),
    ]
    return GetRunAnswer(
        run_id=request.run_id,
        status=status,
        started=summary.started_us,
        last=summary.last_us,
        agents=fitting(_agent(activity, live and is_silent(activity, now_us, silent_after_us)) for activity in shown),
        agents_total=len(activities),
        events=peer_events(events, now_us),
        events_total=summary.events,
        resources=fitting(_resource(row, now_us) for row in resources),
        resources_total=resources_total,
        detectors=fitting(map(_finding, findings)),
    )


def _findings_on_claims(edits: Sequence[Edit], events: Sequence[Event], now_us: int) -> list[Finding]:
    """What the events say, by themselves and with the edits, as far as RUN_EVENTS of them can."""
    complete = len(events) < RUN_EVENTS
    accountable = accountable_edits(edits, now_us)
    times = hold_times(events, complete)
    return [
        *edits_against_claims(accountable, times),
        *contentions(events),
        *expired_holds(accountable, times),
        *(edits_without_claims(accountable, events) if complete else []),
    ]


def _newest_first(
    dataset: Dataset, now_us: int, before: tuple[int, str] | None, at_once: int, caller: Caller, ports: Ports
) -> Iterator[RunSummary]:
    """The runs that the caller sees below `before`, read `at_once` at a time as they are asked for."""
    while page := ports.runs.runs(dataset, now_us, before, at_once, caller.seen_user):
        yield from page
        if len(page) < at_once:
            return
        before = (page[-1].started_us, page[-1].run_id)


def _status(summary: RunSummary, caller: Caller, now_us: int) -> RunStatus:
    lease_us = caller.settings.lease_seconds * 1_000_000
    return "live" if is_live(summary.last_us, summary.held > 0, now_us, lease_us) else "done"


def _list_item(summary: RunSummary, status: RunStatus) -> RunListItem:
    return RunListItem(
        run_id=summary.run_id,
        status=status,
        started=summary.started_us,
        last=summary.last_us,
        agents=summary.agents,
        events=summary.events,
        held=summary.held,
    )


def _agent(activity: AgentActivity, silent: bool) -> RunAgent:
    return RunAgent(
        agent=activity.holder.agent,
        user_name=activity.holder.user,
        first=activity.first_us,
        last=activity.last_us,
        silent=silent,
        sessions=list(activity.session_ids[-AGENT_SESSIONS:]),
    )


def _resource(row: ClaimRow, now_us: int) -> RunResource:
    return RunResource(
        resource=row.resource,
        key=row.key,
        state=resource_state(row, now_us),
        agent=row.holder.agent,
        ts=row.ts_us,
        lease_until=row.lease_until_us or None,
    )


def _finding(finding: Finding) -> DetectorFinding:
    return DetectorFinding(
        detector=finding.detector,
        key=finding.key,
        agents=list(finding.agents),
        message=finding.message,
        rows=[
            DetectorRow(agent=row.agent, ts=row.ts_us, session_id=row.session_id, seq=row.seq, block_idx=row.block_idx)
            for row in finding.rows
        ],
    )
