"""Session rows into OpenSearch, each in its own version, so that replays and disorder change nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctrlb.adapters.opensearch import REFUSED_FOR_NOW, OpenSearch, SearchRefused, json_bytes
from ctrlb.adapters.opensearch_indices import NEXT, OpenSearchIndices
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import Document, index_alias, shortened
from ctrlb.domain.streams import ALREADY, DONE, Outcome, both

PIECE_BYTES = 5 * 1024 * 1024
"""One request has at most so many, or a single larger document. The smallest services take requests up to 10 MiB."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A document as it is sent."""

    number: int
    document: Document
    content: bytes


class OpenSearchWriter:
    """The write side of `OpenSearchSessions`."""

    def __init__(self, service: OpenSearch) -> None:
        self._service = service
        self._indices = OpenSearchIndices(service)

    def index(self, documents: Sequence[Document]) -> list[Outcome]:
        """Write the documents of a batch and tell for each, in their order, what became of it.

        One request for each dataset, more for what is over PIECE_BYTES, and twice as many during a rebuild.
        """
        outcomes: dict[int, Outcome] = {}
        for dataset, pieces in _by_dataset(documents):
            try:
                aliases = self._indices.written(dataset)
            except Unavailable as failure:
                outcomes |= {line.number: Outcome("retry", failure.message) for piece in pieces for line in piece}
                continue
            for piece in pieces:
                outcomes |= self._write_to_all(aliases, piece)
        return [outcomes[number] for number in range(len(documents))]

    def index_next(self, documents: Sequence[Document]) -> list[Outcome]:
        """As `index`, but only into the index that a rebuild fills."""
        outcomes: dict[int, Outcome] = {}
        for dataset, pieces in _by_dataset(documents):
            for piece in pieces:
                outcomes |= self._write(index_alias(dataset) + NEXT, piece)
        return [outcomes[number] for number in range(len(documents))]

    def _write_to_all(self, aliases: Sequence[str], piece: Sequence[_Line]) -> dict[int, Outcome]:
        outcomes = self._write(aliases[0], piece)
        for alias in aliases[1:]:
            others = self._write(alias, piece)
            outcomes = {number: both(outcome, others[number]) for number, outcome in outcomes.items()}
        return outcomes

    def _write(self, alias: str, piece: Sequence[_Line]) -> dict[int, Outcome]:
        try:
            return self._send(alias, piece)
        except Unavailable as failure:
            return {line.number: Outcome("retry", failure.message) for line in piece}

    def _send(self, alias: str, piece: Sequence[_Line]) -> dict[int, Outcome]:
        body = b"".join(line.content for line in piece)
        answer = self._service.ask("POST", f"/{alias}/_bulk", body, require_alias="true")
        if answer.status == 413:
            return self._send_less(alias, piece)
        if answer.status == 404:
            return {line.number: Outcome("retry", "the index is gone, or another took its place") for line in piece}
        if answer.status != 200:
            raise SearchRefused(f"the search index answered {answer.status} to a bulk request")
        results = [next(iter(item.values())) for item in answer.content["items"]]
        return {line.number: _outcome(result) for line, result in zip(piece, results, strict=True)}

    def _send_less(self, alias: str, piece: Sequence[_Line]) -> dict[int, Outcome]:
        """What a service that takes no requests of this size is sent: each document alone, then its beginning."""
        if len(piece) > 1:
            lines = list(piece)
        elif piece[0].document.source is None or piece[0].document.source.get("shortened"):
            return {piece[0].number: Outcome("poison", "too large for the search index")}
        else:
            lines = [_line(piece[0].number, shortened(piece[0].document))]
        outcomes: dict[int, Outcome] = {}
        for line in lines:
            outcomes |= self._send(alias, [line])
        return outcomes


def _by_dataset(documents: Sequence[Document]) -> Iterator[tuple[Dataset, list[list[_Line]]]]:
    """The documents of each dataset, in pieces to be sent in one request each."""
    lines = [_line(number, document) for number, document in enumerate(documents)]
    for dataset in dict.fromkeys(document.dataset for document in documents):
        yield dataset, list(_pieces([line for line in lines if line.document.dataset == dataset]))


def _line(number: int, document: Document) -> _Line:
    place = {"_id": document.id, "version": document.version, "version_type": "external"}
    if document.source is None:
        return _Line(number, document, json_bytes({"delete": place}) + b"\n")
    return _Line(number, document, json_bytes({"index": place}) + b"\n" + json_bytes(document.source) + b"\n")


def _pieces(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    piece: list[_Line] = []
    size = 0
    for line in lines:
        if piece and size + len(line.content) > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += len(line.content)
    if piece:
        yield piece


def _outcome(result: Mapping[str, Any]) -> Outcome:
    status = result["status"]
    if status == 409:  # a conflict: this version or a later one is there
        return ALREADY
    if "error" not in result:  # written, or removed, or there was nothing to remove
        return DONE
    # Not the error's text, which quotes the document. The index can have been removed a moment ago.
    later = status in REFUSED_FOR_NOW or status == 404
    return Outcome("retry" if later else "poison", f"{status} {result['error']['type']}")
