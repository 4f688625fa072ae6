"""From a transcript's line to the rows that are sent: parsed, redacted, written as bytes.

A line that cannot be understood becomes a row that says so, and its text is not sent.
"""

from __future__ import annotations

import json
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from ctrlb_agent import state
from ctrlb_agent.json_values import object_of, parsed, text_of
from ctrlb_agent.paths import root_of
from ctrlb_agent.redacting.redaction import redact_row
from ctrlb_agent.redacting.user_patterns import read_patterns
from ctrlb_agent.sessions.identity import host_name, identity_of_session
from ctrlb_agent.transcripts.rows import About, row
from ctrlb_agent.uploading import cursor
from ctrlb_agent.uploading.batches import Row, Unwritable, row_of
from ctrlb_agent.uploading.files import opened
from ctrlb_agent.uploading.long_texts import redacted_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ctrlb_agent.transcripts.rows import SessionFile
    from ctrlb_agent.uploading.cursor import Cursor, Line

LINES_BEFORE_CWD = 50
"""In how many of its first lines a transcript says where its session worked."""
MAX_CWD_LINE_BYTES = 1 << 20
LONG_LINE_BYTES = 4 << 20
MAX_LINE_S = 30.0
"""After so long, the blocks of a line that were not redacted yet are not sent."""


class Parser(Protocol):
    """What is asked of a parser of a client's transcripts."""

    def rows_of(
        self, line: Mapping[str, Any], number: int, about: About, memory: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """The rows of line `number`. `memory` goes from line to line, and must be able to go through JSON."""

    def about_file(self, path: str) -> SessionFile:
        """Whose transcript it is."""

    def first_memory(self, path: str) -> dict[str, Any]:
        """The memory with which its first line is to be read."""


class Mark(NamedTuple):
    """A place between two lines of a transcript."""

    offset: int
    number: int
    memory: str
    """The parser's, as JSON: it changes with every line."""


def parser_of(client: str) -> Parser:
    """The parser of `claude` or `codex`."""
    if client == "codex":
        from ctrlb_agent.transcripts import codex_rollout

        return codex_rollout
    from ctrlb_agent.transcripts import claude_transcript

    return claude_transcript


def about_of(path: str, parser: Parser) -> About:
    """What is known of all rows of the file. Of a session that no hook has seen, the run and the agent are empty."""
    owner = parser.about_file(path)
    known = (identity_of_session(owner.parent_session) if owner.agent_id else None) or identity_of_session(
        owner.session_id
    )
    if known:
        return About(host_name(), known.run, known.agent, known.root, *owner)
    cwd = first_cwd(path)
    return About(host_name(), "", "", root_of(cwd) if cwd else "", *owner)


def first_cwd(path: str) -> str:
    """The working directory that the transcript names first; empty when its first lines name none."""
    with opened(path) as stream:
        for _ in range(LINES_BEFORE_CWD):
            line = object_of(parsed(stream.readline(MAX_CWD_LINE_BYTES)))
            found = text_of(line.get("cwd")) or text_of(object_of(line.get("payload")).get("cwd"))
            if found:
                return found
    return ""


def new_rows(
    path: str, stream: IO[bytes], place: Cursor, parser: Parser, is_over: Callable[[], bool]
) -> Iterator[tuple[list[Row] | None, Mark]]:
    """The rows of each new line, with the place behind it; ends early once `is_over` says so.

    None in the place of rows comes before a line that may take long: what was read is to be sent first.
    """
    memory = json.loads(json.dumps(place.memory)) if place.offset else parser.first_memory(path)
    read = LineReader(parser, about_of(path, parser), place.client, memory)
    mark = Mark(place.offset, place.number, json.dumps(memory))
    for line in cursor.lines(stream, place.offset, place.number):
        if line.size > LONG_LINE_BYTES and mark.number > place.number:
            yield None, mark
            if is_over():
                break
        rows = read.rows_of(line)
        mark = Mark(line.end, line.number, json.dumps(read.memory))
        yield rows, mark
        if is_over():
            break
    if read.skipped:
        count, first = len(read.skipped), read.skipped[0]
        state.log(f"upload: {path}: skipped lines that are no JSON: {count}, the first is line {first}")


class LineReader:
    """Reads the lines of one transcript, in their order."""

    def __init__(self, parser: Parser, about: About, client: str, memory: dict[str, Any]) -> None:
        self._parser = parser
        self._about = about
        self._client = client
        self._own = read_patterns()
        self.memory = memory
        """The parser's, after the last line that was read."""
        self.skipped: list[int] = []
        """The numbers of lines that hold no JSON object."""

    def rows_of(self, line: Line) -> list[Row]:
        """The line's rows, as they are sent."""
        if line.is_too_long:
            return [self._unread(line, f"it has {line.size:,} bytes")]
        if line.value is None:
            self.skipped.append(line.number)
            return []
        try:
            found = self._parsed(line.value, line.number)
            give_up_s = time.monotonic() + MAX_LINE_S
            return [self._row(columns, line, time.monotonic() > give_up_s) for columns in found]
        except Unwritable as unwritable:
            return [self._unread(line, str(unwritable))]
        except Exception as error:  # a bug of ours on a line that nobody foresaw costs this line only
            return [self._unread(line, f"of a mistake of ours, {type(error).__name__}")]

    def _parsed(self, value: dict[str, Any], number: int) -> list[dict[str, Any]]:
        """The line's rows. A memory that was damaged on disk is given up if the line can be read without it."""
        try:
            return self._parser.rows_of(value, number, self._about, self.memory)
        except Exception:
            memory: dict[str, Any] = {}
            found = self._parser.rows_of(value, number, self._about, memory)
        state.log(f"upload: what was known of session {self._about.session_id} before line {number} is of no use")
        self.memory = memory
        return found

    def _row(self, columns: dict[str, Any], line: Line, is_late: bool) -> Row:
        if is_late:
            return self._unread(line, "it took too long", columns["block_idx"])
        return row_of(redacted_row(columns, lambda shorter: redact_row(shorter, self._own)))

    def _unread(self, line: Line, why: str, block_idx: int = 0) -> Row:
        state.log(f"upload: line {line.number} of session {self._about.session_id} was not read: {why}")
        text = f"[line {line.number} of the transcript was not read by ctrlb-agent: {why}]"
        return row_of(row(self._about, self._client, line.number, block_idx, role="system", body=text))
