"""The searched text of a row, folded commands, and snippets."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb.domain.session_text import command_snippet, fold, searchable_text, snippet, whole_paths
from ctrlb.domain.words import has_term, parse_term, words_of
from tests.cpu_time import cpu_s

UPLOAD_BYTES = 4 * 1024 * 1024


def test_a_json_body_is_its_decoded_keys_and_values_in_order() -> None:
    body = json.dumps({"command": "cd x\npytest -q", "list": [1, 2.50, None, True, {"deep": "é"}], "empty": {}})
    expected = "command\ncd x\npytest -q\nlist\n1\n2.5\nnull\ntrue\ndeep\né\nempty"
    assert searchable_text("", body) == expected


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"a": 1, "a": 2}', "a\n1\na\n2"),
        ('{"n": 1.50e400, "m": NaN}', "n\n1.50e400\nm\nNaN"),
        ('["x", ["y"], "z"]', "x\ny\nz"),
        ('"a\\tstring"', "a\tstring"),
        ('{"cut": "off', '{"cut": "off'),
        ("[INFO] started", "[INFO] started"),
        ("12", "12"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_a_body_is_read_as_json_only_if_it_is_json(body: str, text: str) -> None:
    assert searchable_text("", body) == text


def test_the_command_comes_before_the_body() -> None:
    assert searchable_text("git status", "clean") == "git status\nclean"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("\x1b[1;31mFAILED\x1b[0m test", "FAILED test"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "alink"),
        ("\x1b(Bplain \x1b7x \x1bPdata\x1b\\y", "plain x y"),
        ("\x1b]never ended", "never ended"),
        ("tab\tline\nnul\x00bell\x07return\r.", "tab\tline\nnul bell return ."),
        ("cafe\u0301", "café"),
        ('{"half": "\\ud800"}', "half\n?"),
    ],
)
def test_escapes_controls_and_decompositions_are_gone(body: str, text: str) -> None:
    assert searchable_text("", body) == text


def test_a_folded_command_has_single_spaces_and_keeps_everything_else() -> None:
    assert fold("  go\t test \\\n  ./...  'A  %*'\n") == "go test \\ ./... 'A %*'"


@settings(derandomize=True, max_examples=500, deadline=None)
@given(
    command=st.lists(st.sampled_from(["a", "b", "é", " ", "\t\n", "go"]), min_size=40, max_size=90).map("".join),
    start=st.integers(0, 60),
    size=st.integers(1, 12),
)
def test_of_a_long_command_the_part_looked_for_is_shown_as_it_was_written(command: str, start: int, size: int) -> None:
    part = fold(command)[start : start + size].strip()
    shown = command_snippet(command, part, 40)
    assert shown in command
    assert len(shown) == min(len(command), 40)
    assert part in fold(shown)


def test_a_part_of_a_command_of_4_mebibytes_is_shown_within_seconds() -> None:
    command = "a " * (UPLOAD_BYTES // 2 - 10) + "needle"
    start = time.process_time()
    assert command_snippet(command, "a " * 5_000 + "needle", 20_000).endswith("a needle")
    assert time.process_time() - start < cpu_s(2)


PATHS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(['"', "\\", "]", "[,"])
)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(paths=PATHS, chars=st.integers(0, 60), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_paths_that_are_cut_are_the_first_of_them(
    paths: list[str], chars: int, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(paths, indent=indent, ensure_ascii=ascii_only)
    shown = whole_paths(text[:chars])
    found = json.loads(shown or "[]")
    assert found == paths[: len(found)]
    assert len(shown) <= max(chars, 2)
    if chars >= len(text):
        assert shown == text
    elif len(found) < len(paths):
        longer = json.dumps(paths[: len(found) + 1], indent=indent, ensure_ascii=ascii_only).rstrip("]").rstrip()
        assert len(longer) >= min(chars, len(text))


def test_a_snippet_shows_the_hit_in_its_middle_in_its_own_case() -> None:
    text = "x " * 500 + "Fatal ERROR here" + " y" * 500
    shown = snippet(text, parse_term("error here"))
    assert len(shown) == 300
    assert 140 <= shown.index("ERROR here") <= 150


@pytest.mark.parametrize(
    ("text", "term", "shown"),
    [
        ("short error", "error", "short error"),
        ("error" + " z" * 10, "error", "error z z z z z z z "),
        ("z " * 10 + "error", "error", " z z z z z z z error"),
        ("é" * 20 + " error ✅ " + "é" * 20, "error", "éééééé error ✅ ééééé"),
        ("errors, terror, x.error, error", "x.error", "rror, x.error, error"),
        ("no such word", "error", "no such word"),
        ("one " * 9 + "two", "one one one one one one", "one one one one one "),
    ],
)
def test_a_snippet_of_20_characters(text: str, term: str, shown: str) -> None:
    assert len(snippet(text, parse_term(term), 20)) <= 20
    assert snippet(text, parse_term(term), 20) == shown


def test_a_snippet_passes_words_that_only_contain_the_term() -> None:
    text = "errors " * 1_000 + "my.error " * 1_000 + "at last: error.log"
    assert "at last" in snippet(text, parse_term("error.log"))
    assert "my.error" in snippet(text, parse_term("error"))


NEAR_MISSES = [
    ("needle.py", "x.needle.py "),
    ("needle.py", "needle.pyc "),
    ("needle", "needles "),
    ("aaa", "a" * 100),
    ("the needle", "the "),
    ("foo foo foo foo foo foo needle", "foo "),
    ("aaa bbb", "aaa" + " " * 1_000),
    ("検索機", "検索"),
    ("élan vital", "élan "),
]


@pytest.mark.parametrize(("term", "near_miss"), NEAR_MISSES, ids=map(str, range(len(NEAR_MISSES))))
def test_a_snippet_shows_a_hit_at_the_end_of_4_mebibytes_within_a_second(term: str, near_miss: str) -> None:
    parsed = parse_term(term)
    text = near_miss * (UPLOAD_BYTES // len(near_miss.encode())) + f" at the very end: {term}!"
    snippet("warm é", parsed)
    start = time.process_time()
    shown = snippet(text, parsed)
    assert time.process_time() - start < cpu_s(1)
    assert shown.endswith(f"{term}!")
    assert has_term(words_of(shown), parsed)


def test_a_long_json_body_is_read_within_a_second() -> None:
    body = json.dumps({"stdout": "line of output\n" * 250_000, "list": ["x"] * 50_000})
    start = time.process_time()
    assert searchable_text("", body).startswith("stdout\nline of output\nline")
    assert time.process_time() - start < cpu_s(1)
