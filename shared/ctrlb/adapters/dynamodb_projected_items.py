"""How what is projected from a run's rows lies in the relay table.

None of it has `at`, so none is in the index by time, and none has `kind`, by which the trigger of the function that
writes it knows the rows it is for. Heads and edits have `listed_in`, by which they are listed by their time.
"""

import json
from dataclasses import dataclass
from typing import cast

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import Item, item, number, text, texts
from ctrlb.domain.projections import Place, RowEdits, RunHead
from ctrlb.domain.rows import AgentActivity, ClaimKind, ClaimRow, Edit, Holder, Run

MAX_EDITS_BYTES = 300_000
"""How much of one row's edits is kept: the row was accepted, it only proves less."""
FIRST_PLACE = "0"
"""Before every row's place in a run's time."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows of a run in the relay were counted: all up to a place that no row comes before any more."""

    rows: int = 0
    up_to: str = FIRST_PLACE


def head_item(run: Run, head: RunHead, events: int, counted: Counted) -> Item:
    """The head of a run, without its place."""
    return item(
        workspace=run.dataset.workspace,
        dataset=run.dataset.name,
        run_id=run.run_id,
        started_us=head.started_us,
        last_us=head.last_us,
        lease_until_us=head.lease_until_us,
        written_by=head.users,
        agents=head.agents,
        events=events,
        counted=counted.rows,
        counted_up_to=counted.up_to,
        listed_in=places.runs_of(run.dataset),
        listed_at=places.run_listed_at(head.started_us, run.run_id),
    )


def run_head(found: Item) -> RunHead:
    """The head that was stored as the item."""
    return RunHead(
        number(found, "started_us"),
        number(found, "last_us"),
        number(found, "lease_until_us"),
        texts(found, "written_by"),
        texts(found, "agents"),
    )


def counted(found: Item) -> Counted:
    """How far the rows were counted when the head was stored as the item."""
    return Counted(number(found, "counted"), text(found, "counted_up_to") or FIRST_PLACE)


def activity_item(activity: AgentActivity) -> Item:
    """What an agent did in the relay or in one session, without its place."""
    return item(
        user=activity.holder.user,
        agent=activity.holder.agent,
        session_id="".join(activity.session_ids),
        first_us=activity.first_us,
        last_us=activity.last_us,
        last_block_type=activity.last_block_type,
    )


def agent_activity(found: Item) -> AgentActivity:
    """The activity that was stored as the item."""
    session_id = text(found, "session_id")
    return AgentActivity(
        Holder(text(found, "user"), text(found, "agent")),
        number(found, "first_us"),
        number(found, "last_us"),
        text(found, "last_block_type"),
        (session_id,) if session_id else (),
    )


def resource_item(run: Run, row: ClaimRow, at: str) -> Item:
    """The last row of a resource's record."""
    return item(
        pk=places.run_pk(run),
        sk=places.resource_sk(row.key),
        row_number=row.number,
        held_as=row.kind,
        resource_key=row.key,
        resource=row.resource,
        user=row.holder.user,
        agent=row.holder.agent,
        placed_at=at,
        lease_until_us=row.lease_until_us,
        request_id=row.request_id,
    )


def resource_row(found: Item) -> ClaimRow:
    """The last row that was stored as the item."""
    return ClaimRow(
        number=number(found, "row_number"),
        kind=cast("ClaimKind", text(found, "held_as")),
        key=text(found, "resource_key"),
        resource=text(found, "resource"),
        holder=Holder(text(found, "user"), text(found, "agent")),
        ts_us=places.time_of(text(found, "placed_at")),
        lease_until_us=number(found, "lease_until_us"),
        request_id=text(found, "request_id"),
    )


def edits_item(run: Run, place: Place, found: RowEdits) -> Item:
    """What a session row says of edits; one that says nothing is not listed."""
    session_id, seq, block_idx = place
    written = item(
        pk=places.run_pk(run), sk=places.edit_sk(*place), seq=seq, block_idx=block_idx, written_us=found.written_us
    )
    if not found.says_something:
        return written
    written |= item(
        session_id=session_id,
        tool_use_id=found.tool_use_id,
        ts_us=found.ts_us,
        listed_at=places.edit_listed_at(found.ts_us, *place),
    )
    if found.failed:
        return written | item(listed_in=places.failed_calls_of(run))
    return written | item(
        user=found.edits[0].holder.user,
        agent=found.edits[0].holder.agent,
        edits=_kept([(edit.key, edit.path) for edit in found.edits]),
        listed_in=places.edits_of(run),
    )


def call_of(found: Item) -> tuple[str, str]:
    """The session and id of the tool call that the item is of, or of whose result."""
    return text(found, "session_id"), text(found, "tool_use_id")


def row_edits(found: Item) -> list[Edit]:
    """The edits that were stored as the item."""
    holder = Holder(text(found, "user"), text(found, "agent"))
    place = (number(found, "ts_us"), text(found, "session_id"), number(found, "seq"), number(found, "block_idx"))
    return [Edit(holder, key, path, *place) for key, path in json.loads(text(found, "edits"))]


def _kept(edits: list[tuple[str, str]]) -> str:
    """The edits as JSON, the first of them if all would not fit in the item."""
    written = json.dumps(edits, ensure_ascii=False)
    while len(written.encode()) > MAX_EDITS_BYTES:
        edits = edits[: len(edits) // 2]
        written = json.dumps(edits, ensure_ascii=False)
    return written
