"""The indices of a dataset, and the aliases by which they are told apart.

    ses-…           what is searched, and written
    ses-…-next      what a rebuild fills: written as well, for as long as it is there
    ses-…-replaced  what was searched until a rebuild ended, to be removed

The indices themselves are called ses-…-v1, -v2 and so on. Aliases change together or not at all, so at every moment
they say how far a rebuild is, and nothing else has to be asked or kept.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctrlb.adapters.opensearch import Answer, OpenSearch, SearchRefused
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import index_alias

NEXT = "-next"
REPLACED = "-replaced"
_META = "rebuild"


@dataclass(frozen=True, slots=True)
class DatasetIndices:
    """The names of a dataset's indices, None where there is none."""

    live: str | None
    next: str | None
    replaced: str | None
    strays: tuple[str, ...]
    """Those without an alias: what is left of something that was given up."""
    last_number: int
    """The greatest number that an index has; 0 when there is none."""


class OpenSearchIndices:
    """Makes, fills in turn and removes the indices of datasets."""

    def __init__(self, service: OpenSearch) -> None:
        self._service = service

    def of(self, dataset: Dataset) -> DatasetIndices:
        """The dataset's indices, as of one moment."""
        alias = index_alias(dataset)
        found = self._ask("GET", f"/{alias}-*", filter_path="*.aliases") or {}
        by_alias = {name: index for index, each in found.items() for name in each["aliases"]}
        named = {alias, alias + NEXT, alias + REPLACED}
        numbers = [int(index.rpartition("-v")[2]) for index in found if index.rpartition("-v")[2].isdigit()]
        return DatasetIndices(
            by_alias.get(alias),
            by_alias.get(alias + NEXT),
            by_alias.get(alias + REPLACED),
            tuple(index for index, each in found.items() if not named & set(each["aliases"])),
            max(numbers, default=0),
        )

    def written(self, dataset: Dataset) -> list[str]:
        """The aliases that a document goes to. The first index of a dataset is made here, at its first row.

        Asked for each batch, and before it is written. So a row is in the index that a rebuild fills, or was in the
        table before that index was made, where the rebuild reads it.
        """
        found = self.of(dataset)
        if found.live is None:
            self.make_live(dataset, found)
        alias = index_alias(dataset)
        return [alias] if found.next is None else [alias, alias + NEXT]

    def make_live(self, dataset: Dataset, found: DatasetIndices) -> None:
        """Make an empty index to be searched; one that another made meanwhile is no error."""
        self._make(index_alias(dataset), found.last_number + 1, "")

    def make_next(self, dataset: Dataset, found: DatasetIndices) -> str:
        """Make an empty index to be filled, and return its name."""
        return self._make(index_alias(dataset), found.last_number + 1, NEXT)

    def progress(self, index: str) -> Any:
        """What was noted last of how far the index is filled; None when nothing was."""
        found = self._ask("GET", f"/{index}/_mapping") or {}
        return found.get(index, {}).get("mappings", {}).get("_meta", {}).get(_META)

    def note_progress(self, index: str, progress: Mapping[str, Any]) -> None:
        """Keep it with the index that it is about."""
        self._ask("PUT", f"/{index}/_mapping", {"_meta": {_META: progress}})

    def count(self, index: str) -> int:
        """How many documents of it are found."""
        found = self._ask("GET", f"/{index}/_count") or {}
        return int(found.get("count", 0))

    def replace(self, dataset: Dataset, found: DatasetIndices) -> None:
        """Search the index that was filled, from one moment to the next."""
        alias = index_alias(dataset)
        actions = [
            {"remove": {"index": found.live, "alias": alias, "must_exist": True}},
            {"add": {"index": found.live, "alias": alias + REPLACED}},
            {"remove": {"index": found.next, "alias": alias + NEXT, "must_exist": True}},
            {"add": {"index": found.next, "alias": alias}},
        ]
        self._ask("POST", "/_aliases", {"actions": actions})

    def remove(self, index: str) -> None:
        """Remove the index; one that is not there is no error."""
        self._ask("DELETE", f"/{index}")

    def _make(self, alias: str, number: int, suffix: str) -> str:
        index = f"{alias}-v{number}"
        content = {**definition(), "aliases": {alias + suffix: {}}}
        answer = self._service.ask("PUT", f"/{index}", content)
        exists = answer.status == 400 and _reason(answer) == "resource_already_exists_exception"
        if answer.status != 200 and not exists:
            raise _refused("PUT", index, answer)
        return index

    def _ask(self, method: str, path: str, content: object = None, **parameters: str) -> Any:
        answer = self._service.ask(method, path, content, **parameters)
        if answer.status not in (200, 404):
            raise _refused(method, path, answer)
        return answer.content if answer.status == 200 else None


@functools.cache
def definition() -> Mapping[str, Any]:
    """What an index is made with: its settings and mappings."""
    content: Mapping[str, Any] = json.loads(Path(__file__).with_name("sessions_index.json").read_text("utf-8"))
    return content


def _reason(answer: Answer) -> str:
    error = answer.content.get("error") if isinstance(answer.content, Mapping) else None
    return str(error.get("type")) if isinstance(error, Mapping) else "no reason"


def _refused(method: str, path: str, answer: Answer) -> SearchRefused:
    return SearchRefused(f"the search index answered {answer.status} to {method} {path}: {_reason(answer)}")
