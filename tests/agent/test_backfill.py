"""Uploading what past sessions left on a machine, by command."""

import io
import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent.command_line.backfill import Progress
from ctrlb_agent.transcripts import claude_transcript, codex_rollout
from ctrlb_agent.uploading.transcript import Parser
from tests.agent.bad_road import BadRoad, Passenger, arrives, hangs, is_answered
from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S, ctrlb, environment
from tests.agent.recorded import DATA
from tests.agent.transcripts import as_fetched, expected, stored, without_time
from tests.laptop import Laptop

RECORDED_THREAD = "01a22b9c-6997-7f93-b736-d15769b1fb1a"


class Home:
    """A home with a session of Claude Code with a subagent, and a thread of Codex, under ids that no other test has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session, self.thread = str(uuid.uuid4()), str(uuid.uuid4())
        self.subagent = f"agent-{uuid.uuid4().hex}"
        self.sessions = [self.session, self.subagent, self.thread]
        """In the order of their age."""
        self.project = folder / ".claude" / "projects" / "-work-app"
        self.day = folder / ".codex" / "sessions" / "2026" / "11" / "30"
        subagents = self.project / self.session / "subagents"
        self.transcripts: list[tuple[Path, Parser]] = [
            (self.project / f"{self.session}.jsonl", claude_transcript),
            (subagents / f"{self.subagent}.jsonl", claude_transcript),
            (self.day / f"rollout-2026-11-30T08-40-00-{self.thread}.jsonl", codex_rollout),
        ]
        for made in (subagents, self.day):
            made.mkdir(parents=True)
        recorded = ("claude/transcript.jsonl", "claude/transcript-subagent.jsonl", "codex/rollout.jsonl")
        for age, (source, (copy, _)) in enumerate(zip(recorded, self.transcripts, strict=True)):
            copy.write_text((DATA / source).read_text().replace(RECORDED_THREAD, self.thread))
            os.utime(copy, (1_796_000_000 + age, 1_796_000_000 + age))
        (self.project / "notes.txt").write_text("no transcript")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def run(home: Home, url: str, key: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Backfill as a process, in the home."""
    environ = environment(home.folder, CTRLB_URL=url, CTRLB_KEY=key)
    return ctrlb("backfill", *arguments, environ=environ, cwd=home.folder)


def assert_all_is_stored(laptop: Laptop, home: Home) -> int:
    """The store holds what the files say, each row once; returns how many."""
    count = 0
    for session_id, (path, parser) in zip(home.sessions, home.transcripts, strict=True):
        rows = expected(path, parser)
        assert rows
        assert without_time(stored(laptop, session_id)) == [as_fetched(row) for row in rows]
        count += len(rows)
    return count


def test_all_sessions_of_both_clients_are_uploaded_and_only_once(laptop: Laptop, home: Home) -> None:
    with BadRoad(laptop.url) as road:
        done = run(home, road.url, laptop.key)
        assert (done.returncode, done.stderr.splitlines()[-1][:10]) == (0, "3/3 files,")
        count = assert_all_is_stored(laptop, home)
        assert done.stdout == f"uploaded {count} rows, 0 were refused\n"
        first = [rows[0]["session_id"] for rows in road.rows]
        assert first == home.sessions, "oldest first"
        again = run(home, road.url, laptop.key)
        assert (again.returncode, again.stdout) == (0, "uploaded 0 rows, 0 were refused\n")
        assert len(road.rows) == 3


def test_a_session_that_no_hook_has_seen_has_no_run_and_no_agent(laptop: Laptop, home: Home) -> None:
    with BadRoad(laptop.url) as road:
        run(home, road.url, laptop.key)
    rows = [row for rows in road.rows for row in rows]
    assert {(row["run_id"], row["agent"]) for row in rows} == {("", "")}
    assert {row["parent_session"] for row in rows if row["session_id"] == home.subagent} == {home.session}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--claude"], {"session", "subagent"}),
        (["--codex"], {"thread"}),
        (["--claude", "--codex"], {"session", "subagent", "thread"}),
        (["--since", "2100-01-01"], set()),
        (["--since", "2020-01-01"], {"session", "subagent", "thread"}),
        (["--project", "/work/app"], {"session", "subagent", "thread"}),
        (["--project", "/work"], {"session", "subagent", "thread"}),
        (["--project", "/work/ap"], set()),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else str(len(given)),
)
def test_only_the_sessions_that_were_asked_for_are_uploaded(
    laptop: Laptop, home: Home, options: list[str], wanted: set[str]
) -> None:
    with BadRoad(laptop.url) as road:
        assert run(home, road.url, laptop.key, *options).returncode == 0
    assert {row["session_id"] for rows in road.rows for row in rows} == {getattr(home, name) for name in wanted}


