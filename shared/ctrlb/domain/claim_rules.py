"""How a claim is decided, from the last row of its record and the present time.

Source: the contract's "How a claim is decided". A record is a series of numbered rows; appending the
next number is one conditional write, so the record has one order that everybody sees, and no clock
decides who was first. Clocks decide only whether a lease has run out.
"""

from ctrlb.domain.rows import ClaimKind, ClaimRow, Holder

MAX_CLOCK_SKEW_US = 250_000
"""How far the clocks of two servers may differ. A lease ends for its holder when it runs out, and for
everybody else this much later, so no two clocks within the bound see two holders."""


def is_held_by(last: ClaimRow | None, holder: Holder, now_us: int) -> bool:
    """Whether `holder` may go on working on the resource."""
    return last is not None and last.kind == "HOLD" and last.holder == holder and now_us < last.lease_until_us


def blocking(last: ClaimRow | None, holder: Holder, now_us: int) -> ClaimRow | None:
    """The row that keeps `holder` from the resource: it is done, or another's hold may still be live."""
    if last is None or last.kind == "RELEASE":
        return None
    if last.kind == "DONE":
        return last
    others = last.holder != holder and now_us < last.lease_until_us + MAX_CLOCK_SKEW_US
    return last if others else None


def next_row(
    last: ClaimRow | None,
    kind: ClaimKind,
    *,
    key: str,
    resource: str,
    holder: Holder,
    now_us: int,
    lease_us: int,
    request_id: str,
) -> ClaimRow:
    """The row that follows `last`. A hold that renews a live one moves its end forward, never back."""
    lease_until_us = now_us + lease_us if kind == "HOLD" else 0
    if kind == "HOLD" and last is not None and is_held_by(last, holder, now_us):
        lease_until_us = max(lease_until_us, last.lease_until_us)
    return ClaimRow(
        number=0 if last is None else last.number + 1,
        kind=kind,
        key=key,
        resource=resource,
        holder=holder,
        ts_us=now_us,
        lease_until_us=lease_until_us,
        request_id=request_id,
    )
