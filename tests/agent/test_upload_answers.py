"""What each answer of the server, and none at all, does to rows that are uploaded."""

import json
import os
from pathlib import Path

import pytest

from ctrlb_agent.settings import Settings
from ctrlb_agent.uploading import sending, spool, transfer, upload
from ctrlb_agent.uploading.upload import Report
from tests.agent.bad_road import (
    BadRoad,
    Mishap,
    Passenger,
    arrives,
    hangs,
    is_answered,
    is_lost,
    is_too_long_over,
)
from tests.agent.transcripts import Lines, bodies, line, settings
from tests.agent.uploads import PLENTY_S, add, log, numbered, texts, uploaded
from tests.laptop import Laptop
from tests.nobody import NOBODY

pytestmark = pytest.mark.usefixtures("agent_home")


@pytest.mark.parametrize(
    "mishap",
    [is_answered(401), is_answered(404), is_answered(200)],
    ids=["401", "404", "200"],
)
def test_what_cannot_be_sent_waits_in_the_spool_and_goes_first_next_time(
    laptop: Laptop, transcript: Path, mishap: Mishap
) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, mishap) as road:
        report = uploaded(laptop, transcript, url=road.url)
        assert report._replace(reason="") == Report(0, 3, 0, "")
        assert report.reason
        assert len(spool.waiting(settings(laptop, road.url))) == 1
        add(transcript, *numbered(2, 3))
        assert uploaded(laptop, transcript, url=road.url) == Report(5, 0, 0, "")
        assert spool.waiting(settings(laptop, road.url)) == []
    assert [[row["body"] for row in rows] for rows in road.rows] == [texts(3), texts(3), texts(5)[3:]]
    assert bodies(laptop, transcript.stem) == texts(5)


