"""Uploading sessions: at the end of a turn, of a subagent and of a session, and at the next start what was missed.

A hook does not wait for it: the uploading is done by a process of its own, which outlives the hook and the client.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import state

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    from ctrlb_agent.settings import Settings
    from ctrlb_agent.uploading.cursor import Cursor
    from ctrlb_agent.uploading.transcript import Parser
    from ctrlb_agent.uploading.transfer import Transfer

BUDGET_S = 60.0
"""How long the process that a hook starts may upload."""
HALF_LINE_S = 1.0
"""How long that process waits for the end of a last line that is half written."""
QUIET_S = 1.0
SETTLE_S = 5.0
"""After a session's end: how long its transcript is to stand still, and how long that is waited for."""
POLL_S = 0.05
HARD_END_S = 180.0
"""When that process is ended whatever it does: later than a line takes that is begun just before its time is over."""
HALF_WRITTEN_S = 3_600.0
"""A file that was not put into its place after this time belongs to a process that was killed."""
SETTLE = "Settle"
"""The event of the process that waits for the last lines."""
START = """import sys
sys.path.insert(0, sys.argv[1])
from ctrlb_agent.uploading.upload import main
sys.exit(main(sys.argv[2:]))"""


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
    from ctrlb_agent.uploading import cursor
    from ctrlb_agent.uploading.transcript import parser_of
    from ctrlb_agent.uploading.transfer import Transfer

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
        return f"{error.strerror}: {error.filename}"
    where = error.__traceback__
    while where and where.tb_next:
        where = where.tb_next
    place = f"{os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}" if where else ""
    return f"a mistake of ours, {type(error).__name__} at {place}"


def files_of(client: str, hook: Mapping[str, Any]) -> list[str]:
    """The transcripts that the hook is about: the session's, and its subagents'."""
    named = [hook.get("transcript_path"), hook.get("agent_transcript_path")]
    found = [path for path in named if isinstance(path, str) and path]
    if client == "claude" and found:
        found += subagents_of(found[0])
    return list(dict.fromkeys(found))


def subagents_of(transcript: str) -> list[str]:
    """The transcripts of the subagents of a Claude Code session."""
    top = os.path.join(os.path.splitext(transcript)[0], "subagents")
    return sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(".jsonl")
    )


def start_detached(client: str, hook: Mapping[str, Any]) -> subprocess.Popen[bytes] | None:
    """Upload what the hook is about in a process that outlives the hook and its client; None when it cannot start.

    The process ends when it is through, after 60 s at the latest. Settings are those of this process's environment.
    """
    import json
    import subprocess

    told = {
        name: hook[name] for name in ("hook_event_name", "transcript_path", "agent_transcript_path") if name in hook
    }  # not all of it: other users can see a process's arguments, and a hook holds what was said
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        folder_of_state = state.home()
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", START, folder, client, json.dumps(told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder_of_state,
            env={**os.environ, "CTRLB_AGENT_HOME": folder_of_state},
            start_new_session=True,
        )
    except OSError as error:
        state.log(f"upload: could not be started: {error}")
        return None


def main(arguments: Sequence[str]) -> int:
    """What the detached process does: `<client> <hook as JSON>`. Never raises."""
    import json
    import signal

    from ctrlb_agent.settings import settings_of

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, HARD_END_S)
    try:
        client, hook = arguments[0], json.loads(arguments[1])
        settings = settings_of(os.environ)
        if settings.are_complete:
            _for_hook(client, hook, settings)
    except Exception as error:
        state.log(f"upload: {reason_of(error)}")
    return 0


def _for_hook(client: str, hook: Mapping[str, Any], settings: Settings) -> None:
    give_up_s = time.monotonic() + BUDGET_S
    event = hook.get("hook_event_name")
    files = files_of(client, hook)
    if event == SETTLE:
        wait_until_quiet(files, QUIET_S, SETTLE_S)
    by_client = {client: files}
    if event == "SessionStart":
        for cursor in _unfinished(settings):
            by_client.setdefault(cursor.client, []).append(cursor.path)
    for one, paths in by_client.items():
        upload(list(dict.fromkeys(paths)), one, settings, give_up_s - time.monotonic())
    if event in ("Stop", "SubagentStop") and wait_for_half_lines(files, HALF_LINE_S):
        upload(files, client, settings, give_up_s - time.monotonic())
    if event == "SessionEnd":  # whoever waits for this process need not wait for the last lines, too
        start_detached(client, {**hook, "hook_event_name": SETTLE})


def _unfinished(settings: Settings) -> list[Cursor]:
    """What earlier sessions left; also removes what processes that were killed left half written."""
    from ctrlb_agent.uploading import cursor

    try:
        for folder in ("cursors", "spool"):
            remove_half_written(os.path.dirname(state.path(folder, "any")))
        return cursor.unfinished(settings)
    except OSError as error:
        state.log(f"upload: what earlier sessions left cannot be told: {reason_of(error)}")
        return []


def remove_half_written(folder: str) -> None:
    for name in os.listdir(folder):
        file = os.path.join(folder, name)
        with suppress(FileNotFoundError):  # another process has put it into its place
            if name.endswith(".new") and time.time() - os.path.getmtime(file) > HALF_WRITTEN_S:
                os.unlink(file)


def wait_until_quiet(paths: Sequence[str], quiet_s: float, most_s: float) -> None:
    """Return once no file has changed for `quiet_s`, after `most_s` at the latest."""
    now_s = time.monotonic()
    give_up_s, since_s, seen = now_s + most_s, now_s, [_size_of(path) for path in paths]
    while now_s < min(give_up_s, since_s + quiet_s):
        time.sleep(POLL_S)
        now_s = time.monotonic()
        sizes = [_size_of(path) for path in paths]
        if sizes != seen:
            since_s, seen = now_s, sizes


def wait_for_half_lines(paths: Sequence[str], most_s: float) -> bool:
    """Whether a file ended in half a line; returns when none does any more, after `most_s` at the latest."""
    give_up_s = time.monotonic() + most_s
    halves = [path for path in paths if _ends_in_half_a_line(path)]
    while any(map(_ends_in_half_a_line, halves)) and time.monotonic() < give_up_s:
        time.sleep(POLL_S)
    return bool(halves)


def _size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # not written yet, or gone
        return 0


def _ends_in_half_a_line(path: str) -> bool:
    from ctrlb_agent.uploading.files import opened

    try:
        with opened(path) as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:  # gone, or empty
        return False
