"""Sending rows: what each answer of the server means for them.

Rows that the server refuses are left out, named in the log without their text, and the others go on. Where it fails on
rows, and takes an upload without any, the rows are to blame: halves are sent, until those that it fails on stand alone.
Whatever says that the server takes nothing at the moment stops the sending. What is left is the caller's to keep.
"""

from __future__ import annotations

import gzip
import re
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent import calls, state
from ctrlb_agent.connection import Answer, Connection, Unreachable, error_of, was_cut
from ctrlb_agent.uploading.batches import Row, body_of, shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctrlb_agent.settings import Settings

REQUEST_S = 30.0
"""The longest that one request may take."""
MIN_REQUEST_S = 0.05
"""With less time left nothing is sent."""
LEAST_WAIT_S = 0.05
FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
MAX_WAITS = 60
"""How often in a row the server may put off the same rows, if there is time for it at all."""
MAX_NAMED_REFUSALS = 8
"""After so many refused rows in one request its halves are sent, so that bad rows do not have all others sent again."""
FAILURES = (500, 502, 504)
"""Answers that may be due to the rows: the server, or what stands before it, died of them or took too long."""
MAX_FAILURES_IN_A_ROW = 12
"""After so many failures without a row that was accepted, the rows are not to blame, and nothing more is tried."""
MAX_HALVED = 24
"""How often one sender halves what the server fails on. What it fails on after that is left whole."""
MAX_REASON_CHARS = 200
MAX_REFUSALS_TOLD = 20
OUT_OF_TIME = "no time was left"


class Sent(NamedTuple):
    """What became of the rows."""

    accepted: int
    refused: int
    left: list[list[Row]]
    """Those that the server has not got, or not for sure, in the requests that are to be tried next."""
    failing: list[list[Row]]
    """Requests on which the server fails while it takes others."""
    reason: str
    """Why there are such."""


class Stopped(Exception):
    """The server takes nothing at the moment. The text says why."""


class Failed(Exception):
    """The server fails on these rows; it takes others. The text says how."""


class BrokenOff(Exception):
    """The connection was cut before the answer came."""