def test_a_server_that_hangs_is_waited_for_only_so_long(
    laptop: Laptop, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(transcript, *numbered(600))
    with BadRoad(laptop.url, hangs) as road:
        with monkeypatch.context() as impatient:
            impatient.setattr(sending, "REQUEST_S", 2.0)
            report = uploaded(laptop, transcript, url=road.url)
        assert road.has_seen(1)
        assert (report.rows_sent, report.rows_spooled) == (0, 600)
        assert "did not answer in time" in report.reason
        assert len(road.rows) == 1, "one request is enough to learn that nobody answers"
        assert uploaded(laptop, transcript, url=road.url) == Report(600, 0, 0, "")
    assert bodies(laptop, transcript.stem) == texts(600)


def test_nothing_is_lost_where_no_server_is(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(2))
    assert "nothing listens" in uploaded(laptop, transcript, url=NOBODY).reason
    add(transcript, *numbered(2, 2))
    report = uploaded(laptop, transcript, url=NOBODY)
    assert (report.rows_sent, report.rows_spooled) == (0, 2)
    assert "nothing listens" in uploaded(laptop, url=NOBODY).reason, "what waits is not forgotten"
    assert len(spool.waiting(settings(laptop, NOBODY))) == 2


def test_when_the_spool_is_full_the_rows_stay_in_the_transcript(
    laptop: Laptop, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MAX_BYTES", 8_000)
    noise = [os.urandom(1_500).hex() for _ in range(10)]
    monkeypatch.setattr("ctrlb_agent.uploading.batches.MAX_ROWS", 1)
    add(transcript, *map(line, noise))
    with BadRoad(laptop.url, is_lost, is_lost) as road:
        report = uploaded(laptop, transcript, url=road.url)
        assert 0 < report.rows_spooled < 10
        assert report.reason.endswith("the spool is full")
        assert uploaded(laptop, transcript, url=road.url) == Report(10, 0, 0, "")
    assert "the spool is full" in log()
    assert bodies(laptop, transcript.stem) == noise


def test_a_server_that_asks_for_patience_gets_it(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    busy = is_answered(429, Retry_After="0.01")
    with BadRoad(laptop.url, busy, is_answered(503, Retry_After="0"), busy) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")
    assert len(road.rows) == 4
    assert bodies(laptop, transcript.stem) == texts(3)


def test_a_server_that_asks_to_come_back_at_once_for_ever_is_not_flooded(
    laptop: Laptop, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_s: list[float] = []

    def sender(settings: Settings, give_up_s: float, sleep: object) -> sending.Sender:
        return sending.Sender(settings, give_up_s, waits_s.append)

    monkeypatch.setattr(transfer, "Sender", sender)
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, then=is_answered(429, "busy", Retry_After="0")) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(0, 3, 0, "busy")
    assert len(road.rows) == len(waits_s) == sending.MAX_WAITS
    assert waits_s == sorted(waits_s)
    assert sum(waits_s) > sending.MAX_WAITS / 2


def test_a_server_that_asks_for_more_patience_than_there_is_time_is_not_waited_for(
    laptop: Laptop, transcript: Path
) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, is_answered(503, "the store is away", Retry_After="50")) as road:
        report = uploaded(laptop, transcript, url=road.url, budget_s=30)
    assert report == Report(0, 3, 0, "the store is away")
    assert "upload: rows: 3 kept for later; not all, because: the store is away" in log()
    assert len(road.rows) == 1


def test_without_time_nothing_is_sent_or_lost(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url) as road:
        assert uploaded(laptop, transcript, url=road.url, budget_s=0) == Report(0, 0, 0, sending.OUT_OF_TIME)
        assert road.rows == []
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")


def test_rows_that_the_server_refuses_are_named_in_the_log_without_their_text_and_the_others_go_on(
    laptop: Laptop, transcript: Path
) -> None:
    bad = [{"body": "secret text", "paths": "no list"}, {"body": "secret text", "block_type": "poem"}]
    add(transcript, line("one"), line(bad[0], "two"), line("three"), line(bad[1]), line("four"))
    with BadRoad(laptop.url) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(4, 0, 2, "")
        assert uploaded(laptop, transcript, url=road.url) == Report(0, 0, 0, "")
    assert [len(rows) for rows in road.rows] == [6, 5, 4]
    assert bodies(laptop, transcript.stem) == ["one", "two", "three", "four"]
    assert f"refused {transcript.stem} seq 2 block 0: row 1: paths:" in log()
    assert "upload: rows: 4 sent, 2 refused" in log()
    assert f"refused {transcript.stem} seq 4 block 0:" in log()
    assert "secret" not in log()


def test_when_every_row_is_bad_every_row_is_named_and_the_good_ones_among_them_are_stored(
    laptop: Laptop, transcript: Path
) -> None:
    bad = {"body": "x", "block_type": "poem"}
    add(transcript, *(line("good" if number % 50 == 0 else bad) for number in range(200)))
    with BadRoad(laptop.url) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(4, 0, 196, "")
    assert bodies(laptop, transcript.stem) == ["good"] * 4
    assert sum(len(rows) for rows in road.rows) < 200 * 60, "good rows are not sent again for each bad one"


def nameless(request: Passenger) -> None:
    """A server that says of no row that it is the one to blame."""
    rows = request.road.rows[-1]
    if any(row["body"] == "text 7" for row in rows):
        request.say(400, b'{"error": "something is wrong"}')
    else:
        arrives(request)


def test_a_row_that_is_refused_without_being_named_is_found(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(20))
    with BadRoad(laptop.url, then=nameless) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(19, 0, 1, "")
    assert bodies(laptop, transcript.stem) == [text for text in texts(20) if text != "text 7"]
    assert f"refused {transcript.stem} seq 8 block 0: something is wrong" in log()


def test_a_dataset_that_takes_no_rows_has_none_of_them_refused(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    elsewhere = settings(laptop)._replace(dataset="other")
    report = upload.upload([str(transcript)], "script", elsewhere, PLENTY_S, parser=Lines)
    assert report._replace(reason="") == Report(0, 3, 0, "")
    assert "writes go to agent_sessions" in report.reason


def test_the_rows_of_anothers_session_are_left_out_and_the_others_go_on(laptop: Laptop, transcript: Path) -> None:
    def belongs_to_another(request: Passenger) -> None:
        rows = request.road.rows[-1]
        found = [index for index, row in enumerate(rows) if row["session_id"] == "taken"]
        if found:
            request.say(
                403, json.dumps({"error": f"row {found[0]}: session_id taken belongs to another user"}).encode()
            )
        else:
            arrives(request)

    other = transcript.with_name("taken.jsonl")
    add(transcript, *numbered(3))
    add(other, *numbered(700))
    with BadRoad(laptop.url, then=belongs_to_another) as road:
        assert uploaded(laptop, other, transcript, url=road.url) == Report(3, 0, 700, "")
    assert [len(rows) for rows in road.rows] == [500, 3]
    assert log().count("refused session taken") == 1
    assert bodies(laptop, transcript.stem) == texts(3)


def test_a_key_without_the_right_to_upload_has_no_row_refused(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    no_right = is_answered(403, "your role does not allow upload_records")
    with BadRoad(laptop.url, no_right, no_right) as road:
        report = uploaded(laptop, transcript, url=road.url)
        assert report == Report(0, 3, 0, "your role does not allow upload_records")
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")


def test_a_proxy_that_takes_less_gets_less(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *(line(str(number) * 300) for number in range(8)), line("x" * 5_000))
    with BadRoad(laptop.url, then=is_too_long_over(2_000)) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(9, 0, 0, "")
    *rows, last = bodies(laptop, transcript.stem)
    assert rows == [str(number) * 300 for number in range(8)]
    assert last.endswith(f"x… [cut by ctrlb-agent: {5_000 - last.count('x'):,} more characters]")
