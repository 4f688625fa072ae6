"""Laptop mode's log file."""

import logging
from pathlib import Path

from ctrlb.edge.log_file import LogFile


def test_lines_of_many_requests_are_written_in_order_at_one_flush(tmp_path: Path) -> None:
    path = tmp_path / "ctrlb.log"
    log = LogFile(str(path))
    for number in range(500):
        log.handle(logging.makeLogRecord({"msg": f"claim {number}"}))
    log.flush()
    assert path.read_text().splitlines() == [f"claim {number}" for number in range(500)]


def test_the_end_of_the_process_writes_the_lines_that_wait(tmp_path: Path) -> None:
    path = tmp_path / "ctrlb.log"
    log = LogFile(str(path))
    log.handle(logging.makeLogRecord({"msg": "claim 200"}))
    logging.shutdown([lambda: log])  # as at exit, where logging keeps weak references
    assert path.read_text() == "claim 200\n"
