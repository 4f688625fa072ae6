"""What followed a tool call, read from the rows of its session. Source: the contract's "next_actions"."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ctrlb.domain.rows import SessionRow

RESULTS_WITHIN_ROWS = 200
"""How many rows after the last call asked for its result may still come; an interrupted call has none."""


@dataclass(slots=True)
class _Call:
    row: SessionRow
    result: SessionRow | None = None


@dataclass(slots=True)
class Actions:
    """Calls and results in order, and how many text and thinking rows stand between them."""

    events: list[tuple[str, SessionRow]] = field(default_factory=list)
    skipped_texts: int = 0


def actions_after(rows: Iterable[SessionRow], seq: int, k: int, tool: str) -> Actions | None:
    """What followed the first tool call of `seq`: its result, then the next `k` calls with theirs.

    `rows` are the session's from `seq` on, in order; no more of them are taken than needed. Parallel
    calls pair with their results by tool_use_id; a call without one takes the next result without one.
    None when `seq` is no tool call.
    """
    calls: list[_Call] = []
    texts: list[SessionRow] = []
    rows_left = RESULTS_WITHIN_ROWS
    for row in rows:
        if not calls:
            if row.seq != seq:
                return None
            if row.block_type == "tool_use":
                calls.append(_Call(row))
            continue
        if row.block_type == "tool_use" and len(calls) <= k and tool in ("", row.tool_name):
            calls.append(_Call(row))
        elif row.block_type == "tool_result":
            _pair(calls, row)
        elif row.block_type in ("text", "thinking"):
            texts.append(row)
        if len(calls) > k:
            rows_left -= 1
            if rows_left == 0 or all(call.result for call in calls):
                break
    return _in_order(calls, texts) if calls else None


def _pair(calls: list[_Call], result: SessionRow) -> None:
    for call in calls:
        if call.result is None and call.row.tool_use_id == result.tool_use_id:
            call.result = result
            return


def _in_order(calls: list[_Call], texts: list[SessionRow]) -> Actions:
    actions = Actions()
    for index, call in enumerate(calls):
        if index > 0:
            actions.events.append(("call", call.row))
        if call.result is not None:
            actions.events.append(("result", call.result))
    end = max(((row.seq, row.block_idx) for _, row in actions.events), default=(-1, -1))
    actions.skipped_texts = sum((text.seq, text.block_idx) < end for text in texts)
    return actions