def test_a_dry_run_counts_what_would_be_sent_and_sends_nothing(laptop: Laptop, home: Home) -> None:
    with BadRoad(laptop.url) as road:
        count = sum(len(expected(*one)) for one in home.transcripts)
        dry = run(home, road.url, laptop.key, "--dry-run")
        assert dry.returncode == 0
        assert dry.stdout.startswith(f"would upload {count} rows of 3 files, ")
        assert road.rows == []
        run(home, road.url, laptop.key)
        assert "would upload 0 rows of 0 files" in run(home, road.url, laptop.key, "--dry-run").stdout


def test_a_server_that_asks_for_patience_gets_it(laptop: Laptop, home: Home) -> None:
    busy, away = is_answered(429, Retry_After="0.01"), is_answered(503, Retry_After="0.01")
    with BadRoad(laptop.url, busy, away, busy, arrives, away) as road:
        done = run(home, road.url, laptop.key)
    assert done.returncode == 0
    assert done.stderr.count("the server asks to come back in 0 s") == 4
    assert_all_is_stored(laptop, home)


def test_what_could_not_be_sent_is_said_and_sent_the_next_time(laptop: Laptop, home: Home) -> None:
    with BadRoad(laptop.url, arrives, is_answered(502), is_answered(502)) as road:
        broken = run(home, road.url, laptop.key)
        assert broken.returncode == 2
        assert "not uploaded: " in broken.stdout
        assert "run the same command again" in broken.stdout
        assert len(road.rows) == 3, "no other session is tried"
        assert run(home, road.url, laptop.key).returncode == 0
    assert_all_is_stored(laptop, home)


def test_a_row_on_which_the_server_fails_costs_that_row_only_and_is_sent_the_next_time(
    laptop: Laptop, home: Home
) -> None:
    def fails(request: Passenger) -> None:
        rows = request.road.rows[-1]
        is_bad = any((row["session_id"], row["seq"]) == (home.session, bad) for row in rows)
        (is_answered(502, "no such luck") if is_bad else arrives)(request)

    bad = expected(*home.transcripts[0])[0]["seq"]
    with BadRoad(laptop.url, then=fails) as road:
        done = run(home, road.url, laptop.key)
        assert done.returncode == 2
        assert "not uploaded: no such luck" in done.stdout
        assert {row["session_id"] for rows in road.rows for row in rows} == set(home.sessions)
        road.then = arrives
        assert run(home, road.url, laptop.key).returncode == 0
    assert_all_is_stored(laptop, home)


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--project", "/work"]], ids=str)
def test_what_is_no_file_among_the_transcripts_is_passed_over(laptop: Laptop, home: Home, options: list[str]) -> None:
    os.mkfifo(home.project / "pipe.jsonl")
    os.mkfifo(home.day / "rollout-pipe.jsonl")
    (home.project / "device.jsonl").symlink_to("/dev/zero")
    (home.project / "folder.jsonl").mkdir()
    assert run(home, laptop.url, laptop.key, *options).returncode == 0


def test_what_was_refused_is_said(laptop: Laptop, home: Home) -> None:
    def belongs_to_another(request: Passenger) -> None:
        request.say(403, b'{"error": "row 0: session_id x belongs to another user; nothing was written"}')

    with BadRoad(laptop.url, belongs_to_another) as road:
        done = run(home, road.url, laptop.key)
    assert done.returncode == 2
    assert f"refused: session {home.session}: row 0: session_id x belongs to another user" in done.stdout


def test_without_an_address_and_a_key_it_says_what_is_missing(home: Home) -> None:
    done = ctrlb("backfill", environ=environment(home.folder), cwd=home.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "CTRLB_URL" in done.stderr


def test_ctrl_c_breaks_it_off_and_the_same_command_goes_on(laptop: Laptop, home: Home) -> None:
    with BadRoad(laptop.url, arrives, hangs) as road:
        process = subprocess.Popen(
            [PYTHON, str(AGENT / "ctrlb_agent"), "backfill"],
            env=environment(home.folder, CTRLB_URL=road.url, CTRLB_KEY=laptop.key),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored in the background
        )
        assert road.has_seen(2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == -signal.SIGINT, "a loop of a shell ends with it"
        assert "broken off; run the same command again" in said
        assert "Traceback" not in said
        assert run(home, road.url, laptop.key).returncode == 0
    assert_all_is_stored(laptop, home)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "end"), [(Terminal(), "\r\033[K1/2 files"), (io.StringIO(), "1/2 files")])
def test_progress_says_how_far_it_is(stream: Any, end: str) -> None:
    progress = Progress(2, stream)
    progress.add(2_000_000, 1_234)
    progress.file_done()
    progress.finish()
    last = stream.getvalue().splitlines(keepends=True)[-1]
    assert stream.getvalue().endswith("\n")
    assert end in stream.getvalue()
    assert "1/2 files, 1,234 rows, 2.0 MB, " in last
