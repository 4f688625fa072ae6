"""Uploading what past sessions left on a machine, by command."""

import io
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
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

SESSION = "b1d0de2d-1ef3-4644-83ba-af4871e81907"
AGENT_FILE = "agent-a45999794fcec398c"
THREAD = "01a22b9c-6997-7f93-b736-d15769b1fb1a"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session of Claude Code with a subagent, and a thread of Codex."""
    project = tmp_path / ".claude" / "projects" / "-work-app"
    subagents = project / SESSION / "subagents"
    day = tmp_path / ".codex" / "sessions" / "2026" / "11" / "30"
    for folder in (subagents, day):
        folder.mkdir(parents=True)
    recorded = [
        (DATA / "claude" / "transcript.jsonl", project / f"{SESSION}.jsonl"),
        (DATA / "claude" / "transcript-subagent.jsonl", subagents / f"{AGENT_FILE}.jsonl"),
        (DATA / "codex" / "rollout.jsonl", day / f"rollout-2026-11-30T08-40-00-{THREAD}.jsonl"),
    ]
    for age, (source, copy) in enumerate(recorded):
        shutil.copy(source, copy)
        os.utime(copy, (1_796_000_000 + age, 1_796_000_000 + age))
    (project / "notes.txt").write_text("no transcript")
    return tmp_path


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A server without a row."""
    server = Laptop(tmp_path_factory.mktemp("fresh"))
    yield server
    server.stop()


def run(home: Path, url: str, key: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Backfill as a process, in the home."""
    return ctrlb("backfill", *arguments, environ=environment(home, CTRLB_URL=url, CTRLB_KEY=key), cwd=home)


def transcripts(home: Path) -> dict[str, tuple[Path, Parser]]:
    """Each session's file and its parser."""
    [thread] = home.glob(".codex/sessions/*/*/*/*.jsonl")
    [session] = home.glob(".claude/projects/*/*.jsonl")
    [subagent] = home.glob(".claude/projects/*/*/subagents/*.jsonl")
    return {
        SESSION: (session, claude_transcript),
        AGENT_FILE: (subagent, claude_transcript),
        THREAD: (thread, codex_rollout),
    }


def assert_all_is_stored(laptop: Laptop, home: Path) -> int:
    """The store holds what the files say, each row once; returns how many."""
    count = 0
    for session_id, (path, parser) in transcripts(home).items():
        rows = expected(path, parser)
        assert rows
        assert without_time(stored(laptop, session_id)) == [as_fetched(row) for row in rows]
        count += len(rows)
    return count


def test_all_sessions_of_both_clients_are_uploaded_and_only_once(fresh: Laptop, home: Path) -> None:
    with BadRoad(fresh.url) as road:
        done = run(home, road.url, fresh.key)
        assert (done.returncode, done.stderr.splitlines()[-1][:10]) == (0, "3/3 files,")
        count = assert_all_is_stored(fresh, home)
        assert done.stdout == f"uploaded {count} rows, 0 were refused\n"
        first = [rows[0]["session_id"] for rows in road.rows]
        assert first == [SESSION, AGENT_FILE, THREAD], "oldest first"
        again = run(home, road.url, fresh.key)
        assert (again.returncode, again.stdout) == (0, "uploaded 0 rows, 0 were refused\n")
        assert len(road.rows) == 3


def test_a_session_that_no_hook_has_seen_has_no_run_and_no_agent(fresh: Laptop, home: Path) -> None:
    with BadRoad(fresh.url) as road:
        run(home, road.url, fresh.key)
    rows = [row for rows in road.rows for row in rows]
    assert {(row["run_id"], row["agent"]) for row in rows} == {("", "")}
    assert {row["parent_session"] for row in rows if row["session_id"] == AGENT_FILE} == {SESSION}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--claude"], {SESSION, AGENT_FILE}),
        (["--codex"], {THREAD}),
        (["--claude", "--codex"], {SESSION, AGENT_FILE, THREAD}),
        (["--since", "2100-01-01"], set()),
        (["--since", "2020-01-01"], {SESSION, AGENT_FILE, THREAD}),
        (["--project", "/work/app"], {SESSION, AGENT_FILE, THREAD}),
        (["--project", "/work"], {SESSION, AGENT_FILE, THREAD}),
        (["--project", "/work/ap"], set()),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else str(len(given)),
)
def test_only_the_sessions_that_were_asked_for_are_uploaded(
    laptop: Laptop, home: Path, options: list[str], wanted: set[str]
) -> None:
    with BadRoad(laptop.url) as road:
        assert run(home, road.url, laptop.key, *options).returncode == 0
    assert {row["session_id"] for rows in road.rows for row in rows} == wanted


