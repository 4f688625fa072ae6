"""Session rows into OpenSearch, each in its own version, so that replays and disorder change nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ctrlb.adapters.opensearch import REFUSED_FOR_NOW, OpenSearch, json_bytes
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import Document, index_alias, shortened

PIECE_BYTES = 5 * 1024 * 1024
"""One request has at most so many, or a single larger document. The smallest services take requests up to 10 MiB."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a document."""

    kind: Literal["indexed", "retry", "refused"]
    """`indexed`: it, or a later version, is there. `retry`: send it again later. `refused`: that would not help."""
    reason: str = ""


INDEXED = Outcome("indexed")


@dataclass(frozen=True, slots=True)
class _Line:
    """A document as it is sent."""

    number: int
    document: Document
    content: bytes


class OpenSearchWriter:
    """The write side of `OpenSearchSessions`."""

    def __init__(self, service: OpenSearch, definition: Mapping[str, Any]) -> None:
        """`definition` is what an index is made with: the settings and mappings of `infra/sessions-index.json`."""
        self._service = service
        self._definition = definition

    def index(self, documents: Sequence[Document]) -> list[Outcome]:
        """Write the documents of a batch and tell for each, in their order, what became of it.

        One request for each dataset, more for what is over PIECE_BYTES. A dataset's index is made at its first row.
        """
        outcomes: dict[int, Outcome] = {}
        lines = [_line(number, document) for number, document in enumerate(documents)]
        for dataset in dict.fromkeys(document.dataset for document in documents):
            for piece in _pieces([line for line in lines if line.document.dataset == dataset]):
                outcomes |= self._write(dataset, piece)
        return [outcomes[number] for number in range(len(documents))]

    def _write(self, dataset: Dataset, piece: Sequence[_Line]) -> dict[int, Outcome]:
        try:
            outcomes, homeless = self._send(dataset, piece)
            if homeless:
                self._create(dataset)
                later, homeless = self._send(dataset, homeless)
                outcomes |= later
        except Unavailable as failure:
            return {line.number: Outcome("retry", failure.message) for line in piece}
        return outcomes | {line.number: Outcome("retry", "the index was removed") for line in homeless}

    def _send(self, dataset: Dataset, piece: Sequence[_Line]) -> tuple[dict[int, Outcome], list[_Line]]:
        """The outcomes of one request, and the lines that found no index."""
        body = b"".join(line.content for line in piece)
        answer = self._service.ask("POST", f"/{index_alias(dataset)}/_bulk", body, require_alias="true")
        if answer.status == 413:
            return self._send_less(dataset, piece)
        if answer.status == 404:
            return {}, list(piece)
        if answer.status != 200:
            raise RuntimeError(f"the search index answered {answer.status} to a bulk request")
        outcomes, homeless = {}, []
        for line, item in zip(piece, answer.content["items"], strict=True):
            result = item["index"]
            if result["status"] == 404:
                homeless.append(line)
            else:
                outcomes[line.number] = _outcome(result)
        return outcomes, homeless

    def _send_less(self, dataset: Dataset, piece: Sequence[_Line]) -> tuple[dict[int, Outcome], list[_Line]]:
        """What a service that takes no requests of this size is sent: each document alone, then its beginning."""
        if len(piece) > 1:
            lines = list(piece)
        elif piece[0].document.source.get("shortened"):
            return {piece[0].number: Outcome("refused", "too large for the search index")}, []
        else:
            lines = [_line(piece[0].number, shortened(piece[0].document))]
        outcomes: dict[int, Outcome] = {}
        homeless: list[_Line] = []
        for line in lines:
            done, left = self._send(dataset, [line])
            outcomes |= done
            homeless += left
        return outcomes, homeless

    def _create(self, dataset: Dataset) -> None:
        alias = index_alias(dataset)
        answer = self._service.ask("PUT", f"/{alias}-v1", {**self._definition, "aliases": {alias: {}}})
        exists = answer.status == 400 and answer.content["error"]["type"] == "resource_already_exists_exception"
        if answer.status != 200 and not exists:
            raise RuntimeError(f"the search index {alias}-v1 could not be made: {answer.status}")


def _line(number: int, document: Document) -> _Line:
    action = {"index": {"_id": document.id, "version": document.version, "version_type": "external"}}
    return _Line(number, document, json_bytes(action) + b"\n" + json_bytes(document.source) + b"\n")


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
    if status < 300 or status == 409:  # a conflict: this version or a later one is there
        return INDEXED
    # Not the error's text, which quotes the document.
    return Outcome("retry" if status in REFUSED_FOR_NOW else "refused", f"{status} {result['error']['type']}")
