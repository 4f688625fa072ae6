"""What becomes of documents on a real node: versions, poison, an index that is not there."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ctrlb.adapters.opensearch_writer import PIECE_BYTES
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import Document, document_id, removal, session_document
from ctrlb.domain.streams import ALREADY, DONE, Outcome
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
    assert index.writer.index([late]) == [DONE]
    assert index.writer.index([early]) == [ALREADY]
    assert index.writer.index([late, early, late]) == [ALREADY] * 3
    assert bodies(index, "words") == ["late words"]


def test_a_document_that_the_index_refuses_keeps_no_other_from_it(index: IndexOnNode) -> None:
    good = [document(0, "first words"), document(2, "last words")]
    poison = document(1, "these words")
    poison = replace(poison, source={**(poison.source or {}), "ts_us": "yesterday"})
    outcomes = index.writer.index([good[0], poison, good[1]])
    assert outcomes == [DONE, Outcome("poison", "400 mapper_parsing_exception"), DONE]
    assert bodies(index, "words") == ["first words", "last words"]


def test_a_batch_is_written_in_pieces_of_a_bounded_size(index: IndexOnNode) -> None:
    documents = [document(seq, "words " * (PIECE_BYTES // 15)) for seq in range(8)]
    assert index.writer.index(documents) == [DONE] * 8
    index.refresh(DATASET)
    assert [row.seq for row in index.search(parse_term("words")).rows] == list(range(7, -1, -1))


def test_each_dataset_has_an_index_of_its_own_made_at_its_first_row(index: IndexOnNode) -> None:
    other = Dataset("acme", "other")
    documents = [document(0, "words here"), document(0, "words there", dataset=other)]
    assert index.writer.index(documents) == [DONE] * 2
    assert bodies(index, "words") == ["words here"]
    index.remove_all()
    assert index.writer.index(documents) == [DONE] * 2


def test_a_row_that_was_removed_is_not_found_and_its_versions_do_not_come_back(index: IndexOnNode) -> None:
    kept, removed = document(0, "kept words"), document(1, "other words", 5)
    assert index.writer.index([kept, removed, removal(DATASET, ("one", 1, 0), 6)]) == [DONE] * 3
    assert index.writer.index([removed, removal(DATASET, ("one", 1, 0), 6)]) == [ALREADY] * 2
    assert bodies(index, "words") == ["kept words"]
    assert index.writer.index([document(1, "new words", 7)]) == [DONE]
    assert bodies(index, "words") == ["kept words", "new words"]


def test_the_removal_of_a_row_that_is_not_there_keeps_it_from_coming_late(index: IndexOnNode) -> None:
    assert index.writer.index([document(0, "kept words"), removal(DATASET, ("one", 1, 0), 6)]) == [DONE] * 2
    assert index.writer.index([document(1, "late words", 5)]) == [ALREADY]
    assert bodies(index, "words") == ["kept words"]


def test_names_never_reach_into_each_other() -> None:
    ids = {
        document_id(dataset, (session, seq, block))
        for dataset in (Dataset("a", "bc"), Dataset("ab", "c"))
        for session, seq, block in (("s", 1, 11), ("s", 11, 1), ("s1", 1, 1))
    }
    assert len(ids) == 6