def test_a_dry_run_counts_what_would_be_sent_and_sends_nothing(laptop: Laptop, home: Path) -> None:
    with BadRoad(laptop.url) as road:
        count = sum(len(expected(*one)) for one in transcripts(home).values())
        dry = run(home, road.url, laptop.key, "--dry-run")
        assert dry.returncode == 0
        assert dry.stdout.startswith(f"would upload {count} rows of 3 files, ")
        assert road.rows == []
        run(home, road.url, laptop.key)
        assert "would upload 0 rows of 0 files" in run(home, road.url, laptop.key, "--dry-run").stdout


def test_a_server_that_asks_for_patience_gets_it(fresh: Laptop, home: Path) -> None:
    busy, away = is_answered(429, Retry_After="0.01"), is_answered(503, Retry_After="0.01")
    with BadRoad(fresh.url, busy, away, busy, arrives, away) as road:
        done = run(home, road.url, fresh.key)
    assert done.returncode == 0
    assert done.stderr.count("the server asks to come back in 0 s") == 4
    assert_all_is_stored(fresh, home)


def test_what_could_not_be_sent_is_said_and_sent_the_next_time(fresh: Laptop, home: Path) -> None:
    with BadRoad(fresh.url, arrives, is_answered(502), is_answered(502)) as road:
        broken = run(home, road.url, fresh.key)
        assert broken.returncode == 2
        assert "not uploaded: " in broken.stdout
        assert "run the same command again" in broken.stdout
        assert len(road.rows) == 3, "no other session is tried"
        assert run(home, road.url, fresh.key).returncode == 0
    assert_all_is_stored(fresh, home)


def test_a_row_on_which_the_server_fails_costs_that_row_only_and_is_sent_the_next_time(
    fresh: Laptop, home: Path
) -> None:
    def fails(request: Passenger) -> None:
        rows = request.road.rows[-1]
        is_bad = any((row["session_id"], row["seq"]) == (SESSION, bad) for row in rows)
        (is_answered(502, "no such luck") if is_bad else arrives)(request)

    bad = expected(transcripts(home)[SESSION][0], claude_transcript)[0]["seq"]
    with BadRoad(fresh.url, then=fails) as road:
        done = run(home, road.url, fresh.key)
        assert done.returncode == 2
        assert "not uploaded: no such luck" in done.stdout
        assert {row["session_id"] for rows in road.rows for row in rows} == {SESSION, AGENT_FILE, THREAD}
        road.then = arrives
        assert run(home, road.url, fresh.key).returncode == 0
    assert_all_is_stored(fresh, home)


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--project", "/work"]], ids=str)
def test_what_is_no_file_among_the_transcripts_is_passed_over(laptop: Laptop, home: Path, options: list[str]) -> None:
    project = home / ".claude" / "projects" / "-work-app"
    os.mkfifo(project / "pipe.jsonl")
    os.mkfifo(next(home.glob(".codex/sessions/*/*/*")) / "rollout-pipe.jsonl")
    (project / "device.jsonl").symlink_to("/dev/zero")
    (project / "folder.jsonl").mkdir()
    assert run(home, laptop.url, laptop.key, *options).returncode == 0


def test_what_was_refused_is_said(laptop: Laptop, home: Path) -> None:
    def belongs_to_another(request: Passenger) -> None:
        request.say(403, b'{"error": "row 0: session_id x belongs to another user; nothing was written"}')

    with BadRoad(laptop.url, belongs_to_another) as road:
        done = run(home, road.url, laptop.key)
    assert done.returncode == 2
    assert f"refused: session {SESSION}: row 0: session_id x belongs to another user" in done.stdout


def test_without_an_address_and_a_key_it_says_what_is_missing(home: Path) -> None:
    done = ctrlb("backfill", environ=environment(home), cwd=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert "CTRLB_URL" in done.stderr


def test_ctrl_c_breaks_it_off_and_the_same_command_goes_on(fresh: Laptop, home: Path) -> None:
    with BadRoad(fresh.url, arrives, hangs) as road:
        process = subprocess.Popen(
            [PYTHON, str(AGENT / "ctrlb_agent"), "backfill"],
            env=environment(home, CTRLB_URL=road.url, CTRLB_KEY=fresh.key),
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
        assert run(home, road.url, fresh.key).returncode == 0
    assert_all_is_stored(fresh, home)


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
