"""One upload: what waits in the spool, then what is new in each transcript, to the server or, if need be, the spool.

A cursor moves only behind rows that the server has accepted or refused, or that the spool keeps. So a process may die
anywhere: the next one sends some rows again, which changes nothing, and loses none.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from ctrlb_agent import state
from ctrlb_agent.uploading import cursor, spool
from ctrlb_agent.uploading.batches import Row, Unwritable, batches, body_of, rows_in
from ctrlb_agent.uploading.files import opened
from ctrlb_agent.uploading.sending import OUT_OF_TIME, Sender, Sent, halves
from ctrlb_agent.uploading.transcript import new_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctrlb_agent.settings import Settings
    from ctrlb_agent.uploading.cursor import Cursor
    from ctrlb_agent.uploading.transcript import Parser

MAX_ROUNDS = 10
"""How often one upload goes back to a file that grew while it was read."""
MAX_RETRIED = 8
"""How many requests that the server failed on before are tried in one upload."""


class Transfer:
    """An upload under way, until `give_up_s` on the monotonic clock. Counts what becomes of the rows."""

    def __init__(
        self,
        client: str,
        settings: Settings,
        give_up_s: float,
        parser: Parser,
        *,
        spools: bool = True,
        progress: Callable[[int, int], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._settings = settings
        self._give_up_s = give_up_s
        self._parser = parser
        self._spools = spools
        self._progress = progress or (lambda read_bytes, sent_rows: None)
        self._sender = Sender(settings, give_up_s, sleep)
        self._spool_is_full = False
        self._retried = 0
        self.sent = self.spooled = self.refused = 0
        self.parents: list[str] = []
        """Transcripts of the sessions that those uploaded were forked from."""
        self.reason = ""
        """Why not everything is uploaded."""

    @property
    def stopped(self) -> str:
        """Why the server is not asked any more; empty while it is."""
        return self._sender.stopped

    @property
    def refusals(self) -> list[str]:
        """What was refused and why, the first few."""
        return self._sender.refusals

    def close(self) -> None:
        self._sender.close()

    def send_waiting(self) -> None:
        """Send what waits in the spool, oldest first, unless another process is at it.

        Raises OSError when the state folder cannot be read or written.
        """
        with suppress(state.Busy), state.locked(state.path("spool", "sending.lock"), 0):
            for file in spool.waiting(self._settings):
                if self._sender.stopped:
                    break
                self._send_entry(file)

    def upload_file(self, path: str) -> None:
        """Upload what is new in the transcript. Leaves it to the other process that is at it, if there is one.

        That one looks again when it has let go, so that nothing which was written meanwhile waits for another hook.
        Raises OSError when the file cannot be read, or the state folder cannot be written.
        """
        kept = cursor.file_of(path, self._settings)
        if self._spool_is_full or self._is_over():
            return
        for _ in range(MAX_ROUNDS):
            try:
                with state.locked(cursor.lock_of(kept), 0), opened(path) as stream:
                    goes_on = self._new_lines(path, stream, kept)
                    seen = stream.seek(0, os.SEEK_CUR)
            except state.Busy:
                return
            if not goes_on or os.path.getsize(path) == seen:
                return

    def _send_entry(self, file: str) -> None:
        try:
            entry = spool.read(file)
            rows = rows_in(entry.body)
        except (spool.Broken, ValueError, Unwritable) as broken:
            spool.set_aside(file, str(broken))
            return
        except FileNotFoundError:
            return
        if entry.failures:
            if not entry.is_due or self._retried == MAX_RETRIED:
                return
            self._retried += 1
        sent = self._sent(rows, failed_before=entry.failures > 0)
        if not sent.left and not sent.failing:
            os.unlink(file)
        elif sent.accepted or sent.failing or self._sender.broke_down:
            self._put_back(entry, sent)

    def _put_back(self, entry: spool.Entry, sent: Sent) -> None:
        """Have what is left of the entry wait behind all others; what the server fails on too long is set aside."""
        left, failing = list(sent.left), list(sent.failing)
        if left and self._sender.broke_down and entry.failures:  # it was well before it got these rows
            failing += halves(left.pop(0))
        blamed = [(body_of(part), len(part), entry.failures + 1 if len(part) == 1 else 1) for part in failing]
        if left and self._sender.broke_down and not entry.failures:
            blamed.append((body_of(left[0]), len(left.pop(0)), 1))
        others = [(body_of(part), len(part), entry.failures) for part in left]
        files = spool.replace(entry, self._settings, blamed + others)
        if entry.is_old:
            for file in files[: len(failing)]:
                spool.set_aside(file, sent.reason)

    def _new_lines(self, path: str, stream: IO[bytes], kept: str) -> bool:
        """Upload what is behind the cursor. False when it could not go on to the end.

        Until a file has its first row the cursor stays at its beginning: what a fork has from its parent can be told
        only once that is written.
        """
        known = cursor.load(kept) or cursor.fresh(path, self._client, self._settings)
        place = cursor.resumed(stream, known)
        if place.offset < known.offset:
            state.log(f"upload: {path} is not the file any more that was read; it is read from its beginning")
        if stream.seek(place.offset) == os.fstat(stream.fileno()).st_size:
            return True
        cursor.save(kept, place)  # rows that are sent where no cursor can be kept would be sent again and again
        has_rows = place.offset > 0
        for rows, mark in batches(new_rows(place.path, stream, place, self._parser, self._is_over)):
            has_rows = has_rows or bool(rows)
            if not self._dealt_with(rows):
                return False
            if mark is not None and has_rows:
                read_bytes = mark.offset - place.offset
                place = cursor.moved(stream, place, mark.offset, mark.number, json.loads(mark.memory))
                cursor.save(kept, place)
                self._remember_parent(place)
                self._progress(read_bytes, len(rows))
        return not self._is_over()

    def _dealt_with(self, rows: list[Row]) -> bool:
        """Send the rows, or have the spool keep them. False when neither was possible."""
        sent = self._sent(rows)
        waiting = [(part, 1) for part in sent.failing] + [(part, 0) for part in sent.left if self._spools]
        for part, failures in waiting:
            if not spool.put(self._settings, body_of(part), len(part), failures):
                self._spool_is_full = True
                self.reason = f"{sent.reason}; the spool is full"
                return False
            self.spooled += len(part)
        return self._spools or not sent.left

    def _sent(self, rows: list[Row], failed_before: bool = False) -> Sent:
        sent = self._sender.send(rows, failed_before)
        self.sent += sent.accepted
        self.refused += sent.refused
        self.reason = sent.reason or self.reason
        return sent

    def _is_over(self) -> bool:
        if time.monotonic() > self._give_up_s:
            self.reason = OUT_OF_TIME
        return self.reason == OUT_OF_TIME

    def _remember_parent(self, place: Cursor) -> None:
        """Note which transcript a fork's began with: the rows that both have are uploaded as that one's only."""
        parent = os.path.join(os.path.dirname(place.path), f"{place.memory.get('parent')}.jsonl")
        if parent not in self.parents and os.path.isfile(parent):
            self.parents.append(parent)
