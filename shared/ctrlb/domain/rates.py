"""How often somebody may do something: a bucket of tokens that fills again at a steady rate."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second for as long as one likes, and `burst` at once after a pause."""

    per_s: float
    burst: int


def take(full_at_s: float, now_s: float, rate: Rate) -> tuple[float, float]:
    """Take one from the bucket that will be full at `full_at_s`, if one is there.

    Returns how long to wait for one, 0 when it was taken, and when the bucket will be full then.
    """
    # A clock that was set back, or a process that slept, leaves nobody waiting longer than an empty bucket would.
    full_at_s = min(max(full_at_s, now_s), now_s + rate.burst / rate.per_s)
    there = rate.burst - (full_at_s - now_s) * rate.per_s
    if there < 1:
        return (1 - there) / rate.per_s, full_at_s
    return 0.0, full_at_s + 1 / rate.per_s
