"""The sessions' index on a node, as the tests write and read it."""

import itertools
from collections.abc import Iterable, Sequence

from ctrlb.adapters.opensearch import OpenSearch
from ctrlb.adapters.opensearch_sessions import OpenSearchSessions
from ctrlb.adapters.opensearch_writer import OpenSearchWriter
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import Document, index_alias, session_document
from ctrlb.domain.streams import ALREADY, DONE
from ctrlb.domain.words import Term
from ctrlb.ports import Found, Order

TIMEOUT_S = 60.0
DATASET = Dataset("acme", "agent_sessions")


class IndexOnNode:
    """Rows written are found at once: each write ends with a refresh, where a service refreshes every second."""

    def __init__(self, url: str, dataset: Dataset = DATASET) -> None:
        self.service = OpenSearch(url, timeout_s=TIMEOUT_S)
        self.writer = OpenSearchWriter(self.service)
        self.sessions = OpenSearchSessions(self.service)
        self.dataset = dataset
        self._versions = itertools.count(1)

    def write(self, rows: Iterable[SessionRow], owner: str = "ann") -> None:
        version = next(self._versions)
        self.add(session_document(self.dataset, owner, row, version) for row in rows)

    def add(self, documents: Iterable[Document]) -> None:
        documents = list(documents)
        assert set(self.writer.index(documents)) <= {DONE, ALREADY}
        for dataset in {document.dataset for document in documents}:
            self.refresh(dataset)

    def refresh(self, dataset: Dataset) -> None:
        assert self.service.ask("POST", f"/{index_alias(dataset)}/_refresh").status == 200

    def remove_all(self) -> None:
        assert self.service.ask("DELETE", "/ses-*").status == 200

    def search(
        self,
        term: Term,
        *,
        user: str | None = None,
        session_id: str | None = None,
        tool: str | None = None,
        order: Order = "newest",
        one_per_session: bool = False,
        offset: int = 0,
        limit: int = 25,
    ) -> Found:
        return self.sessions.search(
            self.dataset,
            term,
            user=user,
            session_id=session_id,
            tool=tool,
            order=order,
            one_per_session=one_per_session,
            offset=offset,
            limit=limit,
        )

    def commands(self, text: str) -> set[int]:
        """The seqs of the rows whose commands contain the text."""
        found = self.sessions.commands(self.dataset, text, user=None, offset=0, limit=1_000)
        assert found.total == len(found.rows)
        return {row.seq for row in found.rows}

    def analyzed(self, analyzer: str, texts: Sequence[str]) -> list[tuple[str, int]]:
        """The tokens of the texts with their positions; between two texts, the positions jump."""
        content = {"analyzer": analyzer, "text": texts}
        answer = self.service.ask("POST", f"/{index_alias(self.dataset)}/_analyze", content)
        assert answer.status == 200, answer.content
        return [(token["token"], token["position"]) for token in answer.content["tokens"]]
