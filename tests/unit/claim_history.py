"""A run as it truly was: claims by the rules, edits, and the clocks by which each was dated."""

import random

from ctrlb.domain.claim_rules import MAX_CLOCK_SKEW_US, blocking, is_held_by, next_row
from ctrlb.domain.rows import ClaimKind, ClaimRow, Edit, Event, Holder

S = 1_000_000
KEYS = ("path:x", "path:y")
AGENTS = tuple(Holder("ann", name) for name in "abc")
STEPS = 60


class History:
    """What three agents did to two files. True times are of one clock; the rows have what their writers took for it."""

    def __init__(self, chance: random.Random, client_slack_us: int, server_skew_us: int) -> None:
        """No client's clock differs from a server's by more than `client_slack_us`, nor two servers' by their skew."""
        self._chance = chance
        self._server_us = server_skew_us // 2
        self._client_us = max(0, client_slack_us - self._server_us)
        self.events: list[Event] = []
        self.edits: list[Edit] = []
        self._rows: list[tuple[int, ClaimRow]] = []
        self._edited_us: list[int] = []
        self.now_us = 1_000 * S
        for _ in range(STEPS):
            self.now_us += chance.choice((chance.randrange(S // 10), chance.randrange(60 * S)))
            chance.choice((self._claim, self._claim, self._release, self._edit, self._edit))(
                chance.choice(KEYS), chance.choice(AGENTS)
            )

    def newest(self, limit: int) -> list[Event]:
        """The events as they are listed: by the time that they say, newest first."""
        return sorted(self.events, key=lambda event: event.ts_us)[::-1][:limit]

    def holder_at_edit(self, seq: int | None, key: str) -> Holder | None:
        """Who truly held the key when the edit was made."""
        at_us, last = self._at_edit(seq, key)
        held = last is not None and last.kind == "HOLD" and at_us < last.lease_until_us + self._server_us
        return last.holder if held and last else None

    def had_run_out_at_edit(self, seq: int | None, key: str, holder: Holder) -> bool:
        """Whether the last that the holder did to the key before its edit was a claim, and its lease was over."""
        assert seq is not None
        at_us = self._edited_us[seq]
        own = [row for ts_us, row in self._rows if row.key == key and row.holder == holder and ts_us <= at_us]
        return bool(own) and own[-1].kind == "HOLD" and own[-1].lease_until_us - self._server_us <= at_us

    def edits_within_anothers_hold(self, slack_us: int) -> set[int]:
        """The edits that a claim of another, up to its lease or its release, is around by so much on both sides."""
        return {
            edit.seq
            for edit in self.edits
            for begun_us, row in self._rows
            if row.kind == "HOLD" and row.key == edit.key and row.holder != edit.holder
            if begun_us + slack_us <= edit.ts_us <= self._ended_us(begun_us, row) - slack_us
        }

    def _ended_us(self, begun_us: int, hold: ClaimRow) -> int:
        """When the lease or a release ended it; one that servers may have dated after it counts, too."""
        releases = [
            ts_us
            for ts_us, row in self._rows
            if row.kind == "RELEASE" and row.key == hold.key and row.holder == hold.holder
            if ts_us >= begun_us - MAX_CLOCK_SKEW_US
        ]
        return min([*releases, hold.lease_until_us])

    def _at_edit(self, seq: int | None, key: str) -> tuple[int, ClaimRow | None]:
        assert seq is not None
        at_us = self._edited_us[seq]
        rows = [row for ts_us, row in self._rows if row.key == key and ts_us <= at_us]
        return at_us, rows[-1] if rows else None

    def _last(self, key: str) -> ClaimRow | None:
        return next((row for _, row in reversed(self._rows) if row.key == key), None)

    def _dated_us(self, bound_us: int) -> int:
        return self.now_us + self._chance.randint(-bound_us, bound_us)

    def _claim(self, key: str, holder: Holder) -> None:
        now_us, last = self._dated_us(self._server_us), self._last(key)
        if blocking(last, holder, now_us):
            self.events.append(Event("REFUSED", holder, now_us, key[5:], key))
            return
        self._append(last, "HOLD", key, holder, now_us)

    def _release(self, key: str, holder: Holder) -> None:
        now_us, last = self._dated_us(self._server_us), self._last(key)
        if is_held_by(last, holder, now_us):
            self._append(last, "RELEASE", key, holder, now_us)

    def _append(self, last: ClaimRow | None, kind: ClaimKind, key: str, holder: Holder, now_us: int) -> None:
        row = next_row(
            last,
            kind,
            key=key,
            resource=key[5:],
            holder=holder,
            now_us=now_us,
            lease_us=self._chance.randint(60, 240) * S,
            request_id="",
        )
        self._rows.append((self.now_us, row))
        self.events.append(Event(row.kind, holder, now_us, row.resource, key, "", row.lease_until_us))

    def _edit(self, key: str, holder: Holder) -> None:
        ts_us, seq = self._dated_us(self._client_us), len(self.edits)
        self.edits.append(Edit(holder, key, key[5:], ts_us, f"session of {holder.agent}", seq, 0))
        self._edited_us.append(self.now_us)
