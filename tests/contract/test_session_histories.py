"""The ports SessionStore and SessionIndex: any history of uploads is found as the plainest model finds it."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.words import parse_term
from ctrlb.ports import SessionStore, SessionTaken
from tests.contract.session_adapters import SessionModel, SessionOpening
from tests.contract.session_rows import DATASET, NOW_US, SECOND_US, said

WORDS = ["needle", "hay", "src/app.py", "app", "py", "x.app.py", "self.find(needle)", "hay needle", "C++", "検索", "é"]
TERMS = ["needle", "hay", "app", "app.py", "src/app.py", "hay needle", "needle hay", "c++", "検索", "find needle"]
PARTS = ["needle", "app.py", "n", "py n", "hay needle", "/app", "検"]
USERS = ["ann", "bob"]
DATASETS = [DATASET, Dataset("acme", "other"), Dataset("rival", "agent_sessions")]
TIMES_US = st.one_of(
    st.integers(0, 3), st.integers(0, 3 * SECOND_US), st.integers(-(10**6), 10**6).map(lambda s: s * SECOND_US)
).map(NOW_US.__add__)
BODIES = st.lists(st.sampled_from(WORDS), max_size=4).map("  ".join)
ROWS = st.builds(
    said,
    session_id=st.sampled_from(["s1", "s2", "s3", "s4"]),
    seq=st.integers(0, 5),
    block_idx=st.integers(0, 1),
    ts_us=TIMES_US,
    body=BODIES.flatmap(lambda text: st.sampled_from([text, json.dumps({"text": text})])),
    command=BODIES,
    block_type=st.sampled_from(["text", "tool_use", "tool_use"]),
    tool_name=st.sampled_from(["", "Bash", "Read"]),
)
UPLOADS = st.tuples(
    st.sampled_from(DATASETS), st.sampled_from(USERS), st.lists(ROWS, max_size=8, unique_by=lambda row: row.identity)
)
SEARCHES = st.fixed_dictionaries(
    {
        "user": st.sampled_from([None, None, *USERS]),
        "session_id": st.sampled_from([None, None, None, "s1", "s2"]),
        "tool": st.sampled_from([None, None, None, "Bash", ""]),
        "order": st.sampled_from(["newest", "oldest"]),
        "one_per_session": st.booleans(),
        "offset": st.integers(0, 6),
        "limit": st.integers(1, 6),
    }
)


def taken_session(store: SessionStore, dataset: Dataset, user: str, rows: list[SessionRow]) -> str | None:
    try:
        store.write(dataset, user, rows, NOW_US)
    except SessionTaken as taken:
        return taken.session_id
    return None


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    uploads=st.lists(UPLOADS, min_size=1, max_size=8),
    again=st.lists(st.integers(0, 7), max_size=3),
    searches=st.lists(st.tuples(st.sampled_from(TERMS), SEARCHES), min_size=4, max_size=8),
    parts=st.lists(st.tuples(st.sampled_from(PARTS), SEARCHES), min_size=2, max_size=4),
)
def test_any_history_of_uploads_is_found_as_the_model_finds_it(
    open_index: SessionOpening,
    uploads: list[tuple[Dataset, str, list[SessionRow]]],
    again: list[int],
    searches: list[tuple[str, dict[str, Any]]],
    parts: list[tuple[str, dict[str, Any]]],
) -> None:
    model = SessionModel()
    resent = [uploads[number % len(uploads)] for number in again]
    with tempfile.TemporaryDirectory() as folder, open_index(Path(folder)) as stores:
        for dataset, user, rows in uploads + resent:
            taken = taken_session(model, dataset, user, rows)
            assert taken_session(stores.store, dataset, user, rows) == taken
        for dataset in DATASETS:
            for words, asked in searches:
                term = parse_term(words)
                assert stores.index.search(dataset, term, **asked) == model.search(dataset, term, **asked)
            for text, asked in parts:
                page = {name: asked[name] for name in ("user", "offset", "limit")}
                assert stores.index.commands(dataset, text, **page) == model.commands(dataset, text, **page)
            for session_id in ("s1", "s2"):
                bounds = (dataset, session_id, 1, 4, 5, 10)
                assert stores.store.rows(*bounds) == model.rows(*bounds)
                assert stores.store.owner(dataset, session_id) == model.owner(dataset, session_id)
