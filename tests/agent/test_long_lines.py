"""Lines that take long to read: cut to what is sent; and each upload gets further, however little time it has."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent.redacting.redaction import redact_row
from ctrlb_agent.uploading import long_texts, sending
from ctrlb_agent.uploading import transcript as reading
from ctrlb_agent.uploading.long_texts import MAX_CHARS, redacted_row
from tests.agent.bad_road import BadRoad
from tests.agent.transcripts import bodies, line
from tests.agent.uploads import add, numbered, texts, uploaded
from tests.laptop import Laptop

SECRET = "AKIA" + "Z7Q2M4X9T3B6W8RN"


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.skipped_s = 0.0
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + self.skipped_s)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that hold "slow" take 100 s to be redacted; returns those that were."""
    clock = Clock(monkeypatch)
    seen: list[str] = []

    def redact(columns: dict[str, Any], own: Sequence[Any] = ()) -> dict[str, Any]:
        seen.append(columns["body"])
        if "slow" in columns["body"]:
            clock.skipped_s += 100
        return redact_row(columns, own)

    monkeypatch.setattr(reading, "redact_row", redact)
    return seen


@pytest.mark.usefixtures("agent_home", "slow")
def test_a_line_that_costs_more_time_than_there_is_holds_no_upload_up_for_ever(
    laptop: Laptop, transcript: Path
) -> None:
    add(transcript, line("one"), line("slow"), line("two"), line("slow"), line("three"))
    with BadRoad(laptop.url) as road:
        reports = [uploaded(laptop, transcript, url=road.url, budget_s=60) for _ in range(3)]
    assert [report.reason for report in reports] == [sending.OUT_OF_TIME, sending.OUT_OF_TIME, ""]
    assert bodies(laptop, transcript.stem) == ["one", "slow", "two", "slow", "three"]


@pytest.mark.usefixtures("agent_home")
def test_what_was_read_is_sent_before_a_long_line_is_begun(
    laptop: Laptop, transcript: Path, slow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONG_LINE_BYTES", 1_000)
    add(transcript, *numbered(3), line("slow" * 500), line("after"))
    seen: list[int] = []

    def counted(request: Any) -> None:
        seen.append(len(slow))
        request.say(202, json.dumps({"accepted": len(request.road.rows[-1])}).encode())

    with BadRoad(laptop.url, then=counted) as road:
        uploaded(laptop, transcript, url=road.url, budget_s=60)
    assert [row["body"] for row in road.rows[0]] == texts(3)
    assert seen[0] == 3, "the long line was not begun when the others were sent"


@pytest.mark.usefixtures("agent_home", "slow")
def test_of_a_line_of_many_blocks_that_takes_too_long_the_store_says_what_was_not_read(
    laptop: Laptop, transcript: Path
) -> None:
    add(transcript, line("one", "slow", "two"), line("three"))
    for _ in range(2):
        uploaded(laptop, transcript, budget_s=60)
    unread = "[line 1 of the transcript was not read by ctrlb-agent: it took too long]"
    assert bodies(laptop, transcript.stem) == ["one", "slow", unread, "three"]


def cut(text: str, name: str = "body") -> tuple[str, list[str]]:
    """What is sent of a text, and the texts that were redacted."""
    seen: list[str] = []

    def redact(columns: dict[str, Any]) -> dict[str, Any]:
        seen.append(columns[name])
        return redact_row(columns)

    found: str = redacted_row({"session_id": "s", "seq": 1, name: text}, redact)[name]
    return found, seen


def in_json(text: str) -> str:
    return json.dumps({"file_path": "a", "content": text, "then": ["more"] * 1_000})


@pytest.mark.parametrize("wrapped", [str, in_json], ids=["text", "json"])
@pytest.mark.parametrize("filling", ["x" * 99 + "\n", "x" * 100, "Ab+/9" * 20], ids=["lines", "one-word", "base64"])
@pytest.mark.parametrize("before_cut", [-10, 1, 5, 19, 30, 4_000, 70_000])
def test_a_secret_at_the_cut_is_not_sent_in_part(
    monkeypatch: pytest.MonkeyPatch, wrapped: Any, filling: str, before_cut: int
) -> None:
    monkeypatch.setattr(long_texts, "MAX_CHARS", 100_000 + long_texts.DROPPED_CHARS)
    start = long_texts.MAX_CHARS - before_cut - len("a") - 12
    text = (filling * 2_000)[:start] + f" key={SECRET} " + filling * 1_500
    sent, seen = cut(wrapped(text))
    assert len(seen[0]) < long_texts.MAX_CHARS * 1.1
    assert "AKIAZ" not in sent
    assert sent.endswith("more characters]")


def test_json_that_is_cut_is_redacted_by_the_names_in_it_as_whole_json_is() -> None:
    value = {"env": [{"name": "DB_PASSWORD", "value": "hunter2 and more"}], "content": '\\n\n"é" ' * 1_000_000}
    sent, seen = cut(json.dumps(value))
    assert len(json.loads(seen[0])["content"]) < MAX_CHARS
    assert "hunter2" not in sent
    assert sent.startswith('{"env":[{"name":"DB_PASSWORD","value":"[REDACTED]"}],"content":"')


@pytest.mark.parametrize("name", ["body", "command"])
def test_what_is_missing_is_counted(name: str) -> None:
    kept = MAX_CHARS - long_texts.DROPPED_CHARS
    assert cut("x" * 9_000_000, name)[0] == "x" * kept + f"… [cut by ctrlb-agent: {9_000_000 - kept:,} more characters]"


def test_a_text_that_fits_is_not_touched() -> None:
    assert cut("x" * MAX_CHARS)[0] == "x" * MAX_CHARS


def test_hostile_json_is_cut_as_text() -> None:
    deep = "[" * (MAX_CHARS + 10)
    sent, seen = cut(deep)
    assert len(seen[0]) <= MAX_CHARS + len(long_texts.HERE)
    assert sent.startswith("[[[[")
