"""From a transcript to the server's store: every block once, whatever happens to requests, files and processes."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent import cursor, sending, spool, state, upload
from ctrlb_agent.transcript import Parser
from ctrlb_agent.upload import Report
from tests.agent.bad_road import (
    BadRoad,
    Mishap,
    Passenger,
    answer_is_lost,
    arrives,
    hangs,
    is_answered,
    is_lost,
    is_too_long_over,
)
from tests.agent.transcripts import Lines, bodies, line, settings, stored
from tests.laptop import Laptop

PLENTY_S = 60.0

pytestmark = pytest.mark.usefixtures("agent_home")


@pytest.fixture
def transcript(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where the test's session is written."""
    return tmp_path / f"{request.node.name[:120].translate(str.maketrans('[]/', '---'))}.jsonl"


def uploaded(laptop: Laptop, *paths: Path, url: str = "", budget_s: float = PLENTY_S, parser: Parser = Lines) -> Report:
    """Upload what is new in the files."""
    return upload.upload([str(path) for path in paths], "script", settings(laptop, url), budget_s, parser=parser)


def log() -> str:
    """What the log says."""
    file = Path(state.path("agent.log"))
    return file.read_text() if file.exists() else ""


def add(path: Path, *lines: bytes) -> None:
    """Append to the file."""
    with path.open("ab") as stream:
        stream.write(b"".join(lines))


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Lines of one block each."""
    return [line(f"text {number}") for number in range(start, start + count)]


def texts(count: int) -> list[str]:
    """The bodies of `numbered` lines."""
    return [f"text {number}" for number in range(count)]


def test_what_was_written_is_in_the_store_and_only_new_lines_are_sent_again(laptop: Laptop, transcript: Path) -> None:
    with BadRoad(laptop.url) as road:
        add(transcript, line("one", "two"), line(), line("three"))
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")
        assert uploaded(laptop, transcript, url=road.url) == Report(0, 0, 0, "")
        add(transcript, line("four"))
        assert uploaded(laptop, transcript, url=road.url) == Report(1, 0, 0, "")
    assert [len(rows) for rows in road.rows] == [3, 1]
    rows = stored(laptop, transcript.stem)
    assert [(one["seq"], one["block_idx"], one["body"]) for one in rows] == [
        (1, 0, "one"),
        (1, 1, "two"),
        (3, 0, "three"),
        (4, 0, "four"),
    ]
    assert [one["tool_use_id"] for one in rows] == ["block 1", "block 2", "block 3", "block 4"]


def test_1000_rows_are_two_requests(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(1_000))
    with BadRoad(laptop.url) as road:
        assert uploaded(laptop, transcript, url=road.url).rows_sent == 1_000
    assert [len(rows) for rows in road.rows] == [500, 500]
    assert bodies(laptop, transcript.stem) == texts(1_000)


def test_large_rows_are_sent_in_requests_that_the_server_takes(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *(line("ä" * 700_000) for _ in range(8)))
    with BadRoad(laptop.url) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(8, 0, 0, "")
    assert [len(rows) for rows in road.rows] == [2, 2, 2, 2]


def test_a_body_of_over_4_mib_is_stored_cut_with_a_mark(laptop: Laptop, transcript: Path) -> None:
    add(transcript, line("before"), line("x" * 5_000_000), line("after"))
    with BadRoad(laptop.url) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")
    [before, cut, after] = stored(laptop, transcript.stem)
    assert (before["body"], after["body"]) == ("before", "after")
    [sent] = [row["body"] for rows in road.rows for row in rows if row["seq"] == 2]
    assert cut["body_len"] == len(sent) > 3_900_000
    assert sent.endswith(f"x… [cut by ctrlb-agent: {5_000_000 - sent.count('x'):,} more characters]")


@pytest.mark.parametrize(
    "mishap",
    [is_lost, answer_is_lost, is_answered(500), is_answered(502), is_answered(401), is_answered(404), is_answered(200)],
    ids=["lost", "answer-lost", "500", "502", "401", "404", "200"],
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
    monkeypatch.setattr(sending, "REQUEST_S", 0.2)
    add(transcript, *numbered(600))
    with BadRoad(laptop.url, hangs) as road:
        report = uploaded(laptop, transcript, url=road.url)
        assert (report.rows_sent, report.rows_spooled) == (0, 600)
        assert "did not answer in time" in report.reason
        assert len(road.rows) == 1, "one request is enough to learn that nobody answers"
        assert uploaded(laptop, transcript, url=road.url) == Report(600, 0, 0, "")
    assert bodies(laptop, transcript.stem) == texts(600)


def test_nothing_is_lost_where_no_server_is(laptop: Laptop, transcript: Path) -> None:
    with BadRoad(laptop.url) as road:
        nobody = road.url
    add(transcript, *numbered(2))
    assert "nothing listens" in uploaded(laptop, transcript, url=nobody).reason
    add(transcript, *numbered(2, 2))
    report = uploaded(laptop, transcript, url=nobody)
    assert (report.rows_sent, report.rows_spooled) == (0, 2)
    assert "nothing listens" in uploaded(laptop, url=nobody).reason, "what waits is not forgotten"
    assert len(spool.waiting(settings(laptop, nobody))) == 2


def test_when_the_spool_is_full_the_rows_stay_in_the_transcript(
    laptop: Laptop, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MAX_BYTES", 8_000)
    noise = [os.urandom(1_500).hex() for _ in range(10)]
    monkeypatch.setattr("ctrlb_agent.batches.MAX_ROWS", 1)
    add(transcript, *map(line, noise))
    with BadRoad(laptop.url, is_lost) as road:
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


def test_a_server_that_asks_for_more_patience_than_there_is_time_is_not_waited_for(
    laptop: Laptop, transcript: Path
) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, is_answered(503, "the store is away", Retry_After="50")) as road:
        report = uploaded(laptop, transcript, url=road.url, budget_s=30)
    assert report == Report(0, 3, 0, "the store is away")
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
    with BadRoad(laptop.url, is_answered(403, "your role does not allow upload_records")) as road:
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


def test_one_batch_on_which_the_server_fails_does_not_keep_the_others_back(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(501))
    fails = is_answered(500)
    with BadRoad(laptop.url, fails) as road:
        assert uploaded(laptop, transcript, url=road.url)._replace(reason="") == Report(1, 500, 0, "")
        add(transcript, line("text 501"))
        road.mishaps = [fails]
        assert uploaded(laptop, transcript, url=road.url)._replace(reason="") == Report(1, 0, 0, "")
        assert uploaded(laptop, transcript, url=road.url) == Report(500, 0, 0, "")
    assert bodies(laptop, transcript.stem) == texts(502)


def test_a_broken_entry_of_the_spool_keeps_no_other_back(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url, is_lost, is_lost) as road:
        uploaded(laptop, transcript, url=road.url)
        broken = Path(state.path("spool", "000000000000.batch"))
        [entry] = spool.waiting(settings(laptop, road.url))
        broken.write_bytes(Path(entry).read_bytes()[:-4])
        road.mishaps = []
        assert uploaded(laptop, transcript, url=road.url) == Report(3, 0, 0, "")
    assert "spool: set 000000000000.batch aside" in log()


def test_lines_that_are_no_json_are_skipped_and_logged_once(laptop: Laptop, transcript: Path) -> None:
    add(transcript, line("one"), b"\xff\xfe\n", b"{\n", line("two"), b'{"blocks": ["x\xffy"]}\n')
    assert uploaded(laptop, transcript) == Report(3, 0, 0, "")
    uploaded(laptop, transcript)
    assert bodies(laptop, transcript.stem) == ["one", "two", "x\ufffdy"]
    assert log().count("skipped lines that are no JSON: 2, the first is line 2") == 1


def test_of_a_line_that_is_too_long_the_store_says_that_it_was_not_read(
    laptop: Laptop, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "MAX_LINE_BYTES", 100)
    add(transcript, line("one"), line("x" * 500), line("two"))
    assert uploaded(laptop, transcript) == Report(3, 0, 0, "")
    size = len(line("x" * 500))
    assert bodies(laptop, transcript.stem) == [
        "one",
        f"[line 2 of the transcript was not read by ctrlb-agent: it has {size} bytes]",
        "two",
    ]


class Stumbles(Lines):
    """A parser with a bug."""

    @staticmethod
    def rows_of(line: Any, number: int, about: Any, memory: dict[str, Any]) -> list[dict[str, Any]]:
        if "stumble" in line["blocks"]:
            raise KeyError("secret")
        return Lines.rows_of(line, number, about, memory)


def test_a_line_on_which_the_parser_fails_costs_that_line_only(laptop: Laptop, transcript: Path) -> None:
    add(transcript, line("one"), line("stumble"), line("two"))
    assert uploaded(laptop, transcript, parser=Stumbles) == Report(3, 0, 0, "")
    [one, unread, two] = bodies(laptop, transcript.stem)
    assert (one, two) == ("one", "two")
    assert "line 2 of the transcript was not read" in unread
    assert "secret" not in log() + unread


@pytest.mark.parametrize("rewritten", [["new"], ["other", "text 1", "text 2", "more"]], ids=["shorter", "longer"])
def test_a_file_that_was_rewritten_is_uploaded_from_its_beginning(
    laptop: Laptop, transcript: Path, rewritten: list[str]
) -> None:
    add(transcript, *numbered(3))
    uploaded(laptop, transcript)
    transcript.write_bytes(b"".join(map(line, rewritten)))
    assert uploaded(laptop, transcript).rows_sent == len(rewritten)
    assert bodies(laptop, transcript.stem)[: len(rewritten)] == rewritten
    assert "is not the file any more that was read" in log()


def test_a_file_that_vanished_or_cannot_be_read_keeps_no_other_back(laptop: Laptop, transcript: Path) -> None:
    folder = transcript.with_name("folder.jsonl")
    folder.mkdir()
    add(transcript, *numbered(3))
    report = uploaded(laptop, transcript.with_name("gone.jsonl"), folder, transcript)
    assert (report.rows_sent, report.reason) == (3, f"Is a directory: {folder}")


def test_where_no_cursor_can_be_kept_nothing_is_sent_and_the_log_says_so(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    Path(state.path("cursors")).write_text("a file where the folder should be")
    with BadRoad(laptop.url) as road:
        report = uploaded(laptop, transcript, url=road.url)
    assert report.reason
    assert report._replace(reason="") == Report(0, 0, 0, "")
    assert road.rows == []
    assert report.reason in log()


def test_a_cursor_that_cannot_be_written_has_the_rows_sent_again_and_not_lost(
    laptop: Laptop, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(transcript, *numbered(600))
    saved: list[cursor.Cursor] = []

    def save(file: str, kept: cursor.Cursor) -> None:
        if len(saved) > 1:
            raise OSError(28, "No space left on device", file)
        saved.append(kept)
        state.write_json(file, kept._asdict())

    with monkeypatch.context() as full:
        full.setattr(cursor, "save", save)
        assert "No space left" in uploaded(laptop, transcript).reason
    report = uploaded(laptop, transcript)
    assert report.rows_sent == 600
    assert bodies(laptop, transcript.stem) == texts(600)


def test_a_second_upload_leaves_and_the_first_one_takes_what_was_written_meanwhile(
    laptop: Laptop, transcript: Path
) -> None:
    second: list[Report] = []

    def while_under_way(request: Passenger) -> None:
        add(transcript, *numbered(2, 3))
        second.append(uploaded(laptop, transcript, url=road.url))
        arrives(request)

    add(transcript, *numbered(3))
    with BadRoad(laptop.url, while_under_way) as road:
        assert uploaded(laptop, transcript, url=road.url) == Report(5, 0, 0, "")
    assert second == [Report(0, 0, 0, "")]
    assert [[row["body"] for row in rows] for rows in road.rows] == [texts(3), texts(5)[3:]]
    assert bodies(laptop, transcript.stem) == texts(5)


def test_many_uploads_at_once_store_each_row_once(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(300))
    with BadRoad(laptop.url, *([answer_is_lost, is_lost, is_answered(500), arrives] * 3)) as road:
        start = threading.Barrier(6)

        def take_part(number: int) -> None:
            start.wait()
            for turn in range(4):
                if number == 0:
                    add(transcript, *numbered(50, 300 + turn * 50))
                uploaded(laptop, transcript, url=road.url)

        threads = [threading.Thread(target=take_part, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        road.mishaps = []
        assert uploaded(laptop, transcript, url=road.url).reason == ""
        assert spool.waiting(settings(laptop, road.url)) == []
    assert bodies(laptop, transcript.stem) == texts(500)


def test_each_server_gets_the_whole_session(laptop: Laptop, transcript: Path) -> None:
    add(transcript, *numbered(3))
    with BadRoad(laptop.url) as first, BadRoad(laptop.url) as second:
        for road in (first, second, first):
            uploaded(laptop, transcript, url=road.url)
    assert [len(rows) for road in (first, second) for rows in road.rows] == [3, 3]
