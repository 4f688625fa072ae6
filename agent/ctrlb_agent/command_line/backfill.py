"""`python3 -m ctrlb_agent backfill`: upload the sessions that are on this machine already, oldest first.

It can be broken off at any time, and goes on where it was when it is run again.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from ctrlb_agent.client_folders import claude_folder, claude_subagents, codex_folder
from ctrlb_agent.command_line.place import reached
from ctrlb_agent.command_line.streams import say, say_aside
from ctrlb_agent.uploading import cursor
from ctrlb_agent.uploading.files import opened
from ctrlb_agent.uploading.transcript import first_cwd, new_rows, parser_of
from ctrlb_agent.uploading.transfer import Transfer
from ctrlb_agent.uploading.upload import reason_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from ctrlb_agent.settings import Settings

DONE, NOT_DONE = 0, 2
LINE_EVERY_S = 5.0
"""How often progress is said where it cannot be written over."""
REDRAWN_EVERY_S = 0.2


class Session(NamedTuple):
    """A transcript on this machine."""

    written_s: float
    """When it was last written to, since the epoch."""
    path: str
    client: str


class Progress:
    """Says how far it is: on a terminal on one line that changes, elsewhere now and then on a new one."""

    def __init__(self, files: int, stream: IO[str]) -> None:
        self._of_files = files
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._began_s = self._said_s = time.monotonic()
        self.files = self.bytes = self.rows = 0

    def add(self, read_bytes: int, rows: int) -> None:
        """Some of a file is done."""
        self.bytes += read_bytes
        self.rows += rows
        self._say()

    def file_done(self) -> None:
        """Nothing more is to be done for a file."""
        self.files += 1
        self._say()

    def wait(self, wait_s: float) -> None:
        """Wait as the server asked, and say so."""
        self._write(f"the server asks to come back in {wait_s:.0f} s")
        time.sleep(wait_s)

    def finish(self) -> None:
        """Say how far it got."""
        self._said_s = float("-inf")
        self._say()
        if self._is_terminal:
            self._stream.write("\n")

    def _say(self) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s < (REDRAWN_EVERY_S if self._is_terminal else LINE_EVERY_S):
            return
        self._said_s = now_s
        rate = self.bytes / max(now_s - self._began_s, 0.001)
        said = f"{self.files}/{self._of_files} files, {self.rows:,} rows, {shown(self.bytes)}, {shown(rate)}/s"
        self._write(said)

    def _write(self, said: str) -> None:
        with suppress(OSError):  # nobody reads it any more
            self._stream.write(f"\r\033[K{said}" if self._is_terminal else f"{said}\n")
            self._stream.flush()


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Do what the command line says. 0 when all is uploaded, 2 when something is not; a summary says what."""
    settings = reached(options, environ, needs_server=not options.dry_run)
    clients = [client for client in ("claude", "codex") if getattr(options, client)] or ["claude", "codex"]
    sessions = sorted(_wanted(found(clients, environ), options.since, options.project))
    progress = Progress(len(sessions), sys.stderr)
    try:
        return (_counted if options.dry_run else _uploaded)(sessions, settings, progress)
    except KeyboardInterrupt:
        progress.finish()
        say_aside("broken off; run the same command again to go on from here")
        raise


def found(clients: Iterable[str], environ: Mapping[str, str]) -> Iterator[Session]:
    """The clients' transcripts on this machine, those of subagents too."""
    for client in clients:
        for path in (_claude_paths if client == "claude" else _codex_paths)(environ):
            with suppress(OSError):  # gone meanwhile
                about = os.stat(path)
                if stat.S_ISREG(about.st_mode):
                    yield Session(about.st_mtime, path, client)


def shown(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def _claude_paths(environ: Mapping[str, str]) -> Iterator[str]:
    for project in _folder(os.path.join(claude_folder(environ), "projects")):
        for path in _folder(project):
            if path.endswith(".jsonl"):
                yield path
                yield from claude_subagents(path)


def _codex_paths(environ: Mapping[str, str]) -> Iterator[str]:
    for part in ("sessions", "archived_sessions"):
        for folder, _, names in os.walk(os.path.join(codex_folder(environ), part)):
            for name in names:
                if name.startswith("rollout-") and name.endswith(".jsonl"):
                    yield os.path.join(folder, name)


def _folder(path: str) -> list[str]:
    try:
        return [os.path.join(path, name) for name in sorted(os.listdir(path))]
    except OSError:  # no such folder, or a file
        return []


def _wanted(sessions: Iterable[Session], since: datetime | None, project: str | None) -> Iterator[Session]:
    """Those written to since then, of sessions that began in the project's folder or below it."""
    top = os.path.realpath(project) if project else None
    for session in sessions:
        if since and session.written_s < since.timestamp():
            continue
        if top is None or _is_below(top, session.path):
            yield session


def _is_below(top: str, path: str) -> bool:
    with suppress(OSError):
        cwd = first_cwd(path)
        return bool(cwd) and (os.path.realpath(cwd) + os.sep).startswith(top.rstrip(os.sep) + os.sep)
    return False


def _uploaded(sessions: Sequence[Session], settings: Settings, progress: Progress) -> int:
    """Upload the sessions, waiting for a server that asks for patience; what cannot be sent stays for the next time."""
    transfers = {
        client: Transfer(
            client,
            settings,
            float("inf"),
            parser_of(client),
            spools=False,
            progress=progress.add,
            sleep=progress.wait,
        )
        for client in sorted({session.client for session in sessions})
    }
    faults: list[str] = []
    try:
        for transfer in transfers.values():
            transfer.send_waiting()
        for session in sessions:
            if any(transfer.stopped for transfer in transfers.values()):
                break
            try:
                transfers[session.client].upload_file(session.path)
            except Exception as error:  # the others are uploaded none the less
                faults.append(reason_of(error))
            progress.file_done()
    except OSError as error:
        faults.append(reason_of(error))
    finally:
        for transfer in transfers.values():
            transfer.close()
    progress.finish()
    return _summed_up(list(transfers.values()), faults)


def _summed_up(transfers: list[Transfer], faults: list[str]) -> int:
    sent, refused = sum(one.sent for one in transfers), sum(one.refused for one in transfers)
    reasons = list(dict.fromkeys([one.reason for one in transfers if one.reason] + faults))
    say(f"uploaded {sent:,} rows, {refused:,} were refused")
    for refusal in [refusal for one in transfers for refusal in one.refusals]:
        say(f"refused: {refusal}")
    for reason in reasons:
        say(f"not uploaded: {reason}")
    if reasons:
        say("run the same command again to go on from here")
    return NOT_DONE if refused or reasons else DONE


def _counted(sessions: Sequence[Session], settings: Settings, progress: Progress) -> int:
    """Say how much would be uploaded, without sending or keeping anything."""
    sent_bytes = 0
    files = 0
    for session in sessions:
        before = progress.rows
        with suppress(FileNotFoundError), opened(session.path) as stream:
            known = cursor.load(cursor.file_of(session.path, settings))
            place = cursor.resumed(stream, known or cursor.fresh(session.path, session.client, settings))
            offset = place.offset
            for rows, mark in new_rows(session.path, stream, place, parser_of(session.client), lambda: False):
                sent_bytes += sum(len(row.data) for row in rows or ())
                progress.add(mark.offset - offset, len(rows or ()))
                offset = mark.offset
        files += progress.rows > before
        progress.file_done()
    progress.finish()
    say(f"would upload {progress.rows:,} rows of {files:,} files, {shown(sent_bytes)} before compression")
    return DONE
