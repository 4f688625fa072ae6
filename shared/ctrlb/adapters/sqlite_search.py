"""One page of hits from the index, in exact order, however many hits there are.

The order is (time, session, seq, block), but only ids can be read in order, and they know the time to a second.
So the page's last row by id is looked up first, and only the hits around and before it are sorted.
"""

from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import Any

from ctrlb.adapters.sqlite_database import Select, SqliteDatabase
from ctrlb.adapters.sqlite_index import EVERYWHERE, IdRange
from ctrlb.adapters.sqlite_session_rows import JOINED_ROWS, columns, session_row
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.session_text import MAX_COUNTED
from ctrlb.ports import Found, Order

_DATASET = "SELECT id, displaced FROM datasets WHERE workspace = ? AND name = ?"
_COUNT = f"SELECT count(*) FROM ({{hits}} LIMIT {MAX_COUNTED + 1})"
_LAST_OF_PAGE = "{hits} ORDER BY id {direction} LIMIT 1 OFFSET :before"
_ONE_OF_EACH_SESSION = """
SELECT {furthest}(hit.id) FROM ({hits}) AS hit CROSS JOIN session_rows ON session_rows.id = hit.id
GROUP BY session_rows.session
"""
_JOINED_HITS = """
FROM ({hits}) AS hit
CROSS JOIN session_rows ON session_rows.id = hit.id CROSS JOIN sessions ON sessions.id = session_rows.session
"""
_ORDER = """
ORDER BY session_rows.ts_us {direction}, sessions.session_id {direction}, session_rows.seq {direction},
    session_rows.block_idx {direction}
"""
_EACH_HIT = f"SELECT session_rows.id {_JOINED_HITS} {_ORDER} LIMIT :limit OFFSET :offset"
_FIRST_OF_EACH_SESSION = f"""
SELECT id FROM (
    SELECT
        session_rows.id, ts_us, session_id,
        row_number() OVER (
            PARTITION BY session
            ORDER BY ts_us {{direction}}, seq {{direction}}, block_idx {{direction}}
        ) AS place
    {_JOINED_HITS}
) WHERE place = 1 ORDER BY ts_us {{direction}}, session_id {{direction}} LIMIT :limit OFFSET :offset
"""
_ROWS = f"SELECT {{columns}} FROM {JOINED_ROWS} WHERE session_rows.id IN ({{chosen}}) {_ORDER}"
_WITH_BODY = columns(paths="''", extra="''")
_WITHOUT_BODY = columns(paths="''", extra="''", body="''")


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for in the index of a dataset."""

    hits: str
    """The query of `sqlite_index` that finds the ids."""
    match: str
    text: str = ""
    """What hits are to have, where the query cannot tell by `match`."""
    user: str | None = None
    """Whose rows, where the query cannot tell by `match`."""
    order: Order = "newest"
    one_per_session: bool = False
    with_bodies: bool = False


def search_page(database: SqliteDatabase, dataset: Dataset, search: Search, offset: int, limit: int) -> Found:
    """The hits from `offset` on, at most `limit`, and how many there are; all as of one moment."""
    with database.one_moment() as select:
        known = select(_DATASET, (dataset.workspace, dataset.name))
        if not known:
            return Found(0, [])
        [(dataset_id, displaced)] = known
        reader = _Reader(select, search, dataset_id, displaced)
        total, ids = reader.count(offset + limit)
        return Found(total, reader.rows(ids, offset, limit) if offset < total else [])


class _Reader:
    """The queries of one search."""

    def __init__(self, select: Select, search: Search, dataset_id: int, displaced: int) -> None:
        self._rows_of = select
        self._search = search
        self._displaced = displaced
        self._newest = search.order == "newest"
        self._hits = search.hits.format(dataset=dataset_id)

    def count(self, reach: int) -> tuple[int, IdRange]:
        """How many results there are, counted up to the cap, and where the first `reach` of them are."""
        return self._count_sessions(reach) if self._search.one_per_session else self._count_hits(reach)

    def _count_hits(self, reach: int) -> tuple[int, IdRange]:
        [(total,)] = self._select(_COUNT)
        if reach >= total:
            return total, EVERYWHERE
        [(last,)] = self._select(_LAST_OF_PAGE, before=reach - 1)
        return total, IdRange.around(last, self._newest, self._displaced)

    def _count_sessions(self, reach: int) -> tuple[int, IdRange]:
        ids = [row_id for (row_id,) in self._select(_ONE_OF_EACH_SESSION)]
        total = min(len(ids), MAX_COUNTED + 1)
        if reach >= len(ids):
            return total, EVERYWHERE
        last = (nlargest if self._newest else nsmallest)(reach, ids)[-1]
        return total, IdRange.around(last, self._newest, self._displaced)

    def rows(self, ids: IdRange, offset: int, limit: int) -> list[SessionRow]:
        """The page's rows in order; no hit outside of `ids` comes before them."""
        chosen = _FIRST_OF_EACH_SESSION if self._search.one_per_session else _EACH_HIT
        what = _WITH_BODY if self._search.with_bodies else _WITHOUT_BODY
        statement = _ROWS.replace("{chosen}", chosen).replace("{columns}", what)
        found = self._select(statement, ids, offset=offset, limit=limit)
        return [session_row(values) for values in found]

    def _select(self, statement: str, ids: IdRange = EVERYWHERE, **values: int) -> list[tuple[Any, ...]]:
        direction, furthest = ("DESC", "max") if self._newest else ("ASC", "min")
        return self._rows_of(
            statement.format(hits=self._hits, direction=direction, furthest=furthest),
            {
                "match": self._search.match,
                "text": self._search.text,
                "user": self._search.user,
                "low": ids.low,
                "high": ids.high,
                **values,
            },
        )