class Sender:
    """Sends to one server until `give_up_s` on the monotonic clock."""

    def __init__(self, settings: Settings, give_up_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._path = calls.records_path(settings.dataset)
        self._connection = Connection(settings.url, settings.key)
        self._give_up_s = give_up_s
        self._sleep = sleep
        self._failures_in_a_row = 0
        self._halved = 0
        self._sessions_of_others: set[str] = set()
        self.stopped = ""
        """Why the server is not asked any more."""
        self.broke_down = False
        """Whether it was stopped by a failure that may be due to the last rows."""
        self.refusals: list[str] = []
        """What was refused and why, the first few."""

    def close(self) -> None:
        self._connection.close()

    def send(self, rows: list[Row], failed_before: bool = False) -> Sent:
        """Send the rows. After one that stops it, no other request is made.

        Rows on which the server failed before are sent only once it has taken an upload without any.
        """
        todo = deque([rows] if rows else [])
        accepted = refused = 0
        failing: list[list[Row]] = []
        reason = ""
        try:
            if failed_before and rows and not self._is_alive():
                self.broke_down = False
                raise self._stop(self.stopped or "the server takes no upload")
            while todo:
                wanted = [row for row in todo[0] if row.session_id not in self._sessions_of_others]
                refused += len(todo[0]) - len(wanted)
                todo[0] = wanted
                try:
                    taken, parts = self._offer(wanted) if wanted else (0, [])
                except Failed as failed:
                    reason = str(failed)
                    todo.popleft()
                    (todo if self._may_halve(wanted) else failing).extend(self._blamed(wanted, reason))
                    continue
                accepted += taken
                refused += len(wanted) - taken - sum(len(rest) for rest in parts)
                todo.popleft()
                todo.extendleft(reversed(parts))
        except Stopped as stopped:
            left = list(todo) if accepted else [[row for part in [*todo, *failing] for row in part]]
            return Sent(accepted, refused, left, failing if accepted else [], str(stopped))
        return Sent(accepted, refused, [], failing, reason if failing else "")

    def _may_halve(self, rows: list[Row]) -> bool:
        return len(rows) > 1 and self._halved < MAX_HALVED

    def _blamed(self, rows: list[Row], reason: str) -> list[list[Row]]:
        """What to make of rows on which the server failed: halves, or all of them in one."""
        if self._may_halve(rows):
            self._halved += 1
            return halves(rows)
        others = f" and {len(rows) - 1} others" if len(rows) > 1 else ""
        state.log(f"upload: the server fails on {rows[0].name}{others}, to be tried again: {reason}")
        return [rows]

    def _offer(self, rows: list[Row]) -> tuple[int, list[list[Row]]]:
        """How many rows were accepted, and what is to be sent of the others. Raises Failed, and Stopped."""
        for _ in range(MAX_NAMED_REFUSALS):
            try:
                answer = self._answer(body_of(rows))
            except BrokenOff as broken_off:
                raise self._failure(str(broken_off)) from None
            if answer.status == 202:
                self._failures_in_a_row = 0
                return len(rows), []
            if answer.status == 413:
                return 0, self._smaller(rows)
            named = self._named(answer, rows) if answer.status in (400, 403) else None
            if answer.status in FAILURES or (answer.status == 403 and named is None):
                raise self._failure(error_of(answer))
            if answer.status not in (400, 403):
                raise self._stop(error_of(answer))
            if named is None:
                return 0, self._without_nameless_fault(rows, answer)
            if answer.status == 403 and rows[named].session_id in self._sessions_of_others:
                return 0, [rows]  # which leaves out all of that session
            rows = rows[:named] + rows[named + 1 :]
            if not rows:
                return 0, []
        return 0, halves(rows)

    def _answer(self, body: bytes) -> Answer:
        """The server's answer, after the waits that it asks for. Raises Stopped, and BrokenOff."""
        if self.stopped:
            raise Stopped(self.stopped)
        content = gzip.compress(body, 6)
        for number in range(MAX_WAITS):
            answer = self._request(content)
            if answer.status not in (429, 503):
                return answer
            own_s = min(FIRST_WAIT_S * 2**number, MAX_WAIT_S)
            asked_s = own_s if answer.retry_after_s is None else answer.retry_after_s
            wait_s = max(asked_s, min(LEAST_WAIT_S * 2**number, FIRST_WAIT_S))
            if wait_s > MAX_WAIT_S or time.monotonic() + wait_s + MIN_REQUEST_S > self._give_up_s:
                break
            self._sleep(wait_s)
        raise self._stop(error_of(answer))

    def _request(self, content: bytes) -> Answer:
        left_s = self._give_up_s - time.monotonic()
        if left_s < MIN_REQUEST_S:
            raise self._stop(OUT_OF_TIME)
        try:
            return self._connection.request(
                "POST", self._path, content, deadline_s=min(REQUEST_S, left_s), gzipped=True
            )
        except Unreachable as unreachable:
            if was_cut(unreachable.__cause__):
                raise BrokenOff(str(unreachable)) from None
            self.broke_down = left_s >= REQUEST_S and isinstance(unreachable.__cause__, socket.timeout)
            raise self._stop(str(unreachable)) from None

    def _failure(self, reason: str) -> Failed | Stopped:
        """What the server's failure on some rows means: theirs, where it takes an upload without any."""
        self._failures_in_a_row += 1
        if self._failures_in_a_row < MAX_FAILURES_IN_A_ROW and self._is_alive():
            return Failed(reason[:MAX_REASON_CHARS])
        self.broke_down = True
        return self._stop(reason)

    def _is_alive(self) -> bool:
        """Whether the server takes an upload of no rows."""
        try:
            return self._answer(b"[]").status == 202
        except (Stopped, BrokenOff):
            return False

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
        if not self._is_alive():
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
