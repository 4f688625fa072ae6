"""The search index of a dataset in SQLite: its words and its commands.

Python cuts the words (`ctrlb.domain.words`) and FTS5 only keeps them: its `ascii` tokenizer, given `.` and `+`,
cuts what is already cut at the spaces between. So the semantics are the reference's, to the letter.

- `words_<dataset>` has three columns: `runs`, `wholes` (what a term with a dotted word is compared with), and
  `facets`, one word each for the session, the user and the tool, so that filters are part of the match.
- `commands_<dataset>` has the three-letter pieces of every tool call's folded command, and `session_commands`
  the command itself. Calls that have some pieces of a text are looked up, and the text is looked for in each;
  for a text that is shorter than a piece, `session_commands` is read through.

However long a term or a text is, only so much of it is looked up, for what that costs grows with the product of its
length and that of the longest row.

Both are contentless: to remove a row, FTS5 has to be told the very words that it was added with.

The id of a row begins with its time, so that the newest hits are read first and the others not at all. Within
a unit of time, ids are in no order, and a unit that is full spills into the next: `IdRange` says how far around
the last id of a page the page's rows can lie.
"""

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ctrlb.domain.rows import SessionRow
from ctrlb.domain.session_text import fold, searchable_words
from ctrlb.domain.words import Term, has_term, term_of

TIME_SHIFT = 20
"""A unit of time is 2**20 µs, about a second: the finer, the larger the index, which keeps differences of ids."""
SLOT_BITS = 12
SLOTS = 1 << SLOT_BITS
LAST_ID = 2**63 - 1
PIECE_CHARS = 3
MAX_PIECES = 8
"""So many pieces of a text are looked up."""
MAX_PHRASE_WORDS = 16
"""So many words of a term are looked up; of a longer one, the rest is looked for in the rows that have these."""
MERGED_PAGES = 256
"""A step of merging: of 4 KiB each, so some 10 ms, for which an upload may have to wait."""

_CREATE = (
    """
CREATE VIRTUAL TABLE words_{dataset} USING fts5(
    runs, wholes, facets, content = '', columnsize = 0, tokenize = "ascii tokenchars '.+'"
)""",
    """
CREATE VIRTUAL TABLE commands_{dataset} USING fts5(
    command, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1'
)""",
)
# Each upload adds a segment, in which every search looks. They are merged 16 at once, in steps, behind the uploads; an
# upload that finds 32 of a size, for the steps were not taken, merges them itself.
_MERGE_BEHIND = tuple(
    f"INSERT INTO words_{{dataset}} (words_{{dataset}}, rank) VALUES ('{option}', {value})"
    for option, value in (("automerge", 0), ("usermerge", 16), ("crisismerge", 32))
)
_MERGES_BEHIND = "SELECT 1 FROM words_{dataset}_config WHERE k = 'automerge' AND v = 0"
_MERGE = f"INSERT INTO words_{{dataset}} (words_{{dataset}}, rank) VALUES ('merge', {MERGED_PAGES})"
_LAST_IDS = f"""
SELECT unit.value, (
    SELECT max(id) FROM session_rows WHERE id BETWEEN unit.value << {SLOT_BITS} AND (unit.value + 1 << {SLOT_BITS}) - 1
)
FROM json_each(?) AS unit
"""
_ADD_WORDS = "INSERT INTO words_{dataset} (rowid, runs, wholes, facets) VALUES (?, ?, ?, ?)"
_REMOVE_WORDS = (
    "INSERT INTO words_{dataset} (words_{dataset}, rowid, runs, wholes, facets) VALUES ('delete', ?, ?, ?, ?)"
)
_ADD_COMMAND = "INSERT INTO commands_{dataset} (rowid, command) VALUES (?, ?)"
_REMOVE_COMMAND = "INSERT INTO commands_{dataset} (commands_{dataset}, rowid, command) VALUES ('delete', ?, ?)"
_KEEP_COMMAND = "INSERT INTO session_commands (dataset, id, folded) VALUES ({dataset}, ?, ?)"
_DROP_COMMAND = "DELETE FROM session_commands WHERE dataset = {dataset} AND id = ? AND folded = ?"

