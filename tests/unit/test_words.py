"""What a word is and what a term hits: the vectors, and a tokenizer that cuts letter by letter."""

import json
import time
import unicodedata
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctrlb.domain import term_places
from ctrlb.domain.errors import Invalid
from ctrlb.domain.session_text import searchable_text
from ctrlb.domain.term_places import find_term
from ctrlb.domain.words import SCRIPTS_WITHOUT_SPACES, Term, has_term, lower, parse_term, plain, words_of, words_of_any
from tests.cpu_time import cpu_s

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "search_words.json").read_text(encoding="utf-8")
)["cases"]
LETTERS = "abAB09zé.+.+ _-,…Σİßя\u0301\n"
STRAY = "検索エか\u309a\u0e31\u0e48"
TEXTS = st.lists(st.text(LETTERS + STRAY, max_size=12) | st.just("+" * 60), max_size=4).map("".join)
CONTROLS = "\x00\x08\t\n\x1b[0m;"
SCRIPTS = "検索エーกำပြ々、"
SCRIPT_NAMES = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def is_inside(letter: str) -> bool:
    """Whether a word goes on with it; by the Unicode category, not by any pattern."""
    return unicodedata.category(letter)[0] in "LNM"


def is_of_script(letter: str) -> bool:
    return is_inside(letter) and (unicodedata.name(letter, "").startswith(SCRIPT_NAMES) or letter == "々")


def naive_words(text: str) -> list[str]:
    """Whole words of a plain text, cut letter by letter as the rule is written."""
    words: list[str] = []
    word = ""
    text = lower(text).replace("..", "  ") + " "
    for letter in text:
        if is_of_script(letter):
            words += [word.rstrip("."), letter] if word else [letter]
            word = ""
        elif is_inside(letter) or (word and letter in ".+"):
            word += letter
        elif word:
            words.append(word.rstrip("."))
            word = ""
    return words


def naive_hit(text: str, term: Term) -> bool:
    words = naive_words(text)
    if not term.dotted:
        words = [run for word in words for run in word.replace("+", ".").split(".") if run]
    wanted = list(term.words)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def expectation(text: str, term: str) -> str:
    try:
        parsed = parse_term(term)
    except Invalid:
        return "refused"
    return "hit" if has_term(words_of(searchable_text("", text)), parsed) else "miss"


@pytest.mark.parametrize("case", VECTORS, ids=map(str, range(len(VECTORS))))
def test_a_term_hits_what_the_vectors_say(case: dict[str, Any]) -> None:
    assert expectation(case["text"], case["term"]) == case["expect"], case["why"]


@settings(derandomize=True, max_examples=600, deadline=None)
@given(text=st.text(LETTERS, max_size=40), start=st.integers(0, 40), size=st.integers(3, 12))
def test_words_are_those_that_the_rule_cuts_letter_by_letter(text: str, start: int, size: int) -> None:
    text = plain(text)
    words = words_of(text)
    assert (words.wholes or words.runs).split() == naive_words(text)
    try:
        term = parse_term(text[start : start + size])
    except Invalid:
        return
    assert has_term(words, term) == naive_hit(text, term)


@settings(derandomize=True, max_examples=600, deadline=None)
@given(text=st.text("ab.+ 1" + CONTROLS) | st.text("aé漢." + CONTROLS))
@example(text="red\x1b[0m.\x00b")
def test_a_text_that_is_not_plain_has_the_words_of_the_plain_one(text: str) -> None:
    found, expected = words_of_any(text), words_of(plain(text))
    assert [column.split() for column in found] == [column.split() for column in expected]


@settings(derandomize=True, max_examples=600, deadline=None)
@given(text=st.text("abé" + SCRIPTS, max_size=20))
def test_every_letter_of_a_script_without_spaces_is_a_word(text: str) -> None:
    words = words_of(plain(text)).runs.split()
    letters = [letter for letter in plain(text) if is_of_script(letter) and unicodedata.category(letter)[0] != "M"]
    assert [word[0] for word in words if is_of_script(word[0])] == letters


