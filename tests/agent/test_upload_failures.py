"""Rows on which a server fails that takes others: they are found, keep no other back, and are not sent too often."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctrlb_agent import state
from ctrlb_agent.uploading import sending, spool
from ctrlb_agent.uploading.upload import Report
from tests.agent.bad_road import BadRoad, Mishap, Passenger, answer_is_lost, arrives, is_answered, is_lost
from tests.agent.transcripts import bodies, line, settings
from tests.agent.uploads import add, log, numbered, texts, uploaded
from tests.laptop import Laptop

pytestmark = pytest.mark.usefixtures("agent_home")

FAILURES = [is_answered(500), is_answered(502), is_answered(504), is_lost, is_answered(403, "blocked by a rule")]
KINDS = ["500", "502", "504", "cut", "nameless-403"]


def fails_on(texts: Sequence[str], failure: Mishap) -> Mishap:
    """A server that meets this failure whenever it gets one of these texts."""

    def mishap(request: Passenger) -> None:
        (failure if any(row["body"] in texts for row in request.road.rows[-1]) else arrives)(request)

    return mishap


def waiting(laptop: Laptop, road: BadRoad) -> list[list[str]]:
    """The texts that wait, request by request."""
    files = spool.waiting(settings(laptop, road.url))
    return [[row["body"] for row in json.loads(spool.read(file).body)] for file in files]


def grow_old(laptop: Laptop, road: BadRoad) -> None:
    """Let two weeks and a minute go by for all that waits."""
    then_s = time.time() - spool.KEPT_WHEN_FAILING_S - 60
    for file in spool.waiting(settings(laptop, road.url)):
        os.utime(file, (then_s, then_s))


@pytest.mark.parametrize("failure", [*FAILURES, answer_is_lost], ids=[*KINDS, "answer-lost"])
def test_rows_on_which_the_server_failed_once_are_sent_again_at_once(
    laptop: Laptop, transcript: Path, failure: Mishap
) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, failure) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")
    assert [[row["body"] for row in rows] for rows in road.rows] == [texts(3), [], ["text 0"], ["text 1", "text 2"]]
    assert bodies(laptop, transcript.stem) == texts(3)


@pytest.mark.parametrize("failure", FAILURES, ids=KINDS)
def test_a_row_on_which_the_server_fails_keeps_no_other_back(laptop: Laptop, transcript: Path, failure: Mishap) -> None:
    other = transcript.with_name(f"other-{transcript.name}")
    add(transcript, *numbered(500))
    with BadRoad(laptop.url, then=fails_on(["text 7"], failure)) as road:
        report = uploaded(laptop, transcript, url=road.url)
        assert report._replace(reason="") == Report(499, 1, 0, "")
        assert report.reason
        assert len(road.rows) < 40
        assert waiting(laptop, road) == [["text 7"]]
        add(other, *numbered(3))
        assert uploaded(laptop, other, url=road.url).rows_sent == 3
        assert waiting(laptop, road) == [["text 7"]], "it may be taken later"
    assert bodies(laptop, transcript.stem) == [text for text in texts(500) if text != "text 7"]
    assert bodies(laptop, other.stem) == texts(3)
    assert f"the server fails on {transcript.stem} seq 8 block 0" in log()


def test_a_row_that_is_taken_at_last_is_stored(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, then=fails_on(["text 1"], is_answered(502))) as road:
        uploaded(laptop, transcript, url=road.url)
        road.then = arrives
        assert uploaded(laptop, transcript, url=road.url) == Report(1, 0, 0, "")
        assert waiting(laptop, road) == []
    assert bodies(laptop, transcript.stem) == texts(3)


def test_a_row_that_keeps_failing_is_tried_ever_more_rarely_and_set_aside_after_two_weeks(
    laptop: Laptop, transcript: Path
) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, then=fails_on(["text 1"], is_answered(502))) as road:
        for _ in range(spool.FAILURES_WITHOUT_WAIT + 3):
            uploaded(laptop, transcript, url=road.url)
        tries = sum("text 1" in [row["body"] for row in rows] for rows in road.rows)
        uploaded(laptop, transcript, url=road.url)
        assert sum("text 1" in [row["body"] for row in rows] for rows in road.rows) == tries
        grow_old(laptop, road)
        uploaded(laptop, transcript, url=road.url)
        assert waiting(laptop, road) == []
    [kept] = Path(state.path("spool", "broken", "any")).parent.glob("*.batch")
    assert [row["body"] for row in json.loads(spool.read(str(kept)).body)] == ["text 1"]
    assert f"set {kept.name} aside: no" in log()


def test_a_row_that_kills_the_server_is_told_from_a_server_that_is_away(laptop: Laptop, transcript: Path) -> None:
    """It fails for good, and so does all that follows it, until somebody has started the server again."""

    def kills(request: Passenger) -> None:
        request.road.then = is_lost
        request.vanish()

    add(transcript, *numbered(4))
    others = [transcript.with_name(f"other-{number}-{transcript.name}") for number in range(8)]
    with BadRoad(laptop.url, then=fails_on(["text 2"], kills)) as road:
        for turn in [transcript, *others]:
            if turn is not transcript:
                add(turn, line(turn.stem))
            road.then = fails_on(["text 2"], kills)  # somebody has started it
            uploaded(laptop, turn, url=road.url)
        assert waiting(laptop, road) == [["text 2"]]
    assert bodies(laptop, transcript.stem) == ["text 0", "text 1", "text 3"]
    assert [bodies(laptop, other.stem) for other in others] == [[other.stem] for other in others]


def test_two_weeks_without_a_server_set_nothing_aside(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, then=is_answered(502)) as road:
        for _ in range(3):
            uploaded(laptop, transcript, url=road.url)
            grow_old(laptop, road)
        road.then = arrives
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")
    assert bodies(laptop, transcript.stem) == texts(3)


def test_a_server_that_fails_on_all_rows_is_asked_a_few_times_and_nothing_is_torn_apart(
    laptop: Laptop, transcript: Path
) -> None:
    def store_is_away(request: Passenger) -> None:
        (is_answered(500, "the store is away") if request.road.rows[-1] else arrives)(request)

    add(transcript, *numbered(1_200))
    with BadRoad(laptop.url, then=store_is_away) as road:
        report = uploaded(laptop, transcript, url=road.url)
        assert report == Report(0, 1_200, 0, "the store is away")
        assert len(road.rows) <= 2 * sending.MAX_FAILURES_IN_A_ROW
        assert [len(batch) for batch in waiting(laptop, road)] == [500, 500, 200]
        road.then = arrives
        assert uploaded(laptop, transcript, url=road.url) == Report(1_200, 0, 0, "")
    assert bodies(laptop, transcript.stem) == texts(1_200)


def test_many_rows_on_which_the_server_fails_are_found_in_several_uploads_of_bounded_size(
    laptop: Laptop, transcript: Path
) -> None:
    bad = [f"text {number}" for number in range(0, 500, 25)]
    add(transcript, *numbered(500))
    with BadRoad(laptop.url, then=fails_on(bad, is_answered(502))) as road:
        for _ in range(16):
            before = len(road.rows)
            uploaded(laptop, transcript, url=road.url)
            assert len(road.rows) - before < 6 * sending.MAX_HALVED
    assert set(bodies(laptop, transcript.stem)) == set(texts(500)) - set(bad)
