"""A user's own patterns of what is redacted: `redact.txt` in the state folder."""

import json
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent.redacting import user_patterns
from ctrlb_agent.redacting.redaction import redact, redact_row
from ctrlb_agent.redacting.secret_formats import REDACTED
from ctrlb_agent.redacting.user_patterns import OwnPattern, read_patterns
from tests.agent.programs import logged

SPARE_S = 60.0  # without a limit it would take years


@pytest.fixture
def patterns_of(agent_home: Path) -> "PatternsFile":
    return PatternsFile(agent_home)


class PatternsFile:
    """The user's file."""

    def __init__(self, home: Path) -> None:
        self._home = home
        home.mkdir()

    def __call__(self, *lines: str) -> tuple[OwnPattern, ...]:
        """The patterns of a file with these lines."""
        (self._home / "redact.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return read_patterns()

    def log(self) -> str:
        return logged(self._home)


def test_without_a_file_there_are_none(agent_home: Path) -> None:
    assert read_patterns() == ()


def test_what_a_pattern_matches_is_replaced(patterns_of: PatternsFile) -> None:
    own = patterns_of("# customers", "", r"ACME-\d+", r"(?i)project bluebird")

    assert redact("ACME-12 and Project Bluebird, # customers", own) == f"{REDACTED} and {REDACTED}, # customers"


def test_only_the_group_named_secret_is_replaced_where_there_is_one(patterns_of: PatternsFile) -> None:
    own = patterns_of(r"badge (?P<secret>\w+)")

    assert redact("badge x17, please", own) == f"badge {REDACTED}, please"


def test_they_are_tried_on_every_column_and_string_of_a_row(patterns_of: PatternsFile) -> None:
    own = patterns_of(r"ACME-\d+", r"line\none")
    row = {
        "session_id": "ACME-1",
        "body": json.dumps({"a": ["ACME-2"], "b": "line\none"}),
        "command": "run ACME-3",
        "paths": json.dumps(["ACME-4/x"]),
    }

    assert redact_row(row, own=own) == {
        "session_id": "ACME-1",
        "body": json.dumps({"a": [REDACTED], "b": REDACTED}),
        "command": f"run {REDACTED}",
        "paths": json.dumps([f"{REDACTED}/x"]),
    }


def test_a_line_that_is_no_pattern_is_logged_by_its_number_and_left_out(patterns_of: PatternsFile) -> None:
    own = patterns_of("# one", "(secret-thing", r"ACME-\d+", "[b-a]", "x" * 3000)

    assert [pattern.line for pattern in own] == [3]
    assert redact("ACME-1 (secret-thing", own) == f"{REDACTED} (secret-thing"
    for number in (2, 4, 5):
        assert f"redact.txt, line {number}:" in patterns_of.log()
    assert "secret-thing" not in patterns_of.log()


def test_a_file_that_is_no_text_is_taken_as_far_as_it_goes(patterns_of: PatternsFile, agent_home: Path) -> None:
    (agent_home / "redact.txt").write_bytes(b"\xef\xbb\xbfACME-\\d+\r\n\xff\xfe\r\n")

    assert redact("ACME-1", read_patterns()) == REDACTED


def test_a_pattern_that_matches_nothing_at_every_place_changes_nothing(patterns_of: PatternsFile) -> None:
    own = patterns_of("x*", "(?=a)", r"\b")

    assert redact("aaa bbb", own) == "aaa bbb"


def test_what_was_replaced_is_not_replaced_again(patterns_of: PatternsFile) -> None:
    own = patterns_of("REDACTED", r"\[RED", r"ED\] and", "A")

    once = redact("password=hunter2 and more", own)
    assert once == f"password={REDACTED} more"
    assert redact(once, own) == once


@given(st.sampled_from([".", r"\w+", ".*", "[A-Z]+", "R|D", r"\]", "a+", "[^a]", r"\s"]), st.text(max_size=60))
def test_redacting_twice_with_any_pattern_changes_nothing_more(expression: str, text: str) -> None:
    own = (OwnPattern(1, re.compile(expression)),)
    once = redact(text, own)

    assert redact(once, own) == once


def test_a_pattern_that_takes_too_long_is_given_up_and_the_others_go_on(patterns_of: PatternsFile) -> None:
    own = patterns_of(r"(a+)+$", r"ACME-\d+")
    before = signal.getsignal(signal.SIGALRM)

    started_s = time.monotonic()
    redacted = redact("a" * 60 + "! ACME-1", own)
    again = redact("a" * 60 + "! ACME-2", own)
    took_s = time.monotonic() - started_s

    assert redacted == again == "a" * 60 + f"! {REDACTED}"
    assert took_s < user_patterns.LIMIT_S + SPARE_S
    assert "redact.txt, line 1: took more than" in patterns_of.log()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_pattern_that_was_given_up_stays_so_until_the_file_is_another(patterns_of: PatternsFile) -> None:
    redact("a" * 60 + "!", patterns_of(r"(a+)+$"))

    assert [pattern.slow for pattern in read_patterns()] == [True]
    assert [pattern.slow for pattern in patterns_of(r"(a+)+$", "# better")] == [False]


def test_a_long_text_is_looked_at_in_pieces_that_end_with_a_line(patterns_of: PatternsFile) -> None:
    own = patterns_of(r"^ACME-\d+$", r"(?m)^ACME-\d+$")
    line = "ACME-123456789\n"
    text = line * 5_000

    assert redact(text, own) == f"{REDACTED}\n" * 5_000


def test_they_work_in_a_thread_too_without_the_limit(patterns_of: PatternsFile) -> None:
    own = patterns_of(r"ACME-\d+")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(redact("ACME-1", own)))
    thread.start()
    thread.join()

    assert found == [REDACTED]