@settings(derandomize=True, max_examples=1_000, deadline=None)
@given(text=TEXTS, start=st.integers(0, 40), size=st.integers(2, 12), part=st.sampled_from([1, 3, 4_096]))
@example(text="か\u309a1.2", start=2, size=3, part=4_096)
@example(text=f"x{'+' * 60}1.2 y 1.2", start=61, size=3, part=4_096)
@example(text="検\u0e31\u0301索 検索", start=5, size=2, part=4_096)
def test_a_term_is_found_in_a_text_exactly_when_it_hits_it(text: str, start: int, size: int, part: int) -> None:
    text = plain(text)
    for words in (text[start : start + size], "aab", "検索", "a.b"):
        try:
            term = parse_term(words)
        except Invalid:
            continue
        with mock.patch.object(term_places, "FIRST_PART_CHARS", part):
            place = find_term(text, term)
        assert (place is not None) == has_term(words_of(text), term)
        if place is not None:
            found = words_of(text[slice(*place)])
            assert (found.wholes if term.dotted else found.runs).split() == list(term.words)
            assert has_term(words_of(text[: place[1]]), term)
            assert not has_term(words_of(text[: place[0]]), term)


@pytest.mark.parametrize(
    ("text", "term", "expect"),
    [
        (f"x {'w' * 51} y left", "left", "hit"),
        (f"left {'w' * 51} hand", "left hand", "miss"),
        (f"see {'module.' * 9}py now", "module", "hit"),
        ("データ", "データ", "hit"),
        ("サーバーを再起動", "サーバー", "hit"),
        ("ไทย ภาษาไทย", "ภาษาไทย", "hit"),
        ("語", "語", "refused"),
        ("ok ✔\ufe0f passed", "passed", "hit"),
        ("a\x1b[31mred\x1b[0m fox", "ared fox", "hit"),
        ("\x1b]0;title\x07shown", "title", "miss"),
        ("one\x00two", "one two", "hit"),
        ("half \ud800 pair", "half pair", "hit"),
        ("", "word", "miss"),
        ("word", "", "refused"),
        ("x+word", "+word+", "miss"),
        ("word+", "+word+", "hit"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ", "hit"),
    ],
)
def test_a_term_hits_what_the_rule_says_beyond_the_vectors(text: str, term: str, expect: str) -> None:
    assert expectation(text, term) == expect


def test_lower_case_keeps_the_length_of_every_letter() -> None:
    assert all(len(lower(chr(code))) == 1 for code in range(0x110000))


def test_lower_case_of_a_letter_does_not_depend_on_its_neighbours() -> None:
    letters = [chr(code) for code in range(0x110000)]
    assert lower("".join(letters)) == "".join(map(lower, letters))


def test_scripts_without_spaces_are_those_that_unicode_names() -> None:
    """But for the marks and the few letters that two scripts share: Unicode's names are all the library has."""
    ranges = SCRIPTS_WITHOUT_SPACES
    listed: set[int] = set()
    at = 0
    while at < len(ranges):
        last = at + 2 if ranges[at + 1 : at + 2] == "-" else at
        listed.update(range(ord(ranges[at]), ord(ranges[last]) + 1))
        at = last + 1
    named = {code for code in range(0x110000) if is_of_script(chr(code))}
    assert named - listed == set()
    letters = {code for code in listed if unicodedata.category(chr(code))[0] in "LN"}
    assert {unicodedata.name(chr(code)).split()[0] for code in letters - named} <= {
        "IDEOGRAPHIC",
        "HALFWIDTH",
        "HANGZHOU",
        "OLD",
        "VERTICAL",
        "YI",
        "HENTAIGANA",
        "KHITAN",
    }


@pytest.mark.parametrize("words", ["def search(self, term): return self.index.find(term)\n", "déjà vu … ", "+.+. "])
def test_four_mebibytes_are_cut_in_well_under_a_second(words: str) -> None:
    text = words * (4 * 1024 * 1024 // len(words.encode()))
    words_of(words)  # the marks are made once
    start = time.process_time()
    words_of(text)
    assert time.process_time() - start < cpu_s(1)
