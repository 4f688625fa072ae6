"""A session row as a document of the search index, and read back from one.

A document holds the row's columns by their names, without those that are empty, and what is searched: `text`, the
row's searchable text, and `command_pieces`, the folded command of a tool call. A body that is the end of the text,
as most are, is not kept a second time. `adapters/sessions_index.json` says how the fields are indexed.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.session_text import fold, searchable_text
from ctrlb.domain.words import Term, plain

PIECE_CHARS = 3
"""Commands are indexed by their pieces of so many characters."""
COMMAND_END = "  "
"""Follows a command, so that pieces begin at its last characters too. No folded command has two spaces in a row."""
SHORTENED_CHARS = 1024 * 1024
LONG_FIELDS = ("text", "body")
"""What a list of hits is read without."""
PIECES = "command_pieces"
"""The field of a tool call's command, only to be searched."""
_PLACE = "_"
"""Stands in a query where a word has no run to compare with. It is no word."""
_RUN = re.compile(r"[^.+]+")
_DEFAULTS = {column.name: column.default for column in fields(SessionRow)}


@dataclass(frozen=True, slots=True)
class Document:
    """What the index is to hold of one row, unless it holds a later version."""

    dataset: Dataset
    id: str
    """A hash of the row's identity."""
    version: int
    """Grows with each write of the row."""
    source: Mapping[str, Any] | None
    """None when the index is to hold nothing of the row: it was removed."""


def session_document(dataset: Dataset, owner: str, row: SessionRow, version: int) -> Document:
    """The document of a row, with its whole body, in a session of `owner`."""
    text = searchable_text(row.command, row.body)
    columns = {name: value for name in _DEFAULTS if (value := getattr(row, name)) != _DEFAULTS[name]}
    if text.endswith(row.body) and len(row.body) == row.body_len:
        columns.pop("body", None)
    source = {
        **columns,
        # Searched or sorted by, empty or not.
        "block_idx": row.block_idx,
        "tool_name": row.tool_name,
        "workspace": dataset.workspace,
        "dataset": dataset.name,
        "owner": owner,
        "text": text,
        "long_chars": len(text) + len(columns.get("body", "")),
    }
    if row.block_type == "tool_use" and (command := fold(row.command)):
        source[PIECES] = command + COMMAND_END
    return Document(dataset, document_id(dataset, row.identity), version, source)


def removal(dataset: Dataset, identity: tuple[str, int, int], version: int) -> Document:
    """What takes the row's document out of the index, unless it holds a version as late as this."""
    return Document(dataset, document_id(dataset, identity), version, None)


def shortened(document: Document) -> Document:
    """The document for a service that takes no requests of its size: of the text, only the beginning is found."""
    assert document.source is not None
    text = document.source["text"][:SHORTENED_CHARS]
    source = {name: value for name, value in document.source.items() if name != "body"}
    return Document(
        document.dataset,
        document.id,
        document.version,
        {**source, "text": text, "long_chars": len(text), "shortened": True},
    )


def document_id(dataset: Dataset, identity: tuple[str, int, int]) -> str:
    """The same for equal identities (session_id, seq, block_idx), and for no others."""
    session_id, seq, block_idx = identity
    return _hash(dataset.workspace, dataset.name, session_id, str(seq), str(block_idx))


def index_alias(dataset: Dataset) -> str:
    """The name under which the dataset's index is reached, whatever is in the names of workspace and dataset."""
    return f"ses-{_hash(dataset.workspace)}-{_hash(dataset.name)}"


def row_of(source: Mapping[str, Any]) -> SessionRow:
    """The row of a document that was read with its LONG_FIELDS; without them, the row without its body."""
    columns = {name: source[name] for name in _DEFAULTS if name in source}
    if "text" in source and "body" not in source:
        columns["body"] = _end_of_text(source)
    return SessionRow(**columns)


def phrase_of(term: Term) -> str:
    """The term's words as the index is asked for them, each where its first run is.

    In the index, runs stand one after the other and a dotted word beside its first run. So in a query,
    a place is left free for each further run of a dotted word.
    """
    return " ".join(word + f" {_PLACE}" * (_runs(word) - 1) for word in term.words)


def _runs(word: str) -> int:
    return len(_RUN.findall(word))


def _end_of_text(source: Mapping[str, Any]) -> str:
    """The body, which is the end of the text; of a shortened text, all but the command."""
    text: str = source["text"]
    command: str = source.get("command", "")
    if source.get("shortened"):
        return text[len(plain(command)) + 1 :] if command else text
    return text[len(text) - source.get("body_len", 0) :]


def _hash(*names: str) -> str:
    lengths_and_names = "".join(f"{len(name)}:{name}" for name in names)
    return hashlib.blake2b(lengths_and_names.encode(errors="surrogatepass"), digest_size=20).hexdigest()