_OF_USER = """(:user IS NULL OR :user = (
    SELECT owner FROM sessions JOIN session_rows ON session_rows.session = sessions.id WHERE session_rows.id = {id}
))"""
WORD_HITS = (
    "SELECT rowid AS id FROM words_{dataset} WHERE words_{dataset} MATCH :match AND rowid BETWEEN :low AND :high"
)
LONG_PHRASE_HITS = """
SELECT words.rowid AS id FROM words_{dataset} AS words
CROSS JOIN session_rows ON session_rows.id = words.rowid
CROSS JOIN session_texts ON session_texts.number = session_rows.text
WHERE words_{dataset} MATCH :match AND words.rowid BETWEEN :low AND :high
    AND has_phrase(session_texts.command, session_texts.body, :text)
"""
COMMAND_HITS = f"""
SELECT commands.rowid AS id FROM commands_{{dataset}} AS commands
CROSS JOIN session_commands ON session_commands.dataset = {{dataset}} AND session_commands.id = commands.rowid
WHERE commands_{{dataset}} MATCH :match AND commands.rowid BETWEEN :low AND :high
    AND instr(session_commands.folded, :text) AND {_OF_USER.format(id="session_commands.id")}
"""
SHORT_COMMAND_HITS = f"""
SELECT id FROM session_commands WHERE dataset = {{dataset}} AND id BETWEEN :low AND :high
    AND instr(folded, :text) AND {_OF_USER.format(id="session_commands.id")}
"""


class Entry(NamedTuple):
    """What the index keeps of a row."""

    runs: str
    wholes: str
    facets: str
    command: str
    """The folded command of a tool call; empty for other rows."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids among which the rows of a page are, both ends included."""

    low: int = 0
    high: int = LAST_ID

    @classmethod
    def around(cls, last_id: int, newest: bool, displaced: int) -> "IdRange":
        """What to sort when the page's last row by id is `last_id`, and rows are displaced by `displaced` units.

        A row's time is in the unit of its id or up to `displaced` units before it. So a row beyond the
        range cannot have a time within that of the rows up to `last_id`.
        """
        unit = last_id >> SLOT_BITS
        if newest:
            return cls(low=max(0, unit - displaced) << SLOT_BITS)
        return cls(high=((unit + displaced + 1) << SLOT_BITS) - 1)


EVERYWHERE = IdRange()


class Ids:
    """Gives out the ids of the rows that a transaction adds."""

    def __init__(self, connection: sqlite3.Connection, times_us: Iterable[int]) -> None:
        """`times_us` are those of the rows to come: the units of time that they are in are looked up at once."""
        self._connection = connection
        self._next_slots: dict[int, int] = {}
        self._look_up({ts_us >> TIME_SHIFT for ts_us in times_us})
        self.displaced = 0
        """The most units of time that a row given an id is displaced by."""

    def take(self, ts_us: int) -> int:
        """An id that no row has, in the row's unit of time or the first after it that is not full."""
        unit = own_unit = ts_us >> TIME_SHIFT
        while (slot := self._next_slots[unit]) == SLOTS:
            unit += 1
            if unit not in self._next_slots:
                self._look_up({unit})
        self._next_slots[unit] = slot + 1
        self.displaced = max(self.displaced, unit - own_unit)
        return unit << SLOT_BITS | slot

    def _look_up(self, units: set[int]) -> None:
        for unit, last_id in self._connection.execute(_LAST_IDS, (json.dumps(list(units)),)):
            self._next_slots[unit] = 0 if last_id is None else (last_id & SLOTS - 1) + 1


def entry_of(row: SessionRow, user: str) -> Entry:
    """What the index keeps of the row of a session of `user`."""
    words = searchable_words(row.command, row.body)
    facets = f"{_facet('session', row.session_id)} {_facet('user', user)} {_facet('tool', row.tool_name)}"
    return Entry(words.runs, words.wholes, facets, command_text(row.command) if row.block_type == "tool_use" else "")


