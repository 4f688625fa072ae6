"""The process that a hook starts: at the end of a turn, of a subagent and of a session, and at the next start what was
missed. It outlives the hook and the client.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ctrlb_agent import state
from ctrlb_agent.client_folders import claude_subagents
from ctrlb_agent.settings import settings_of
from ctrlb_agent.uploading import cursor
from ctrlb_agent.uploading.files import opened
from ctrlb_agent.uploading.start import start_detached
from ctrlb_agent.uploading.upload import reason_of, upload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctrlb_agent.settings import Settings
    from ctrlb_agent.uploading.cursor import Cursor

BUDGET_S = 60.0
"""How long the process may upload."""
HALF_LINE_S = 1.0
"""How long it waits for the end of a last line that is half written."""
QUIET_S = 1.0
SETTLE_S = 5.0
"""After a session's end: how long its transcript is to stand still, and how long that is waited for."""
POLL_S = 0.05
HARD_END_S = 180.0
"""When it is ended whatever it does: later than a line takes that is begun just before its time is over."""
HALF_WRITTEN_S = 3_600.0
"""A file that was not put into its place after this time belongs to a process that was killed."""
SETTLE = "Settle"
"""The event of the process that waits for the last lines."""


def main(arguments: Sequence[str]) -> int:
    """What the process does: `<client> <hook as JSON>`. Never raises."""
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
        for left in _unfinished(settings):
            by_client.setdefault(left.client, []).append(left.path)
    for one, paths in by_client.items():
        upload(list(dict.fromkeys(paths)), one, settings, give_up_s - time.monotonic())
    if event in ("Stop", "SubagentStop") and wait_for_half_lines(files, HALF_LINE_S):
        upload(files, client, settings, give_up_s - time.monotonic())
    if event == "SessionEnd":  # whoever waits for this process need not wait for the last lines, too
        start_detached(client, {**hook, "hook_event_name": SETTLE})


def files_of(client: str, hook: Mapping[str, Any]) -> list[str]:
    """The transcripts that the hook is about: the session's, and its subagents'."""
    named = [hook.get("transcript_path"), hook.get("agent_transcript_path")]
    found = [path for path in named if isinstance(path, str) and path]
    if client == "claude" and found:
        found += claude_subagents(found[0])
    return list(dict.fromkeys(found))


def _unfinished(settings: Settings) -> list[Cursor]:
    """What earlier sessions left; also removes what processes that were killed left half written."""
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
    try:
        with opened(path) as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:  # gone, or empty
        return False
