"""Laptop mode's log file, which costs a request no more than the making of its line."""

import logging
import logging.handlers
import threading
import time
from collections import deque

FILE_BYTES = 10_000_000
FILES_KEPT = 3
WRITE_EVERY_S = 0.2


class LogFile(logging.Handler):
    """A file that is rotated. Lines gather and are written a few times a second, and at the end of the process.

    Written one by one, they would keep the threads of 16 agents waiting for each other as long as all else does.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._lines: deque[str] = deque()
        self._file = logging.handlers.RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=FILES_KEPT)
        self._flushing = threading.Lock()
        threading.Thread(target=self._flush_often, name="log", daemon=True).start()

    def handle(self, record: logging.LogRecord) -> bool:
        """Take the record without logging's lock: lines are made apart, and their queue is safe among threads."""
        kept = self.filter(record)
        if kept:
            self.emit(record if kept is True else kept)
        return bool(kept)

    def emit(self, record: logging.LogRecord) -> None:
        """Put the record's line with those that wait."""
        self._lines.append(self.format(record))

    def flush(self) -> None:
        """Write the lines that wait."""
        with self._flushing:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                self._file.handle(logging.makeLogRecord({"msg": "\n".join(lines)}))

    def _flush_often(self) -> None:
        while True:
            time.sleep(WRITE_EVERY_S)
            self.flush()
