"""The port SessionIndex: what is found, in which order, page by page."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctrlb.domain.errors import Invalid
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.session_text import MAX_COUNTED
from ctrlb.domain.words import parse_term
from ctrlb.ports import Found, SessionTaken
from tests.contract.session_adapters import SessionModel, SessionOpening, SessionStores
from tests.contract.session_rows import DATASET, NOW_US, SECOND_US, ran, said

VECTORS: list[dict[str, str]] = json.loads(
    (Path(__file__).parent.parent / "data" / "search_words.json").read_text(encoding="utf-8")
)["cases"]
EVERY_HIT: dict[str, Any] = {
    "user": None,
    "session_id": None,
    "tool": None,
    "order": "newest",
    "one_per_session": False,
    "offset": 0,
    "limit": 25,
}


@pytest.fixture
def stores(open_index: SessionOpening, tmp_path: Path) -> Iterator[SessionStores]:
    with open_index(tmp_path) as opened:
        yield opened


def write(stores: SessionStores, *rows: SessionRow, user: str = "ann", dataset: Dataset = DATASET) -> None:
    stores.store.write(dataset, user, rows, NOW_US)


def search(stores: SessionStores, term: str, **asked: Any) -> list[tuple[str, int]]:
    found = stores.index.search(DATASET, parse_term(term), **{**EVERY_HIT, **asked})
    return [(row.session_id, row.seq) for row in found.rows]


def commands(stores: SessionStores, text: str, user: str | None = None) -> list[str]:
    return [row.command for row in stores.index.commands(DATASET, text, user=user, offset=0, limit=25).rows]


@pytest.mark.parametrize("case", VECTORS, ids=map(str, range(len(VECTORS))))
def test_a_search_hits_what_the_vectors_say(stores: SessionStores, case: dict[str, str]) -> None:
    write(stores, said("s1", 1, case["text"]))
    try:
        found = "hit" if search(stores, case["term"]) else "miss"
    except Invalid:
        found = "refused"
    assert found == case["expect"], case["why"]


def test_a_dataset_without_rows_answers_empty(stores: SessionStores) -> None:
    assert stores.index.search(DATASET, parse_term("word"), **EVERY_HIT) == Found(0, [])
    assert stores.index.commands(DATASET, "go test", user=None, offset=0, limit=10) == Found(0, [])


def test_a_hit_carries_its_whole_row(stores: SessionStores) -> None:
    row = ran("s1", 1, "make  check", body="filler " * 1_000 + "needle", run_id="run", is_error=True)
    write(stores, row)
    assert stores.index.search(DATASET, parse_term("needle"), **EVERY_HIT).rows == [row]
    found = stores.index.commands(DATASET, "make check", user=None, offset=0, limit=10)
    assert found == Found(1, [replace(row, body="")])


def test_a_search_reads_commands_too(stores: SessionStores) -> None:
    write(stores, ran("s1", 1, "pytest -q tests/unit"), said("s1", 2, "nothing"))
    assert search(stores, "tests/unit") == [("s1", 1)]


def test_filters_leave_only_the_rows_of_that_user_session_and_tool(stores: SessionStores) -> None:
    write(stores, ran("s1", 1, "needle"), said("s1", 2, "needle"), said("s2", 3, "needle", tool_name="Read"))
    write(stores, ran("s3", 4, "needle"), user="bob")
    assert search(stores, "needle", user="ann") == [("s2", 3), ("s1", 2), ("s1", 1)]
    assert search(stores, "needle", session_id="s1") == [("s1", 2), ("s1", 1)]
    assert search(stores, "needle", tool="Bash") == [("s3", 4), ("s1", 1)]
    assert search(stores, "needle", tool="Bash", user="bob", session_id="s3") == [("s3", 4)]
    assert search(stores, "needle", tool="bash") == []
    assert search(stores, "needle", user="bob", session_id="s1") == []


def test_one_dataset_never_shows_the_rows_of_another(stores: SessionStores) -> None:
    for other in (Dataset("acme", "other"), Dataset("rival", "agent_sessions")):
        write(stores, ran("s1", 1, "needle in theirs"), dataset=other)
    assert search(stores, "needle") == []
    assert commands(stores, "needle") == []
    write(stores, ran("s1", 2, "needle in ours"))
    assert search(stores, "needle") == [("s1", 2)]
    assert commands(stores, "needle") == ["needle in ours"]


def test_a_row_that_was_replaced_is_found_by_its_new_words_only(stores: SessionStores) -> None:
    write(stores, ran("s1", 1, "export KEY=hunter2", body="secret.key text"), said("s1", 2, "hunter2"))
    write(stores, ran("s1", 1, "export KEY=[REDACTED]", body="redacted.key text"))
    assert search(stores, "hunter2") == [("s1", 2)]
    assert search(stores, "secret.key") == []
    assert search(stores, "redacted.key text") == [("s1", 1)]
    assert commands(stores, "hunter2") == []
    assert commands(stores, "KEY=") == ["export KEY=[REDACTED]"]


def test_a_row_sent_again_with_another_time_moves_to_its_place(stores: SessionStores) -> None:
    write(stores, said("s1", 1, "needle"), said("s1", 2, "needle"))
    write(stores, said("s1", 1, "needle", ts_us=NOW_US + 9 * SECOND_US))
    assert search(stores, "needle") == [("s1", 1), ("s1", 2)]


def test_an_upload_that_is_refused_leaves_nothing_to_find(stores: SessionStores) -> None:
    write(stores, said("s1", 1, "mine"))
    with pytest.raises(SessionTaken):
        write(stores, said("s2", 1, "needle"), said("s1", 2, "needle"), user="bob", dataset=DATASET)
    assert search(stores, "needle") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("go test ./internal", True),
        ("test ./int", True),
        ("Go test", False),
        ("100% *?", True),
        ("100%_", False),
        ('say "it\'s"', True),
        ("C:\\new", True),
        ("C:/new", False),
        ("é日本", True),
        ("日本", True),
        ("g", True),
        ("%", True),
        ("_", False),
        ('"', True),
        ("😀", True),
        ("AND", True),
        ("NEAR(", True),
    ],
)
def test_a_command_is_found_by_any_part_of_it_in_its_own_case(stores: SessionStores, text: str, found: bool) -> None:
    command = 'go  test\t./internal\n100% *? say "it\'s"  C:\\new é日本 😀 AND NEAR('
    write(stores, ran("s1", 1, command), said("s1", 2, "", command=command))
    assert commands(stores, text) == ([command] if found else [])


@pytest.mark.parametrize(
    ("command", "text", "found"),
    [
        ("abc bcd", "abcd", False),
        ("bca abc cab", "abca", False),
        ("make " + "test " * 100 + "lint", "test " * 100 + "lint", True),
        ("make " + "test " * 100 + "lint", "test " * 100 + "link", False),
        ("make " + "test " * 99 + "lint " + "test " * 100, "test " * 100 + "lint", False),
    ],
    ids=map(str, range(5)),
)
def test_a_command_that_has_only_the_pieces_of_a_text_is_not_found(
    stores: SessionStores, command: str, text: str, found: bool
) -> None:
    write(stores, ran("s1", 1, command))
    assert commands(stores, text) == ([command] if found else [])


def test_a_phrase_is_found_by_all_of_its_words_however_many(stores: SessionStores) -> None:
    words = [f"word{number}" for number in range(60)]
    swapped = [*words[:40], words[41], words[40], *words[42:]]
    write(stores, said("s1", 1, " ".join(words)), said("s1", 2, " ".join(swapped)), said("s2", 3, " ".join(words)))
    write(stores, ran("s3", 4, " ".join(words[:30]), body=" ".join(words[30:])))
    for count in (15, 16, 17, 40):
        assert search(stores, " ".join(words[:count])) == [("s3", 4), ("s2", 3), ("s1", 2), ("s1", 1)]
    assert search(stores, " ".join(words[:41])) == [("s3", 4), ("s2", 3), ("s1", 1)]
    assert search(stores, " ".join(words), session_id="s1") == [("s1", 1)]
    assert search(stores, " ".join(words), one_per_session=True, limit=1, offset=1) == [("s2", 3)]
    assert search(stores, " ".join(words[:59]) + " Word60") == []
    dotted = [f"a.b{number}" for number in range(20)]
    write(stores, said("s4", 5, " ".join(dotted)))
    assert search(stores, " ".join(dotted)) == [("s4", 5)]
    assert search(stores, " ".join([*dotted[:19], "a.b"])) == []


def test_commands_are_those_of_the_user_asked_for(stores: SessionStores) -> None:
    write(stores, ran("s1", 1, "make a"))
    write(stores, ran("s2", 2, "make b"), user="bob")
    assert commands(stores, "make") == ["make b", "make a"]
    assert commands(stores, "make", user="ann") == ["make a"]
    assert commands(stores, "ma", user="bob") == ["make b"]


def test_rows_uploaded_late_stand_at_their_own_time(stores: SessionStores) -> None:
    for day in (5, 1, 9, 3):
        write(stores, said(f"s{day}", 1, "needle", ts_us=NOW_US + day * 86_400 * SECOND_US))
    assert search(stores, "needle", order="oldest") == [("s1", 1), ("s3", 1), ("s5", 1), ("s9", 1)]


def same_time_rows() -> list[SessionRow]:
    """More rows in one second than a second is meant for, more than are counted, and some around them."""
    shuffled = random.Random(7)
    rows = [
        said(f"s{shuffled.randrange(40):02}", seq, "needle", ts_us=NOW_US + shuffled.choice((0, 0, 1, 2)))
        for seq in range(MAX_COUNTED + 500)
    ]
    around = [said("around", seq, "needle", ts_us=NOW_US + seq * 300_000, block_idx=1) for seq in range(-20, 40)]
    shuffled.shuffle(rows)
    return [*rows[:5_000], *around, *rows[5_000:]]


def test_pages_are_in_exact_order_however_many_rows_share_a_time(stores: SessionStores) -> None:
    model = SessionModel()
    rows = same_time_rows()
    for at in range(0, len(rows), 500):
        write(stores, *rows[at : at + 500])
        model.write(DATASET, "ann", rows[at : at + 500], NOW_US)
    term = parse_term("needle")
    for order in ("newest", "oldest"):
        for one_per_session in (False, True):
            for offset in (0, 7, 25, 39, 4_090, 5_000, 9_975):
                asked = {**EVERY_HIT, "order": order, "one_per_session": one_per_session, "offset": offset}
                found, expected = stores.index.search(DATASET, term, **asked), model.search(DATASET, term, **asked)
                assert found.rows == expected.rows, asked
                assert found.total == min(expected.total, MAX_COUNTED + 1)
