"""The sessions' index on a real node: its words are the reference's, and its answers are the contract's."""

import json
import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctrlb.adapters.opensearch import Answer, OpenSearch
from ctrlb.adapters.opensearch_indices import definition
from ctrlb.adapters.opensearch_sessions import OpenSearchSessions
from ctrlb.domain.errors import Invalid
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import PIECE_CHARS, index_alias
from ctrlb.domain.session_text import MAX_COUNTED, fold, searchable_text
from ctrlb.domain.words import SCRIPTS_WITHOUT_SPACES, Term, has_term, parse_term, plain, words_of
from tests.opensearch.index import IndexOnNode
from tests.opensearch.node import OpenSearchNode

pytestmark = pytest.mark.opensearch

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "search_words.json").read_text(encoding="utf-8")
)["cases"]
NOW_US = 1_793_000_000_000_000
MEBIBYTE = 1024 * 1024
# Letters that Java knows as Python does, whichever of the two has the newer Unicode.
OLD_LETTERS = [
    chr(code) for code in range(0x80, 0x30000) if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs", "Co")
]
ASCII = "abcXYZ019.+.+ _-/\n\t\"'\\"
MIXED = [*ASCII, *"éßİΣıσς\u0301\u0e33\u0e01กำ検索エー々、စာ한국𝒜\U0001f600"]
ALPHABETS: dict[str, Sequence[str]] = {
    "ascii": ASCII,
    "dots": "ab.+ ",
    "mixed": MIXED,
    "unicode": [*OLD_LETTERS, *(ASCII * (len(OLD_LETTERS) // 40))],
}


@pytest.fixture
def index(opensearch_node: OpenSearchNode, request: pytest.FixtureRequest) -> Iterator[IndexOnNode]:
    """The index of a dataset of the test's own."""
    index = IndexOnNode(opensearch_node.url, Dataset("acme", request.node.nodeid))
    yield index
    index.remove_all()


def row(seq: int, body: str = "", **columns: Any) -> SessionRow:
    row = SessionRow(ts_us=NOW_US + seq, session_id="one", seq=seq, body=body, body_len=len(body))
    return replace(row, **columns)


def call(seq: int, command: str) -> SessionRow:
    return row(seq, block_type="tool_use", tool_name="Bash", command=command)


def random_text(rng: random.Random, alphabet: Sequence[str]) -> str:
    """A text with short words, and now and then one that is about as long as a word may be."""
    letters = rng.choices(alphabet, k=rng.randrange(60))
    if rng.random() < 0.1:
        letters.append(rng.choice("xé\U0001d49c") * rng.randrange(48, 53))
    return "".join(letters)


def reference(text: str) -> tuple[list[tuple[str, int]], list[str]]:
    """The runs of a text with their positions, and its dotted words in order."""
    words = words_of(plain(text))
    runs = [(run, place) for place, run in enumerate(words.runs.split()) if run != "+"]
    return runs, [word for word in words.wholes.split() if ("." in word or "+" in word) and word != "+"]


def check_tokens(text: str, tokens: list[tuple[str, int]]) -> None:
    """Each run is where the reference has it, and each dotted word is where its first run is."""
    runs, dotted = reference(text)
    assert [token for token in tokens if not set(token[0]) & {".", "+"}] == runs, repr(text)
    wholes = [token for token in tokens if set(token[0]) & {".", "+"}]
    assert [word for word, _ in wholes] == dotted, repr(text)
    at = {place: run for run, place in runs}
    for word, place in wholes:
        parts = word.replace("+", " ").replace(".", " ").split()
        assert [at.get(place + number) for number in range(len(parts))] == parts, repr(text)


def test_the_letters_written_without_spaces_are_the_references() -> None:
    codes = [f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\x{{{ord(c):x}}}" for c in SCRIPTS_WITHOUT_SPACES]
    scripts = "".join(code.replace("\\u002d", "-") for code in codes)
    inside = rf"a-zA-Z0-9[\p{{L}}\p{{N}}\p{{M}}&&[^{scripts}]]"
    pattern = rf"[{inside}](?:[.+{inside}]*[+{inside}])?|[\p{{L}}\p{{N}}&&[{scripts}]]\p{{M}}*"
    assert definition()["settings"]["index"]["analysis"]["tokenizer"]["words"]["pattern"] == pattern


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_index_has_the_words_of_the_reference(index: IndexOnNode, alphabet: str) -> None:
    index.write([row(0)])
    rng = random.Random(f"words {alphabet}")
    texts = [random_text(rng, ALPHABETS[alphabet]) for _ in range(2_000)] + [case["text"] for case in VECTORS]
    for start in range(0, len(texts), 100):
        some = [plain(text) for text in texts[start : start + 100]]
        # One text for each: a place that nothing fills, far longer than any text, keeps them apart.
        for text, tokens in zip(some, _apart(index, some), strict=True):
            check_tokens(text, tokens)


def _apart(index: IndexOnNode, texts: Sequence[str]) -> list[list[tuple[str, int]]]:
    """The tokens of each text, positions from 0, out of one call: between them stand words that no text has."""
    tokens = index.analyzed("words", ["\n".join(f"{text}\nborder99" for text in texts)])
    parts: list[list[tuple[str, int]]] = [[]]
    first = 0
    for token, place in tokens:
        if token == "border99":
            parts.append([])
            first = place + 1
        else:
            parts[-1].append((token, place - first))
    return parts[:-1]


def test_searches_answer_the_vectors(index: IndexOnNode) -> None:
    index.write(row(number, case["text"]) for number, case in enumerate(VECTORS))
    for number, case in enumerate(VECTORS):
        try:
            term = parse_term(case["term"])
        except Invalid:
            assert case["expect"] == "refused", case
            continue
        hits = {found.seq for found in index.search(term, limit=len(VECTORS)).rows}
        assert (number in hits) == (case["expect"] == "hit"), case
        assert hits == _expected(term, [case["text"] for case in VECTORS]), case


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_searches_hit_what_the_reference_hits(index: IndexOnNode, alphabet: str) -> None:
    rng = random.Random(f"hits {alphabet}")
    texts = [plain(random_text(rng, ALPHABETS[alphabet])) for _ in range(300)]
    index.write(row(number, text) for number, text in enumerate(texts))
    looked = 0
    while looked < 150:
        text = rng.choice(texts)
        start = rng.randrange(len(text) + 1)
        try:
            term = parse_term(text[start : start + rng.randrange(3, 14)])
        except Invalid:
            continue
        looked += 1
        hits = {found.seq for found in index.search(term, limit=len(texts)).rows}
        expected = _expected(term, texts)
        if term.dotted and len(term.words) > 1:
            # The undotted words at the ends of such a phrase may be parts of dotted ones: either answer will do.
            assert hits >= expected, term
        else:
            assert hits == expected, term


def _expected(term: Term, texts: Sequence[str]) -> set[int]:
    return {number for number, text in enumerate(texts) if has_term(words_of(searchable_text("", text)), term)}


COMMANDS = [
    "grep -E 'a.*b|[c]+$' file.py",
    'echo "100%" | sed s/a/b/',
    "dir C:\\temp\\",
    "make\t\ttest  &&\nmake lint",
    "ls *",
    "日本語 --all",
    "cat \U0001f600.txt",
    "a",
    "ab",
    "",
]


@pytest.mark.parametrize(
    "text",
    [
        *(".*", "a.*b|[c]+$", '"100%"', "%", "*", "?", "_", "\\", "temp\\", "C:\\temp\\", "'a", "no such"),
        *("make test && make", "AB", "MAKE", "est", "st", "ab", "a", "t", "b"),
        *("語 -", "本", "\U0001f600", "\U0001f600.t"),
    ],
)
def test_a_command_is_found_by_any_part_of_it(index: IndexOnNode, text: str) -> None:
    index.write(call(seq, command) for seq, command in enumerate(COMMANDS))
    assert index.commands(text) == {seq for seq, command in enumerate(COMMANDS) if text in fold(command)}


def test_commands_are_found_by_random_parts_of_them(index: IndexOnNode) -> None:
    rng = random.Random(7)
    commands = [fold("".join(rng.choices("ab \\*%\"'.é😀", k=rng.randrange(12)))) for _ in range(300)]
    index.write(call(seq, command) for seq, command in enumerate(commands))
    for _ in range(200):
        text = fold("".join(rng.choices("ab \\*%\"'.é😀", k=rng.randrange(1, PIECE_CHARS + 2))))
        if text:
            assert index.commands(text) == {seq for seq, command in enumerate(commands) if text in command}


def test_a_long_part_of_a_command_is_found(index: IndexOnNode) -> None:
    command = " ".join(f"step-{number}" for number in range(2_000))
    index.write([call(0, command), call(1, command.replace("step-1999", "step-2000"))])
    assert index.commands(command[-10_000:]) == {0}


@pytest.mark.parametrize(
    "unit", ["def find(self): pass\n", "0123456789abcdef", "全文検索", "1.", "a+", "a.b ", '\\"\n', f"{'1.' * 499}1 "]
)
def test_a_body_of_four_mebibytes_is_indexed_and_found(index: IndexOnNode, unit: str) -> None:
    size = 4 * MEBIBYTE // len(unit.encode())
    body = f"first {unit * size} final"
    index.write([row(0, body), row(1, "final")])
    found = index.search(parse_term("final"), order="oldest")
    assert (found.total, found.rows[0].body, found.rows[1].seq) == (2, body, 1)
    # Whatever stands between two words keeps them apart, unless it is no word.
    assert index.search(parse_term("first final")).total == (not unit.strip('\\"\n'))


def test_hits_are_counted_exactly_up_to_the_cap(index: IndexOnNode) -> None:
    index.write(row(seq, "needle", session_id=f"s{seq % 20}") for seq in range(MAX_COUNTED))
    assert index.search(parse_term("needle")).total == MAX_COUNTED
    index.write(row(seq, "needle", session_id="s3") for seq in range(MAX_COUNTED, MAX_COUNTED + 2))
    assert index.search(parse_term("needle")).total == MAX_COUNTED + 1
    last_page = index.search(parse_term("needle"), offset=MAX_COUNTED - 25)
    assert [found.seq for found in last_page.rows] == list(range(26, 1, -1))
    first = index.search(parse_term("needle"), one_per_session=True, limit=3)
    assert first.total == 20
    assert [found.session_id for found in first.rows] == ["s3", "s19", "s18"]


def test_sessions_are_counted_exactly_up_to_the_cap(index: IndexOnNode) -> None:
    needle = parse_term("needle")
    for rows, total in ((9_999, 9_999), (MAX_COUNTED, MAX_COUNTED), (MAX_COUNTED + 9, MAX_COUNTED + 1)):
        index.write(row(seq, "needle", session_id=f"session {seq}") for seq in range(rows))
        assert index.search(needle, one_per_session=True).total == total


def test_a_field_that_nobody_mapped_is_kept_and_not_indexed(index: IndexOnNode) -> None:
    index.write([row(0, "needle", cwd="/somewhere", extra='{"cwd": {"a": 1}}')])
    path = f"/{index_alias(index.dataset)}/_mapping"
    [mapping] = index.service.ask("GET", path).content.values()
    assert set(mapping["mappings"]["properties"]) == set(definition()["mappings"]["properties"])
    assert index.search(parse_term("needle")).rows[0].cwd == "/somewhere"
    assert index.search(parse_term("somewhere")).total == 0


class RivalFirst(OpenSearch):
    """Lets a rival in between a search and the reading of its hits."""

    def __init__(self, url: str, rival: Callable[[], object]) -> None:
        super().__init__(url)
        self._rival = rival

    def ask(self, method: str, path: str, content: object = None, **parameters: str) -> Answer:
        if path.endswith("/_mget"):
            self._rival()
        return super().ask(method, path, content, **parameters)


def test_a_row_that_is_replaced_while_it_is_read_is_read_whole(
    index: IndexOnNode, opensearch_node: OpenSearchNode
) -> None:
    index.write([row(0, "needle in a haystack")])
    new = row(0, '{"the": "new needle"}', command="make")
    index.sessions = OpenSearchSessions(RivalFirst(opensearch_node.url, lambda: index.write([new])))
    assert index.search(parse_term("needle")).rows == [new]


def test_a_row_whose_index_is_removed_while_it_is_read_is_left_out(
    index: IndexOnNode, opensearch_node: OpenSearchNode
) -> None:
    index.write([row(0, "needle")])
    index.sessions = OpenSearchSessions(RivalFirst(opensearch_node.url, index.remove_all))
    assert index.search(parse_term("needle")).rows == []
