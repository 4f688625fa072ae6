"""What a run's claims and edits say about each other, and what its refusals say.

An edit is dated by its client, a claim by a server. So an edit is within a claim's time, or after it, only if it is so
by CLOCK_SLACK_US; what is nearer proves nothing. Nor does it prove anything that a row is missing which may not have
been read: `hold_times` and `edits_without_claims` say which rows they have to be given.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias

from ctrlb.domain.claim_rules import MAX_CLOCK_SKEW_US
from ctrlb.domain.detectors import Finding, ProvingRow, edit_row, names_of
from ctrlb.domain.errors import Invalid
from ctrlb.domain.resource_keys import resource_key
from ctrlb.domain.rows import Edit, Event, Holder

CLOCK_SLACK_US = 5_000_000
"""How far the clock of a client may be from the servers'. The time of an edit is that of its call."""
REFUSED_AGAIN = 3
"""So many refusals of one agent on one key, with no hold of its own since, are contention."""
SHOWN_ROWS = 20
"""How many of a finding's edits or refusals are shown, the newest."""

Proof: TypeAlias = tuple[Event, Edit]
"""A HOLD, and an edit that it says something of."""


@dataclass(frozen=True, slots=True)
class HoldTime:
    """The time that one HOLD gave its holder. A renewal's begins before that of the hold it renews has ended."""

    hold: Event
    until_us: int
    given_back: bool
    """Whether its holder ended it before the lease did."""


def hold_times(events: Sequence[Event], complete: bool) -> list[HoldTime]:
    """The time of each HOLD among a run's newest events, newest first as they are, in order of its begin.

    Every event newer than one of them is among them, so what ended a hold is. Unless they are `complete`, all of the
    run's, none is told of a HOLD so old that a clock that is behind may have dated its end before all of them.
    """
    known_from_us = 0 if complete or not events else events[-1].ts_us + MAX_CLOCK_SKEW_US
    endings: dict[tuple[str, Holder], list[int]] = {}
    for event in reversed(events):
        if event.kind in ("RELEASE", "DONE"):
            endings.setdefault((event.key, event.holder), []).append(event.ts_us)
    return [
        _hold_time(event, endings.get((event.key, event.holder), []))
        for event in reversed(events)
        if event.kind == "HOLD" and event.ts_us >= known_from_us
    ]


def accountable_edits(edits: Iterable[Edit], now_us: int) -> list[Edit]:
    """The edits that can be held against claims, in order of time.

    One whose row names no agent, so that its session stands for it, may be of any; one from the future has no time.
    """
    kept = (edit for edit in edits if edit.holder.agent != edit.session_id and edit.ts_us <= now_us + CLOCK_SLACK_US)
    return sorted(kept, key=attrgetter("ts_us", "session_id", "seq", "block_idx"))


def edits_against_claims(edits: Sequence[Edit], times: Sequence[HoldTime]) -> list[Finding]:
    """One finding for each key, agent that edited it and agent that held it then, the latest edited first."""
    held: dict[str, list[HoldTime]] = {}
    for time in times:
        held.setdefault(time.hold.key, []).append(time)
    found: dict[tuple[str, Holder, Holder], list[Proof]] = {}
    for edit in edits:
        for key in _claimed_as(edit):
            held_then = _latest(held.get(key, []), edit.ts_us - CLOCK_SLACK_US)
            if held_then is None or held_then.until_us < edit.ts_us + CLOCK_SLACK_US:
                continue
            if held_then.hold.holder != edit.holder:
                found.setdefault((key, edit.holder, held_then.hold.holder), []).append((held_then.hold, edit))
    return [_edit_against_claim(proofs) for proofs in _latest_first(found.values())]


def expired_holds(edits: Sequence[Edit], times: Sequence[HoldTime]) -> list[Finding]:
    """One finding for each key and agent whose lease ran out, and that edited it before it held it again."""
    held: dict[tuple[str, Holder], list[HoldTime]] = {}
    for time in times:
        held.setdefault((time.hold.key, time.hold.holder), []).append(time)
    found: dict[tuple[str, Holder], list[Proof]] = {}
    for edit in edits:
        for key in _claimed_as(edit):
            last = _latest(held.get((key, edit.holder), []), edit.ts_us + CLOCK_SLACK_US)
            if last is not None and not last.given_back and last.until_us < edit.ts_us - CLOCK_SLACK_US:
                found.setdefault((key, edit.holder), []).append((last.hold, edit))
    return [_expired_hold(proofs) for proofs in _latest_first(found.values())]


