"""The floor of uploads and searches: the same texts in one SQLite table and an FTS5 index of one column, in process."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAGE_ROWS = 10
MAX_COUNTED = 10_000

_SCHEMA = """
CREATE TABLE session_rows (id INTEGER PRIMARY KEY, session_id TEXT, seq INTEGER, ts_us INTEGER, text TEXT);
CREATE VIRTUAL TABLE words USING fts5(text, content = 'session_rows', content_rowid = 'id');
CREATE VIRTUAL TABLE commands USING fts5(command, tokenize = 'trigram case_sensitive 1');
"""
_ADD_ROW = "INSERT INTO session_rows VALUES (?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO words (rowid, text) VALUES (?, ?)"
_ADD_COMMAND = "INSERT INTO commands (rowid, command) VALUES (?, ?)"
_PAGE = f"""
SELECT text FROM session_rows WHERE id IN (
    SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT {PAGE_ROWS}
)
"""
_COMMANDS = f"SELECT command FROM commands WHERE commands MATCH ? ORDER BY rowid DESC LIMIT {PAGE_ROWS}"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH ? LIMIT {limit})"
_COUNT_WORDS = _COUNT.format(index="words", limit=MAX_COUNTED + 1)
_COUNT_COMMANDS = _COUNT.format(index="commands", limit=MAX_COUNTED + 1)


class RawIndex:
    """A SQLite file that is written as durably as the product's."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        is_new = not path.exists()
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            self._connection.executescript(_SCHEMA)
        self._rows = self._count("SELECT count(*) FROM session_rows")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Insert and index the rows in one transaction."""
        numbered = list(enumerate(rows, start=self._rows + 1))
        texts = [(number, f"{row['command']}\n{row['body']}") for number, row in numbered]
        self._connection.execute("BEGIN")
        self._connection.executemany(
            _ADD_ROW,
            (
                (number, row["session_id"], row["seq"], row["_timestamp"], text)
                for (number, row), (_, text) in zip(numbered, texts, strict=True)
            ),
        )
        self._connection.executemany(_ADD_WORDS, texts)
        self._connection.execute("COMMIT")
        self._rows += len(numbered)

    def add_commands(self, rows: Iterable[dict[str, Any]]) -> None:
        """Index the rows' commands, for `commands`; no part of the floor of an upload."""
        self._connection.execute("BEGIN")
        commands = ((number, row["command"]) for number, row in enumerate(rows, start=1) if row["command"])
        self._connection.executemany(_ADD_COMMAND, commands)
        self._connection.execute("COMMIT")

    def search(self, term: str) -> int:
        """Read the newest rows that have the phrase, and count them all, up to the product's cap."""
        match = f'"{term}"'
        self._connection.execute(_PAGE, (match,)).fetchall()
        return self._count(_COUNT_WORDS, match)

    def commands(self, text: str) -> int:
        """Read the newest commands that contain the text, and count them all, up to the product's cap."""
        match = f'"{text}"'
        self._connection.execute(_COMMANDS, (match,)).fetchall()
        return self._count(_COUNT_COMMANDS, match)

    def _count(self, query: str, *parameters: str) -> int:
        [(count,)] = self._connection.execute(query, parameters)
        return int(count)
