"""What becomes of documents on a real node: versions, poison, an index that is not there."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ctrlb.adapters.opensearch_writer import INDEXED, PIECE_BYTES, Outcome
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import Document, document_id, session_document
from ctrlb.domain.words import parse_term
from tests.opensearch.index import DATASET, IndexOnNode
from tests.opensearch.node import OpenSearchNode

pytestmark = pytest.mark.opensearch


@pytest.fixture
def index(opensearch_node: OpenSearchNode) -> Iterator[IndexOnNode]:
    """An empty index."""
    index = IndexOnNode(opensearch_node.url)
    index.remove_all()
    yield index
    index.remove_all()


def document(seq: int, body: str, version: int = 1, dataset: Dataset = DATASET) -> Document:
    row = SessionRow(ts_us=seq, session_id="one", seq=seq, body=body, body_len=len(body))
    return session_document(dataset, "ann", row, version)


def bodies(index: IndexOnNode, term: str) -> list[str]:
    index.refresh(DATASET)
    return [row.body for row in index.search(parse_term(term), order="oldest").rows]


def test_of_two_versions_the_later_stands_in_whatever_order_they_come(index: IndexOnNode) -> None:
    early, late = document(0, "early words", 1), document(0, "late words", 2)
    assert index.writer.index([late]) == [INDEXED]
    assert index.writer.index([early]) == [INDEXED]
    assert index.writer.index([late, early, late]) == [INDEXED] * 3
    assert bodies(index, "words") == ["late words"]


def test_a_document_that_the_index_refuses_keeps_no_other_from_it(index: IndexOnNode) -> None:
    good = [document(0, "first words"), document(2, "last words")]
    poison = document(1, "these words")
    poison = replace(poison, source={**poison.source, "ts_us": "yesterday"})
    outcomes = index.writer.index([good[0], poison, good[1]])
    assert outcomes == [INDEXED, Outcome("refused", "400 mapper_parsing_exception"), INDEXED]
    assert bodies(index, "words") == ["first words", "last words"]


def test_a_batch_is_written_in_pieces_of_a_bounded_size(index: IndexOnNode) -> None:
    documents = [document(seq, "words " * (PIECE_BYTES // 15)) for seq in range(8)]
    assert index.writer.index(documents) == [INDEXED] * 8
    index.refresh(DATASET)
    assert [row.seq for row in index.search(parse_term("words")).rows] == list(range(7, -1, -1))


def test_each_dataset_has_an_index_of_its_own_made_at_its_first_row(index: IndexOnNode) -> None:
    other = Dataset("acme", "other")
    documents = [document(0, "words here"), document(0, "words there", dataset=other)]
    assert index.writer.index(documents) == [INDEXED] * 2
    assert bodies(index, "words") == ["words here"]
    index.remove_all()
    assert index.writer.index(documents) == [INDEXED] * 2


def test_names_never_reach_into_each_other() -> None:
    row = SessionRow(ts_us=0, session_id="s", seq=1, block_idx=11)
    ids = {
        document_id(dataset, replace(row, session_id=session, seq=seq, block_idx=block))
        for dataset in (Dataset("a", "bc"), Dataset("ab", "c"))
        for session, seq, block in (("s", 1, 11), ("s", 11, 1), ("s1", 1, 1))
    }
    assert len(ids) == 6
