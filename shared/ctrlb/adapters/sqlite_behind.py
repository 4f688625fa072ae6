"""Writes that nobody waits for: what makes later queries faster, and may be left undone when the process ends."""

import sqlite3
import threading
from collections.abc import Callable, Hashable
from typing import TypeAlias

from ctrlb.domain.errors import Unavailable

Step: TypeAlias = Callable[[sqlite3.Connection], bool]
"""Does a part of the work, some milliseconds of it, and returns whether there is more."""


class WritesBehind:
    """Work done a step at a time, each a write among the others, on a thread that lives while there is some."""

    def __init__(self, write: Callable[[Step], bool]) -> None:
        self._write = write
        self._steps: dict[Hashable, Step] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, name: Hashable, step: Step) -> None:
        """Have the step taken soon, and again until it returns False. Of work with one name, the last step is taken."""
        with self._lock:
            if self._closed:
                return
            self._steps[name] = step
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="writes behind", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Take no further step. Returns when none is under way."""
        with self._lock:
            self._closed = True
            self._steps.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while work := self._next():
            name, step = work
            try:
                is_more = self._write(step)
            except (Unavailable, sqlite3.Error):
                continue  # the disk is full, say; the work is asked for again with the next write
            if is_more:
                self._add_again(name, step)

    def _add_again(self, name: Hashable, step: Step) -> None:
        with self._lock:
            if not self._closed:
                self._steps.setdefault(name, step)

    def _next(self) -> tuple[Hashable, Step] | None:
        with self._lock:
            if not self._steps:
                self._thread = None
                return None
            name = next(iter(self._steps))
            return name, self._steps.pop(name)