def create_index(connection: sqlite3.Connection, dataset: int) -> None:
    """Make the empty index of a new dataset."""
    for statement in (*_CREATE, *_MERGE_BEHIND):
        connection.execute(statement.format(dataset=dataset))


def merge_segments(connection: sqlite3.Connection, dataset: int) -> bool:
    """Take a step of merging what many uploads have added to the index. Returns whether there may be more to merge."""
    if not connection.execute(_MERGES_BEHIND.format(dataset=dataset)).fetchall():  # made by an earlier version
        for statement in _MERGE_BEHIND:
            connection.execute(statement.format(dataset=dataset))
    before = connection.total_changes
    connection.execute(_MERGE.format(dataset=dataset))
    return connection.total_changes - before > 1  # FTS5 counts one for a step that found nothing to do


def add_entries(connection: sqlite3.Connection, dataset: int, entries: Sequence[tuple[int, Entry]]) -> None:
    """Add the entries by their rows' ids, which the index must not have."""
    _for_words(connection, _ADD_WORDS.format(dataset=dataset), entries)
    for statement in (_ADD_COMMAND, _KEEP_COMMAND):
        _for_commands(connection, statement.format(dataset=dataset), entries)


def remove_entries(connection: sqlite3.Connection, dataset: int, entries: Sequence[tuple[int, Entry]]) -> None:
    """Remove the entries, which must be what was added."""
    _for_words(connection, _REMOVE_WORDS.format(dataset=dataset), entries)
    for statement in (_REMOVE_COMMAND, _DROP_COMMAND):
        _for_commands(connection, statement.format(dataset=dataset), entries)


def match_of_term(term: Term, session_id: str | None, user: str | None, tool: str | None) -> str:
    """The FTS5 expression for rows that have the term and are of that session, user and tool, where given.

    Of a term that `is_long`, for rows that may have it.
    """
    column = "wholes" if term.dotted else "runs"
    facets = [_facet(kind, value) for kind, value in _given(session=session_id, user=user, tool=tool)]
    phrase = " ".join(term.words[:MAX_PHRASE_WORDS])
    return " AND ".join([f'{column} : "{phrase}"', *(f'facets : "{facet}"' for facet in facets)])


def is_long(term: Term) -> bool:
    """Whether the term's hits are LONG_PHRASE_HITS."""
    return len(term.words) > MAX_PHRASE_WORDS


def has_phrase(command: str, body: str, phrase: str) -> bool:
    """For LONG_PHRASE_HITS: whether the row with these texts has a term, of whose words the phrase is made."""
    return has_term(searchable_words(command, body), term_of(phrase.split()))


def command_text(command: str) -> str:
    """The folded command as the index keeps it and is asked for it: FTS5 takes a NUL character for the end."""
    return fold(command).replace("\x00", "\ufdd0")


def match_of_command(text: str) -> str:
    """The FTS5 expression for commands that may contain the text, which has PIECE_CHARS characters or more."""
    pieces = list(dict.fromkeys(text[at : at + PIECE_CHARS] for at in range(len(text) - PIECE_CHARS + 1)))
    looked_up = pieces[:: math.ceil(len(pieces) / MAX_PIECES)]
    return " AND ".join('"' + piece.replace('"', '""') + '"' for piece in looked_up)


def _given(**facets: str | None) -> Iterable[tuple[str, str]]:
    return ((kind, value) for kind, value in facets.items() if value is not None)


@lru_cache(maxsize=1_024)
def _facet(kind: str, value: str) -> str:
    """One word for the value: no two values have the same, whatever is in them."""
    return kind[0] + hashlib.blake2b(value.encode(), digest_size=12).hexdigest()


def _for_words(connection: sqlite3.Connection, statement: str, entries: Sequence[tuple[int, Entry]]) -> None:
    # In order of the ids: for one that is not, FTS5 writes out all that it has gathered.
    connection.executemany(statement, ((row_id, *entry[:3]) for row_id, entry in sorted(entries)))


def _for_commands(connection: sqlite3.Connection, statement: str, entries: Sequence[tuple[int, Entry]]) -> None:
    connection.executemany(statement, ((row_id, entry.command) for row_id, entry in sorted(entries) if entry.command))
