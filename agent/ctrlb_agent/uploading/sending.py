"""Sending rows: what each answer of the server means for them.

Rows that the server refuses are left out, named in the log without their text, and the others go on. Whatever says that
the server cannot take anything at the moment stops the sending, and what is left is the caller's to keep.
"""

from __future__ import annotations

import gzip
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent import calls, state
from ctrlb_agent.connection import Answer, Connection, Unreachable, error_of
from ctrlb_agent.uploading.batches import Row, body_of, shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctrlb_agent.settings import Settings

REQUEST_S = 30.0
"""The longest that one request may take."""
MIN_REQUEST_S = 0.05
"""With less time left nothing is sent."""
FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
MAX_WAITS = 60
"""How often in a row the server may put off the same rows, if there is time for it at all."""
MAX_NAMED_REFUSALS = 8
"""After so many refused rows in one request its halves are sent, so that bad rows do not have all others sent again."""
MAX_FAILURES = 3
"""After so many answers of 500, which may be due to the rows, nothing more is tried."""
MAX_REASON_CHARS = 200
MAX_REFUSALS_TOLD = 20
OUT_OF_TIME = "no time was left"


class Sent(NamedTuple):
    """What became of the rows."""

    accepted: int
    refused: int
    left: list[Row]
    """Those that the server has not got, or not for sure."""
    reason: str
    """Why they are left."""


class Stopped(Exception):
    """The server takes nothing at the moment. The text says why."""


class OutOfTime(Stopped):
    """The server was not even asked."""


class Failed(Stopped):
    """The server failed on these rows (500); it may take others."""


class Sender:
    """Sends to one server until `give_up_s` on the monotonic clock."""

    def __init__(self, settings: Settings, give_up_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._path = calls.records_path(settings.dataset)
        self._connection = Connection(settings.url, settings.key)
        self._give_up_s = give_up_s
        self._sleep = sleep
        self._failures = 0
        self._sessions_of_others: set[str] = set()
        self.stopped = ""
        """Why the server is not asked any more."""
        self.refusals: list[str] = []
        """What was refused and why, the first few."""

    def close(self) -> None:
        self._connection.close()

    def send(self, rows: list[Row]) -> Sent:
        """Send the rows in their order. After one that stops it, no other request is made."""
        todo = [rows] if rows else []
        accepted = refused = 0
        while todo:
            part = todo.pop()
            wanted = [row for row in part if row.session_id not in self._sessions_of_others]
            refused += len(part) - len(wanted)
            try:
                taken, parts = self._offer(wanted) if wanted else (0, [])
            except Stopped as stopped:
                left = [row for rest in [wanted, *reversed(todo)] for row in rest]
                return Sent(accepted, refused, left, str(stopped))
            accepted += taken
            refused += len(wanted) - taken - sum(len(rest) for rest in parts)
            todo.extend(reversed(parts))
        return Sent(accepted, refused, [], "")

    def _offer(self, rows: list[Row]) -> tuple[int, list[list[Row]]]:
        """How many rows were accepted, and what is to be sent of the others."""
        for _ in range(MAX_NAMED_REFUSALS):
            answer = self._answer(body_of(rows))
            if answer.status == 202:
                return len(rows), []
            if answer.status == 413:
                return 0, self._smaller(rows)
            named = self._named(answer, rows)
            if named is None:
                return 0, self._without_nameless_fault(rows, answer)
            if answer.status == 403 and rows[named].session_id in self._sessions_of_others:
                return 0, [rows]  # which leaves out all of that session
            rows = rows[:named] + rows[named + 1 :]
            if not rows:
                return 0, []
        return 0, halves(rows)

    def _answer(self, body: bytes) -> Answer:
        """The server's answer about these rows: 202, 400, 403 or 413. Raises Stopped for any other."""
        if self.stopped:
            raise Stopped(self.stopped)
        content = gzip.compress(body, 6)
        for number in range(MAX_WAITS):
            answer = self._request(content)
            if answer.status in (202, 400, 403, 413):
                return answer
            if answer.status == 500:
                self._failures += 1
                if self._failures < MAX_FAILURES:
                    raise Failed(error_of(answer))
            if answer.status not in (429, 503):
                break
            wait_s = min(FIRST_WAIT_S * 2**number, MAX_WAIT_S) if answer.retry_after_s is None else answer.retry_after_s
            if wait_s > MAX_WAIT_S or time.monotonic() + wait_s + MIN_REQUEST_S > self._give_up_s:
                break
            self._sleep(wait_s)
        raise self._stop(error_of(answer))

    def _request(self, content: bytes) -> Answer:
        left_s = self._give_up_s - time.monotonic()
        if left_s < MIN_REQUEST_S:
            self.stopped = OUT_OF_TIME
            raise OutOfTime(OUT_OF_TIME)
        try:
            return self._connection.request(
                "POST", self._path, content, deadline_s=min(REQUEST_S, left_s), gzipped=True
            )
        except Unreachable as unreachable:
            raise self._stop(str(unreachable)) from None

    def _stop(self, reason: str) -> Stopped:
        self.stopped = reason[:MAX_REASON_CHARS]
        return Stopped(self.stopped)

    def _named(self, answer: Answer, rows: list[Row]) -> int | None:
        """Which of the rows the refusal names. It is logged; None when it names none of them."""
        reason = error_of(answer)[:MAX_REASON_CHARS]
        match = re.match(r"row (\d+): ", reason)
        if match is None or int(match[1]) >= len(rows):
            return None
        row = rows[int(match[1])]
        if answer.status == 403 and "session_id" in reason:
            self._sessions_of_others.add(row.session_id)
            self._note_refusal(f"session {row.session_id}: {reason}")
        else:
            self._note_refusal(f"{row.name}: {reason}")
        return int(match[1])

    def _without_nameless_fault(self, rows: list[Row], answer: Answer) -> list[list[Row]]:
        """What to send after a refusal that names no row: halves, until the rows that are to blame stand alone.

        Raises Stopped when the server refuses an upload without any row, too: then no row is to blame.
        """
        if answer.status == 403 or self._answer(b"[]").status != 202:
            raise self._stop(error_of(answer))
        if len(rows) > 1:
            return halves(rows)
        self._note_refusal(f"{rows[0].name}: {error_of(answer)[:MAX_REASON_CHARS]}")
        return []

    def _smaller(self, rows: list[Row]) -> list[list[Row]]:
        """What to send where all at once was too much."""
        if len(rows) > 1:
            return halves(rows)
        shorter = shortened(rows[0])
        if shorter is not None:
            return [[shorter]]
        self._note_refusal(f"{rows[0].name}: it is too long for the server, and cannot be cut")
        return []

    def _note_refusal(self, what: str) -> None:
        state.log(f"upload: refused {what}")
        if len(self.refusals) < MAX_REFUSALS_TOLD:
            self.refusals.append(what)


def halves(rows: list[Row]) -> list[list[Row]]:
    """The rows in two parts, without an empty one."""
    middle = len(rows) // 2
    return [part for part in (rows[:middle], rows[middle:]) if part]
