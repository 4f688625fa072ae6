"""A dataset's search index made anew from the sessions table, while uploads go on and search is asked.

A new index is made and filled; from then on the function behind the table's stream writes to both. Each version of a
row is then in the new index: that function looked after the index was there, or the row was in the table by then,
where this reads it, with every write that has returned. Versions decide between the two, so nothing has to wait.

How far the reading is stands with the new index, so that whoever ends it, and wherever it is run again, it goes on.
"""

from collections.abc import Callable

from ctrlb.adapters.aws_client import StoreRefused
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.opensearch import SearchRefused
from ctrlb.adapters.opensearch_indices import OpenSearchIndices
from ctrlb.adapters.opensearch_writer import OpenSearchWriter
from ctrlb.adapters.search_filling import Filling, Progress
from ctrlb.domain.errors import NotFound, Unavailable
from ctrlb.domain.rows import Dataset
from ctrlb.ports import Clock

COUNT_BUDGET_S = 120.0
"""An index shows what was written within a second or, in a serverless collection, within a minute."""
COUNT_PAUSE_MS = 1_000


class OpenSearchRebuild:
    """The port SearchRebuild on the sessions table and OpenSearch."""

    def __init__(
        self,
        table: Table,
        fetch: Callable[[str], bytes],
        indices: OpenSearchIndices,
        writer: OpenSearchWriter,
        clock: Clock,
    ) -> None:
        """`fetch` gets the object that holds what a row's item cannot."""
        self._table = table
        self._fetch = fetch
        self._indices = indices
        self._writer = writer
        self._clock = clock

    def run(self, dataset: Dataset, tell: Callable[[str], None]) -> None:
        """See SearchRebuild.run. Raises NotFound when the dataset has neither rows nor an index."""
        try:
            self._run(dataset, tell)
        except (SearchRefused, StoreRefused) as fault:  # leave to do it is missing, or what was named is not there
            raise Unavailable(f"{fault}; run it again, and it goes on where it was") from fault

    def _run(self, dataset: Dataset, tell: Callable[[str], None]) -> None:
        found = self._indices.of(dataset)
        if found.replaced is not None:
            self._indices.remove(found.replaced)
            tell(f"removed {found.replaced}, which a rebuild had replaced; run it again for another")
            return
        index = found.next
        if index is None:
            for stray in found.strays:
                self._indices.remove(stray)
            index = self._indices.make_next(dataset, found)
        progress = self._filled(dataset, index, tell)
        if found.live is None and progress.read == 0:
            self._indices.remove(index)
            raise NotFound(f"nothing was uploaded to a dataset {dataset.name} of a workspace {dataset.workspace}")
        self._check(index, progress, tell)
        self._replace(dataset, index, tell)

    def _filled(self, dataset: Dataset, index: str, tell: Callable[[str], None]) -> Progress:
        filling = Filling(
            dataset,
            Progress.of(self._indices.progress(index)),
            table=self._table,
            fetch=self._fetch,
            writer=self._writer,
            clock=self._clock,
            note=lambda progress: self._indices.note_progress(index, progress.noted()),
            tell=tell,
        )
        tell(f"filling {index}: {filling.progress}")
        filling.run()
        tell(f"filled {index}: {filling.progress}")
        return filling.progress

    def _check(self, index: str, progress: Progress, tell: Callable[[str], None]) -> None:
        """Raise Unavailable unless the index has as many rows as were read; then it is filled anew the next time."""
        expected = progress.read - progress.refused
        end_s = self._clock.elapsed_s() + COUNT_BUDGET_S
        while (count := self._indices.count(index)) < expected:
            if self._clock.elapsed_s() > end_s:
                self._indices.note_progress(index, Progress().noted())
                raise Unavailable(
                    f"{index} has {count:,} rows, and {expected:,} were read, so it does not take the old one's place "
                    "(were rows removed meanwhile?); run it again, and they are read anew"
                )
            self._clock.wait_ms(COUNT_PAUSE_MS)
        tell(f"{index} has {count:,} rows, {expected:,} of them read from the table")

    def _replace(self, dataset: Dataset, index: str, tell: Callable[[str], None]) -> None:
        """Have the index searched, and remove the old one once that is seen to be so."""
        found = self._indices.of(dataset)
        if found.live is None:
            self._indices.make_live(dataset, found)
            found = self._indices.of(dataset)
        if found.next == index:
            self._indices.replace(dataset, found)
            found = self._indices.of(dataset)
        if found.live != index:
            raise Unavailable(f"{index} was not taken, because the indices were changed meanwhile; run it again")
        tell(f"{index} is searched from now on")
        if found.replaced is not None:
            self._indices.remove(found.replaced)
            tell(f"removed {found.replaced}")
