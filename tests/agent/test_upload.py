"""From a transcript to the server's store: every block once, whatever becomes of its file and of the disk."""

import threading
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent import state
from ctrlb_agent.uploading import cursor, spool
from ctrlb_agent.uploading.upload import Report
from tests.agent.bad_road import BadRoad, Passenger, answer_is_lost, arrives, is_answered, is_lost
from tests.agent.transcripts import Lines, bodies, line, settings, stored
from tests.agent.uploads import add, log, numbered, texts, uploaded
from tests.laptop import Laptop

pytestmark = pytest.mark.usefixtures("agent_home")


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
