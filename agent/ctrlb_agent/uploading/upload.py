"""One upload: what waits in the spool, then what is new in some transcripts, within a time."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent import state
from ctrlb_agent.uploading import cursor
from ctrlb_agent.uploading.transcript import parser_of
from ctrlb_agent.uploading.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctrlb_agent.settings import Settings
    from ctrlb_agent.uploading.transcript import Parser


class Report(NamedTuple):
    """What became of the rows."""

    rows_sent: int
    rows_spooled: int
    rows_refused: int
    reason: str
    """Why not everything was uploaded; empty when it was."""

    def __str__(self) -> str:
        counts = ((self.rows_sent, "sent"), (self.rows_spooled, "kept for later"), (self.rows_refused, "refused"))
        said = ", ".join(f"{count:,} {what}" for count, what in counts if count) or "none sent"
        return f"rows: {said}" + (f"; not all, because: {self.reason}" if self.reason else "")


def upload(
    paths: Sequence[str],
    client: str,
    settings: Settings,
    budget_s: float,
    parser: Parser | None = None,
) -> Report:
    """Send what waits in the spool, then what is new in the transcripts, within `budget_s` seconds. Never raises.

    What cannot be sent goes to the spool.
    """
    give_up_s = time.monotonic() + budget_s
    transfer = Transfer(client, settings, give_up_s, parser or parser_of(client))
    reason = ""
    try:
        for path in paths:
            cursor.note(path, client, settings)  # in case this process does not come to it
        transfer.send_waiting()
        todo = list(dict.fromkeys(paths))
        for path in todo:
            reason = _uploaded(transfer, path) or reason
            todo += [parent for parent in transfer.parents if parent not in todo]
    except Exception as error:  # whatever it is, it must not cost a user more than the upload
        reason = reason_of(error)
    finally:
        transfer.close()
    report = Report(transfer.sent, transfer.spooled, transfer.refused, reason or transfer.reason)
    if report.reason or report.rows_refused:
        state.log(f"upload: {report}")
    return report


def _uploaded(transfer: Transfer, path: str) -> str:
    """Upload the transcript; say why it could not be read, if so."""
    try:
        transfer.upload_file(path)
    except FileNotFoundError:  # not written yet, or gone
        return ""
    except Exception as error:  # the others are uploaded none the less
        return reason_of(error)
    return ""


def reason_of(error: Exception) -> str:
    """An error of the machine in its words. Another is a mistake of ours, whose text may hold some of a session."""
    if isinstance(error, OSError):
        return ": ".join(str(one) for one in (error.strerror, error.filename) if one) or type(error).__name__
    where = error.__traceback__
    while where and where.tb_next:
        where = where.tb_next
    place = f"{os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}" if where else ""
    return f"a mistake of ours, {type(error).__name__} at {place}"
