"""NFC in linear time: what it does to a text, and that no text takes long."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb.domain.normal_form import JOINER, MAX_MARKS, marks, nfc
from ctrlb.domain.resource_keys import resource_key
from ctrlb.domain.session_text import searchable_text
from tests.cpu_time import cpu_s

UPLOAD_BYTES = 4 * 1024 * 1024
# Two marks of different order; one that is two in NFC; a letter that is a letter and a mark in NFC; a sign; the joiner.
PIECES = ["\u0315\u0300" * 15, "\u0315\u0300", "\u0300" * 30, "\u0f73", "\u0958", "\u2500" * 31, JOINER, "é", "e", "か"]


def longest_run(text: str) -> int:
    """Of marks in a row, none of them a JOINER."""
    longest = run = 0
    for letter in text:
        run = run + 1 if unicodedata.category(letter)[0] == "M" and letter != JOINER else 0
        longest = max(longest, run)
    return longest


def test_marks_are_all_marks() -> None:
    ranges = marks()
    listed = {code for at in range(0, len(ranges), 3) for code in range(ord(ranges[at]), ord(ranges[at + 2]) + 1)}
    assert listed == {code for code in range(0x110000) if unicodedata.category(chr(code))[0] == "M"}


@settings(derandomize=True, max_examples=500, deadline=None)
@given(text=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join))
def test_a_text_is_in_nfc_once_and_for_all_and_no_run_of_marks_is_long(text: str) -> None:
    normal = nfc(text)
    assert nfc(normal) == normal == unicodedata.normalize("NFC", normal)
    assert longest_run(normal) <= MAX_MARKS
    if longest_run(unicodedata.normalize("NFD", text)) <= MAX_MARKS:
        assert normal == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "marks_in_a_row", ["\u0315\u0300", "\u0300\u0315", "\u0f73", "\u0300", "\u0315\u0300" * 15 + JOINER]
)
def test_four_mebibytes_of_marks_are_searched_within_seconds(marks_in_a_row: str) -> None:
    text = "a" + marks_in_a_row * ((UPLOAD_BYTES - 1) // len(marks_in_a_row.encode()))
    searchable_text("", "\u0300" * 40)  # the marks are made once
    start = time.process_time()
    searchable_text("", text)
    assert time.process_time() - start < cpu_s(2)


def test_a_path_of_many_marks_is_keyed_at_once() -> None:
    start = time.process_time()
    key = resource_key("src/" + "\u0315\u0300" * 1_900)
    assert time.process_time() - start < cpu_s(0.2)
    assert resource_key(key) == key
