"""Exclusive claims: take a resource, give it back, ask before an edit.

Source: the contract's "How a claim is decided". A claim reads nothing first: it writes its hold where
the record of a new key ends, waits a moment, and reads the record back. Only when that number is taken
does it look who was there.
"""

from ctrlb.domain.access import Caller
from ctrlb.domain.claim_rules import blocking, is_held_by, next_row
from ctrlb.domain.errors import Invalid, Unavailable
from ctrlb.domain.resource_keys import resource_key
from ctrlb.domain.rows import ClaimRow, Event, Holder, Run
from ctrlb.models import (
    CheckAnswer,
    CheckRequest,
    ClaimAnswer,
    ClaimRequest,
    Conflict,
    ReleaseAnswer,
    ReleaseRequest,
)
from ctrlb.ports import NumberTaken, Ports, RelayStore

CALL_BUDGET_S = 5.0
"""A claim or release that is not decided by then answers 503: well within a lease, and a client's patience."""
LAST_TURN_S = 2.5
"""No turn, a write and a read, begins later: one that meets every time-out of its store still ends soon after."""
MAX_APPENDS = 16
"""How often a call may lose the race for a number. Each loss means that somebody else's row was written."""


def claim(request: ClaimRequest, caller: Caller, ports: Ports) -> ClaimAnswer:
    """Take the resource for the lease, renew it, or say who has it."""
    run = _run_to_write(request, caller)
    holder = Holder(caller.user, request.agent)
    key = resource_key(request.resource, request.cwd)
    request_id = ports.random.request_id()
    begun_s = ports.clock.elapsed_s()
    last: ClaimRow | None = None
    now_us = ports.clock.now_us()
    for _ in range(MAX_APPENDS):
        renews = is_held_by(last, holder, now_us)
        hold = next_row(
            last,
            "HOLD",
            key=key,
            resource=request.resource,
            holder=holder,
            now_us=now_us,
            lease_us=caller.settings.lease_seconds * 1_000_000,
            request_id=request_id,
        )
        written = _append(ports.relay, run, hold)
        if written:
            ports.clock.wait_ms(caller.settings.wait_ms)
        now_us = ports.clock.now_us()  # read before the record, so a slow read only makes a takeover later
        last = ports.relay.last(run, key)
        took_s = ports.clock.elapsed_s() - begun_s
        if took_s > CALL_BUDGET_S:
            break
        mine = written or (last is not None and last.request_id == request_id)  # the write's answer was lost
        if mine and last is not None and is_held_by(last, holder, ports.clock.now_us()):
            return _held(hold, last, renewed=renews)
        if blocker := blocking(last, holder, now_us):
            return _refuse(request, blocker, holder, run, ports)
        if took_s > LAST_TURN_S:
            break
    raise _undecided("claim", request.resource)


def release(request: ReleaseRequest, caller: Caller, ports: Ports) -> ReleaseAnswer:
    """End the agent's live hold, as done or as free for another; write nothing when there is none."""
    run = _run_to_write(request, caller)
    holder = Holder(caller.user, request.agent)
    key = resource_key(request.resource, request.cwd)
    request_id = ports.random.request_id()
    begun_s = ports.clock.elapsed_s()
    for _ in range(MAX_APPENDS):
        if ports.clock.elapsed_s() - begun_s > LAST_TURN_S:
            break
        last = ports.relay.last(run, key)
        released = last is not None and last.request_id == request_id  # the write's answer was lost
        now_us = ports.clock.now_us()
        if not released and is_held_by(last, holder, now_us):
            row = next_row(
                last,
                "DONE" if request.finished else "RELEASE",
                key=key,
                resource=request.resource,
                holder=holder,
                now_us=now_us,
                lease_us=0,
                request_id=request_id,
            )
            if not _append(ports.relay, run, row):
                continue
            released = True
        return ReleaseAnswer(released=int(released), finished=request.finished, resource=request.resource, key=key)
    raise _undecided("release", request.resource)


def check(request: CheckRequest, caller: Caller, ports: Ports) -> CheckAnswer:
    """Say which of the paths another agent of the run holds, and whether the edit may go ahead.

    A file without an extension can be claimed under its bare name, too, so both keys are looked at.
    """
    run = _run_to_write(request, caller)
    mode = caller.settings.enforce
    holder = Holder(caller.user, request.agent)
    wanted = [(path, key) for index, path in enumerate(request.paths) for key in _edit_keys(index, path, request.cwd)]
    if mode == "off":
        return CheckAnswer(mode=mode, allowed=True, conflicts=[])
    now_us = ports.clock.now_us()
    keys = list(dict.fromkeys(key for _, key in wanted))
    last = dict(zip(keys, ports.relay.last_of_each(run, keys), strict=True))
    conflicts, events = [], []
    for path, key in wanted:
        row = blocking(last[key], holder, now_us)
        if row is not None and row.kind == "HOLD":
            conflicts.append(Conflict(path=path, key=key, held_by=row.holder.agent, lease_until=row.lease_until_us))
            text = f"held by {row.holder.agent}"
            events.append(Event("CHECK", holder, now_us, resource=path, key=key, text=text))
    if events:
        ports.relay.add_events(run, *events)
    return CheckAnswer(mode=mode, allowed=mode != "enforce" or not conflicts, conflicts=conflicts)


def _run_to_write(request: ClaimRequest | ReleaseRequest | CheckRequest, caller: Caller) -> Run:
    return Run(caller.dataset_to_write(request.dataset), request.run_id)


def _append(relay: RelayStore, run: Run, row: ClaimRow) -> bool:
    try:
        relay.append(run, row)
    except NumberTaken:
        return False
    return True


def _held(hold: ClaimRow, last: ClaimRow, *, renewed: bool) -> ClaimAnswer:
    held = ClaimAnswer(held=True, resource=hold.resource, key=hold.key, lease_until=last.lease_until_us)
    return held.model_copy(update={"renewed": True}) if renewed else held


def _refuse(request: ClaimRequest, blocker: ClaimRow, holder: Holder, run: Run, ports: Ports) -> ClaimAnswer:
    agent = blocker.holder.agent
    whose = agent if agent != holder.agent or blocker.holder == holder else f"another user's {agent}"
    finished = blocker.kind == "DONE"
    state = f"already finished by {whose}" if finished else f"already held by {whose}"
    ports.relay.add_events(
        run,
        Event("REFUSED", holder, ports.clock.now_us(), resource=request.resource, key=blocker.key, text=state),
    )
    verb = "was" if finished else "is"
    message = f"{request.resource} {verb} {state}; pick something else"
    if finished:
        return ClaimAnswer(held=False, resource=request.resource, key=blocker.key, finished_by=agent, message=message)
    return ClaimAnswer(held=False, resource=request.resource, key=blocker.key, held_by=agent, message=message)


def _edit_keys(index: int, path: str, cwd: str) -> list[str]:
    try:
        return list(dict.fromkeys((resource_key(f"path:{path}", cwd), resource_key(path, cwd))))
    except Invalid as error:
        raise Invalid(error.message.replace("resource", f"paths[{index}]", 1)) from None


def _undecided(verb: str, resource: str) -> Unavailable:
    return Unavailable(f"the {verb} of {resource} could not be decided in time; nothing is promised, send it again")
