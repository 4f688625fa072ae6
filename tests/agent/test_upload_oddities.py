"""Files of the wrong kind and of the wrong content, among transcripts and in the state folder: they stop nothing."""

import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent import state
from ctrlb_agent.uploading import cursor, spool
from ctrlb_agent.uploading.upload import Report, reason_of
from tests.agent.bad_road import BadRoad
from tests.agent.programs import TIMEOUT_S
from tests.agent.transcripts import bodies, line, settings
from tests.agent.uploads import Machine, add, log, numbered, texts, uploaded
from tests.laptop import Laptop

pytestmark = pytest.mark.usefixtures("agent_home")


@pytest.fixture
def bounded() -> Iterator[None]:
    """Have what blocks fail, not hang."""

    def give_up(*_: object) -> None:
        raise AssertionError("it blocks")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(int(TIMEOUT_S))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def to_a_device(path: Path) -> None:
    path.symlink_to("/dev/tty")


KINDS: dict[str, Callable[[Path], Any]] = {"pipe": os.mkfifo, "device": to_a_device, "folder": Path.mkdir}
NO_FILES = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize(
    "body",
    [
        b'[{"body": 5, "session_id": "x", "seq": 1}]',
        b'[{"session_id": ["x"], "seq": 1}]',
        b'[{"session_id": "x", "seq": "1"}]',
        b"[" * 300_000,
        b'[{"seq": 1, "extra": ' + b"[" * 990 + b"]" * 990 + b"}]",
        b'[{"seq": 1, "cost_usd": NaN}]',
        b"[1]",
        b"\xff",
    ],
    ids=["number", "list", "text", "deep", "quite-deep", "nan", "no-rows", "no-json"],
)
def test_an_entry_of_the_spool_with_no_rows_of_ours_keeps_no_other_back(
    laptop: Laptop, transcript: Path, body: bytes
) -> None:
    here = settings(laptop)
    about = json.dumps({"url": here.url, "dataset": here.dataset, "rows": 1}).encode()
    state.write_bytes(state.path("spool", "000000000000.batch"), about + b"\n" + gzip.compress(body))
    add(transcript, *numbered(3))
    report = uploaded(laptop, transcript)
    assert (report.rows_sent, report.reason) == (3, "")
    assert spool.waiting(here) == []


def test_a_broken_entry_of_the_spool_keeps_no_other_back(laptop: Laptop, transcript: Path) -> None:
    spool.put(settings(laptop), b"[]", 1)
    [entry] = spool.waiting(settings(laptop))
    broken = Path(state.path("spool", "000000000000.batch"))
    broken.write_bytes(Path(entry).read_bytes()[:-4])
    add(transcript, *numbered(3))
    assert uploaded(laptop, transcript) == Report(3, 0, 0, "")
    assert "spool: set 000000000000.batch aside" in log()


@pytest.mark.usefixtures("bounded")
@NO_FILES
def test_what_is_no_file_is_no_entry_of_the_spool(
    laptop: Laptop, transcript: Path, make: Callable[[Path], Any]
) -> None:
    for number in range(spool.MAX_SET_ASIDE + 1):
        make(Path(state.path("spool", f"{number:012}.batch")))
    add(transcript, *numbered(3))
    assert uploaded(laptop, transcript) == Report(3, 0, 0, "")
    assert spool.put(settings(laptop), b"[]", 0)
    assert len(spool.waiting(settings(laptop))) == 1


@pytest.mark.parametrize("name", ["\u00b2.batch", "x.batch", "999999999999.batch"])
def test_a_file_with_an_odd_name_in_the_spool_does_not_matter(name: str) -> None:
    here = settings_of_nobody()
    Path(state.path("spool", name)).write_bytes(b"x")
    for body in (b"1", b"2", b"3"):
        assert spool.put(here, body, 1)
    assert [spool.read(file).body for file in spool.waiting(here)] == [b"1", b"2", b"3"]


def settings_of_nobody() -> Any:
    from ctrlb_agent.settings import Settings

    return Settings("http://here.example", "key", "agent_sessions")


@pytest.mark.usefixtures("bounded")
@NO_FILES
def test_what_is_no_file_among_the_transcripts_blocks_nobody(
    laptop: Laptop, transcript: Path, make: Callable[[Path], Any]
) -> None:
    odd = transcript.with_name("odd.jsonl")
    make(odd)
    add(transcript, *numbered(3))
    report = uploaded(laptop, odd, transcript)
    assert report.rows_sent == 3
    with BadRoad(laptop.url) as road:
        machine = Machine(transcript.parent, laptop, road, "odd")
        make(machine.transcript)
        machine.run("Stop")
    assert bodies(laptop, transcript.stem) == texts(3)


CURSORS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "memory": lambda kept: {**kept, "memory": 5},
    "within-memory": lambda kept: {**kept, "memory": {"blocks": "three"}},
    "deep-memory": lambda kept: {**kept, "memory": {"blocks": 3, "more": deep(900)}},
    "offset": lambda kept: {**kept, "offset": 10**30},
    "text-offset": lambda kept: {**kept, "offset": "1"},
    "number": lambda kept: {**kept, "number": True},
    "head": lambda kept: {**kept, "head": ["x"]},
    "inode": lambda kept: {**kept, "inode": None},
    "path": lambda kept: {**kept, "path": "\0"},
    "url": lambda kept: {**kept, "url": 5},
    "client": lambda kept: {**kept, "client": ["claude"]},
}


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("damage", CURSORS.values(), ids=CURSORS)
def test_a_damaged_cursor_stops_no_transcript(
    laptop: Laptop, transcript: Path, damage: Callable[[dict[str, Any]], Any]
) -> None:
    add(transcript, *numbered(3))
    uploaded(laptop, transcript)
    file = cursor.file_of(str(transcript), settings(laptop))
    Path(file).write_text(json.dumps(damage(json.loads(Path(file).read_text()))))
    add(transcript, line("text 3"))
    for _ in range(2):
        cursor.unfinished(settings(laptop))
        assert uploaded(laptop, transcript).reason == ""
    assert bodies(laptop, transcript.stem) == texts(4)


def test_a_cursor_file_that_is_nested_too_deep_to_be_read_stops_no_transcript(laptop: Laptop, transcript: Path) -> None:
    Path(cursor.file_of(str(transcript), settings(laptop))).write_text("[" * 200_000)
    add(transcript, *numbered(3))
    assert uploaded(laptop, transcript) == Report(3, 0, 0, "")


def test_a_transcript_behind_a_link_is_one_session_with_the_name_that_the_hook_gave(
    laptop: Laptop, transcript: Path
) -> None:
    target = transcript.with_name(f"target-{transcript.name}")
    add(target, *numbered(2))
    transcript.symlink_to(target)
    uploaded(laptop, transcript)
    add(target, line("text 2"))
    [known] = cursor.unfinished(settings(laptop))
    uploaded(laptop, Path(known.path))
    add(target, line("text 3"))
    uploaded(laptop, target)
    assert bodies(laptop, transcript.stem) == texts(4)
    assert bodies(laptop, target.stem) == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(13, "Permission denied", "/x/spool"), "Permission denied: /x/spool"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_of_the_machine_is_told_in_its_words_and_no_others(error: OSError, reason: str) -> None:
    assert reason_of(error) == reason