def contentions(events: Sequence[Event]) -> list[Finding]:
    """One finding for each agent and key that it was refused on again and again, the latest refused first.

    `events` are newest first. A hold of its own ends the matter.
    """
    refused: dict[tuple[str, Holder], list[Event]] = {}
    for event in reversed(events):
        if event.kind == "REFUSED":
            refused.setdefault((event.key, event.holder), []).append(event)
        elif event.kind == "HOLD":
            refused.pop((event.key, event.holder), None)
    again = [found for found in refused.values() if len(found) >= REFUSED_AGAIN]
    return [_contention(found) for found in sorted(again, key=lambda found: -found[-1].ts_us)]


def edits_without_claims(edits: Sequence[Edit], events: Sequence[Event]) -> list[Finding]:
    """One finding for each agent with edits of files that it never claimed, the latest to edit first.

    `events` are all of the run's. Where nobody claims files there is none. A claim on a file of the same name in any
    folder counts, for it may be spelled from another.
    """
    holds = [event for event in events if event.kind == "HOLD"]
    if not any(hold.key.startswith("path:") for hold in holds):
        return []
    claimed = {(hold.holder, _file_name(hold.key)) for hold in holds}
    found: dict[Holder, list[Edit]] = {}
    for edit in edits:
        if (edit.holder, _file_name(edit.key)) not in claimed:
            found.setdefault(edit.holder, []).append(edit)
    return [_edit_without_claim(made) for made in sorted(found.values(), key=lambda made: -made[-1].ts_us)]


def _hold_time(hold: Event, endings: Sequence[int]) -> HoldTime:
    """The HOLD's time, given when its holder released the key. A release may be dated a little before its hold."""
    ended_us = next((ts_us for ts_us in endings if ts_us >= hold.ts_us - MAX_CLOCK_SKEW_US), hold.lease_until_us)
    return HoldTime(hold, min(ended_us, hold.lease_until_us), ended_us < hold.lease_until_us)


def _latest(times: Sequence[HoldTime], ts_us: int) -> HoldTime | None:
    """The last of the times that had begun by then."""
    begun = bisect_right(times, ts_us, key=lambda time: time.hold.ts_us)
    return times[begun - 1] if begun else None


def _claimed_as(edit: Edit) -> list[str]:
    """The keys that a claim on the file may have: a bare name without an extension can be a task's, too."""
    if "/" in edit.key:
        return [edit.key]
    try:
        by_name = resource_key(edit.path)
    except Invalid:
        return [edit.key]
    return [edit.key, by_name] if by_name.startswith("name:") else [edit.key]


def _file_name(key: str) -> str:
    return key.partition(":")[2].rpartition("/")[2].lower()


def _latest_first(found: Iterable[list[Proof]]) -> list[list[Proof]]:
    return sorted(found, key=lambda proofs: -proofs[-1][1].ts_us)


def _edit_against_claim(proofs: Sequence[Proof]) -> Finding:
    hold, edit = proofs[-1]
    names = names_of([edit.holder, hold.holder])
    message = f"{edit.path} was edited by {names[0]} while {names[1]} held it"
    return Finding("edit_against_claim", hold.key, tuple(names), message, _rows(proofs))


def _expired_hold(proofs: Sequence[Proof]) -> Finding:
    hold, edit = proofs[-1]
    late_s = (edit.ts_us - hold.lease_until_us) // 1_000_000
    message = f"{edit.holder.agent} edited {edit.path} {late_s} s after its claim had run out"
    return Finding("expired_hold", hold.key, (edit.holder.agent,), message, _rows(proofs))


def _contention(refused: Sequence[Event]) -> Finding:
    last = refused[-1]
    message = f"{last.holder.agent} was refused {len(refused)} times on {last.resource}: it was {last.text}"
    rows = tuple(_relay_row(event) for event in refused[-SHOWN_ROWS:])
    return Finding("contention", last.key, (last.holder.agent,), message, rows)


def _edit_without_claim(edits: Sequence[Edit]) -> Finding:
    agent, paths = edits[-1].holder.agent, len({edit.key for edit in edits})
    message = f"{agent} edited {edits[-1].path}" + (f" and {paths - 1} more" if paths > 1 else "") + " without a claim"
    rows = tuple(edit_row(edit) for edit in edits[-SHOWN_ROWS:])
    return Finding("edit_without_claim", "", (agent,), message, rows)


def _rows(proofs: Sequence[Proof]) -> tuple[ProvingRow, ...]:
    """The newest of the edits with the holds that they are proven by, in order of time."""
    shown = proofs[-SHOWN_ROWS:]
    rows = {_relay_row(hold): None for hold, _ in shown} | {edit_row(edit): None for _, edit in shown}
    return tuple(sorted(rows, key=attrgetter("ts_us")))


def _relay_row(event: Event) -> ProvingRow:
    return ProvingRow(event.holder.agent, event.ts_us)
