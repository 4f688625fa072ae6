"""Search over session rows in OpenSearch: the port SessionIndex.

Each dataset has an index of its own, reached through an alias (`search_documents.index_alias`); all queries name the
workspace and the dataset besides. How texts become words is in `adapters/sessions_index.json`: a text's runs stand one
after the other, and each dotted word beside its first run. A query brings its words cut by the reference
(`ctrlb.domain.words`), so what a term says never depends on the service.

Hits are read in two steps: the page without what it holds, then its documents in requests of a bounded size.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctrlb.adapters.opensearch import Answer, OpenSearch
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import LONG_FIELDS, PIECE_CHARS, PIECES, index_alias, phrase_of, row_of
from ctrlb.domain.session_text import MAX_COUNTED
from ctrlb.domain.words import Term
from ctrlb.ports import Found, Order

BATCH_CHARS = 2 * 1024 * 1024
"""Texts of so many characters are read in one request, or a single longer one: about 8 MiB at most."""
_ORDERED_BY = ("ts_us", "session_id", "seq", "block_idx")

_COUNT_SESSIONS = {
    # Not `cardinality`, which is off by one among thousands.
    "sessions": {"terms": {"field": "session_id", "size": MAX_COUNTED + 1}},
    "counted": {"stats_bucket": {"buckets_path": "sessions._count"}},
}
_READ = "timed_out,hits.total,hits.hits._id,hits.hits._source,aggregations.counted.count,error"
"""All of an answer that is used. The list of sessions, which may be long, is not sent."""

Json = dict[str, Any]


class OpenSearchSessions:
    """The port SessionIndex on what `OpenSearchWriter` writes."""

    def __init__(self, service: OpenSearch) -> None:
        self._service = service

    def search(
        self,
        dataset: Dataset,
        term: Term,
        *,
        user: str | None,
        session_id: str | None,
        tool: str | None,
        order: Order,
        one_per_session: bool,
        offset: int,
        limit: int,
    ) -> Found:
        """See SessionIndex.search."""
        matches = [
            {"match_phrase": {"text": {"query": phrase_of(term)}}},
            *_equal(owner=user, session_id=session_id, tool_name=tool),
        ]
        query = _page(dataset, matches, order, offset, limit) | {"_source": ["long_chars"]}
        if one_per_session:
            query["collapse"] = {"field": "session_id"}
            query["aggs"] = _COUNT_SESSIONS
        total, hits = self._hits(dataset, query)
        return Found(total, [row_of(source) for source in self._sources(dataset, hits)])

    def commands(self, dataset: Dataset, text: str, *, user: str | None, offset: int, limit: int) -> Found:
        """See SessionIndex.commands."""
        kind = "match_phrase" if len(text) >= PIECE_CHARS else "prefix"
        matches = [{kind: {PIECES: text}}, *_equal(owner=user)]
        query = _page(dataset, matches, "newest", offset, limit) | {"_source": {"excludes": [*LONG_FIELDS, PIECES]}}
        total, hits = self._hits(dataset, query)
        return Found(total, [row_of(hit["_source"]) for hit in hits])

    def _hits(self, dataset: Dataset, query: Json) -> tuple[int, list[Json]]:
        """How many hits there are, counted up to the cap, and those of the page."""
        found = self._ask(dataset, "_search", query, allow_partial_search_results="false", filter_path=_READ)
        if found is None:
            return 0, []
        hits = found["hits"]
        total = found["aggregations"]["counted"]["count"] if "aggs" in query else hits["total"]["value"]
        return total, hits.get("hits", [])

    def _sources(self, dataset: Dataset, hits: Sequence[Json]) -> Iterator[Json]:
        """The whole documents of the hits, each as of one moment, but for those removed since they were found."""
        for ids in _batches(hits):
            found = self._ask(dataset, "_mget", {"ids": ids}, _source_excludes=PIECES) or {"docs": []}
            yield from (one["_source"] for one in found["docs"] if one.get("found"))

    def _ask(self, dataset: Dataset, what: str, content: Json, **parameters: str) -> Json | None:
        """The answer of the dataset's index; None when it has none, since nothing was written yet."""
        answer = self._service.ask("POST", f"/{index_alias(dataset)}/{what}", content, **parameters)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise RuntimeError(f"the search index answered {answer.status} to {what}: {_reason(answer)}")
        found: Json = answer.content
        return found


def _page(dataset: Dataset, matches: list[Json], order: Order, offset: int, limit: int) -> Json:
    direction = "desc" if order == "newest" else "asc"
    scope = _equal(workspace=dataset.workspace, dataset=dataset.name)
    return {
        "query": {"bool": {"filter": [*scope, *matches]}},
        "sort": [{name: direction} for name in _ORDERED_BY],
        "from": offset,
        "size": limit,
        "track_total_hits": MAX_COUNTED + 1,
    }


def _equal(**values: str | None) -> list[Json]:
    return [{"term": {name: value}} for name, value in values.items() if value is not None]


def _batches(hits: Sequence[Json]) -> Iterator[list[str]]:
    """The ids of the hits, as many at a time as have BATCH_CHARS together."""
    batch: list[str] = []
    chars = 0
    for hit in hits:
        size = hit["_source"]["long_chars"]
        if batch and chars + size > BATCH_CHARS:
            yield batch
            batch, chars = [], 0
        batch.append(hit["_id"])
        chars += size
    if batch:
        yield batch


def _reason(answer: Answer) -> str:
    error = answer.content.get("error") if isinstance(answer.content, Mapping) else None
    return str(error.get("type")) if isinstance(error, Mapping) else "no reason"
