"""The process that uploads behind a hook's back: it outlives the hook, mends what was missed, and may die anywhere."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from ctrlb_agent import state
from ctrlb_agent.uploading import background, spool, start
from tests.acceptance.calls import eventually
from tests.agent.bad_road import BadRoad, Passenger, answer_is_lost, arrives, hangs, is_answered, is_lost
from tests.agent.patience import patient_agent
from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S, logged
from tests.agent.recorded import DATA
from tests.agent.transcripts import bodies, settings, stored
from tests.agent.uploads import Machine
from tests.laptop import Laptop

START_AND_DIE = (
    "import json, os, sys; sys.path.insert(0, sys.argv[1]); from ctrlb_agent.uploading.start import start_detached; "
    "start_detached('claude', json.loads(sys.argv[2])); os._exit(0)"
)
SOONER = "from ctrlb_agent.uploading import background; background.HARD_END_S = 0.3"
ROUNDS = 30
MAX_ROUND_S = 0.7
LARGE_MB = 400
MAX_MEMORY_KB = 150_000


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    """A session id that no other test has."""
    name: str = request.node.name
    return name.replace("_", "-")[:100]


@pytest.mark.usefixtures("agent_home")
def test_the_upload_goes_on_when_the_hook_and_all_its_group_are_dead(
    laptop: Laptop, tmp_path: Path, session: str
) -> None:
    hook_is_dead = threading.Event()

    def waits(request: Passenger) -> None:
        hook_is_dead.wait(TIMEOUT_S)
        arrives(request)

    with BadRoad(laptop.url, waits) as road:
        machine = Machine(tmp_path, laptop, road, session)
        machine.write(machine.say("one") + machine.say("two"))
        told = json.dumps(machine.hook("Stop"))
        hook = subprocess.Popen(
            [PYTHON, "-c", START_AND_DIE, str(AGENT), told], env=machine.environ, start_new_session=True
        )
        assert hook.wait(TIMEOUT_S) == 0
        assert road.has_seen(1)
        with pytest.raises(ProcessLookupError):
            os.killpg(hook.pid, signal.SIGKILL)  # nobody of the hook's group is left to be killed
        hook_is_dead.set()
        eventually(lambda: assert_stored(laptop, machine, session))


def assert_stored(laptop: Laptop, machine: Machine, session: str) -> None:
    assert bodies(laptop, session) == machine.said


def test_other_users_cannot_read_in_the_list_of_processes_what_was_said(
    agent_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTRLB_URL", "")
    process = start.start_detached("claude", {"hook_event_name": "Stop", "last_assistant_message": "said", "x": 1})
    assert process is not None
    assert process.wait(TIMEOUT_S) == 0
    assert isinstance(process.args, list)
    assert process.args[-2:] == ["claude", '{"hook_event_name": "Stop"}']


def test_a_state_folder_that_is_named_by_a_relative_path_is_the_same_one_for_the_upload(
    laptop: Laptop, tmp_path: Path, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTRLB_AGENT_HOME", "rel")
    Path("rel").mkdir()
    Path("rel/redact.txt").write_text("my-own-[a-z]+\n")
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        machine.write(machine.say("it is my-own-secret"))
        for name in ("CTRLB_URL", "CTRLB_KEY"):
            monkeypatch.setenv(name, machine.environ[name])
        process = start.start_detached("claude", machine.hook("Stop"))
        assert process is not None
        assert process.wait(TIMEOUT_S) == 0
    assert bodies(laptop, session) == ["it is [REDACTED]"]
    assert not Path("rel/rel").exists()


@pytest.mark.usefixtures("agent_home")
def test_a_process_that_hangs_is_ended(laptop: Laptop, tmp_path: Path, session: str) -> None:
    with BadRoad(laptop.url, then=hangs) as road:
        machine = Machine(tmp_path, laptop, road, session)
        machine.write(machine.say("one"))
        hasty = start.START.replace("sys.exit", f"{SOONER}; sys.exit")
        told = json.dumps(machine.hook("Stop"))
        done = subprocess.run([PYTHON, "-c", hasty, str(AGENT), "claude", told], env=machine.environ, timeout=TIMEOUT_S)
    assert done.returncode == -signal.SIGALRM


def test_a_half_written_file_that_another_process_puts_into_its_place_does_not_matter(
    agent_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [Path(state.path("spool", f"{number}.abc.new")) for number in range(2)]
    for file in left:
        file.write_bytes(b"half")
        os.utime(file, (1_000, 1_000))
    real = os.path.getmtime

    def at_the_same_time(path: str) -> float:
        written = real(path)
        Path(path).replace(path[: -len(".new")])
        return written

    monkeypatch.setattr(os.path, "getmtime", at_the_same_time)
    background.remove_half_written(str(left[0].parent))
    assert not any(file.exists() for file in left)


def test_a_process_that_cannot_start_costs_a_line_in_the_log(agent_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert start.start_detached("claude", {"hook_event_name": "Stop"}) is None
    assert "upload: could not be started" in logged(agent_home)


@pytest.mark.usefixtures("agent_home")
def test_the_end_of_a_half_written_line_is_waited_for(laptop: Laptop, tmp_path: Path, session: str) -> None:
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        first, second = machine.say("one"), machine.say("two")
        machine.write(first + second[:20])
        process = machine.start("Stop")
        assert road.has_seen(1)
        machine.write(second[20:])
        assert process.wait(TIMEOUT_S) == 0
    assert_stored(laptop, machine, session)


@pytest.mark.usefixtures("agent_home")
def test_what_is_written_after_the_sessions_end_is_uploaded_and_the_hook_need_not_wait_for_it(
    laptop: Laptop, tmp_path: Path, session: str
) -> None:
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        machine.write(machine.say("one"))
        machine.run("SessionEnd")
        machine.write(machine.say("last"))
        eventually(lambda: assert_stored(laptop, machine, session))


@pytest.mark.usefixtures("agent_home")
def test_the_next_start_of_any_session_uploads_what_was_missed(laptop: Laptop, tmp_path: Path, session: str) -> None:
    with BadRoad(laptop.url, is_lost) as road:
        first = Machine(tmp_path, laptop, road, f"first-{session}")
        first.run("SessionStart")  # whose transcript is not there yet
        first.write(first.say("one"))
        second = Machine(tmp_path, laptop, road, f"second-{session}")
        second.write(second.say("two"))
        second.run("Stop")
        assert road.has_seen(1)
        third = Machine(tmp_path, laptop, road, f"third-{session}")
        third.run("SessionStart")
        for machine in (first, second):
            assert_stored(laptop, machine, machine.transcript.stem)
    assert spool.waiting(settings(laptop, road.url)) == []


@pytest.mark.usefixtures("agent_home")
def test_a_start_removes_what_a_killed_process_left_half_written(laptop: Laptop, tmp_path: Path, session: str) -> None:
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        machine.run("SessionStart")
        left = [Path(os.environ["CTRLB_AGENT_HOME"]) / folder / "1.abc.new" for folder in ("cursors", "spool")]
        recent = left[0].with_name("2.abc.new")
        for file in (*left, recent):
            file.write_bytes(b"half")
        for file in left:
            os.utime(file, (1_000, 1_000))
        machine.run("SessionStart")
    assert [file.exists() for file in (*left, recent)] == [False, False, True]


@pytest.mark.usefixtures("agent_home")
def test_a_hook_of_a_session_uploads_its_subagents_too(laptop: Laptop, tmp_path: Path, session: str) -> None:
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        machine.write(machine.say("one"))
        subagents = machine.transcript.with_suffix("") / "subagents"
        for name in ("agent-1", "deeper/agent-2"):
            (subagents / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(DATA / "claude" / "transcript-subagent.jsonl", subagents / f"{name}.jsonl")
        machine.run("Stop")
    rows = [row for rows in road.rows for row in rows]
    assert {(row["session_id"], row["parent_session"], row["agent_id"]) for row in rows} == {
        (session, "", ""),
        ("agent-1", session, "1"),
        ("agent-2", session, "2"),
    }


def test_the_files_of_a_hook_are_those_that_it_names(tmp_path: Path) -> None:
    hook = json.loads((DATA / "codex" / "hooks" / "SubagentStop.json").read_text())
    assert background.files_of("codex", hook) == [hook["transcript_path"], hook["agent_transcript_path"]]
    assert background.files_of("claude", {"transcript_path": None}) == []


@pytest.mark.slow
@pytest.mark.usefixtures("agent_home")
def test_a_large_transcript_is_read_in_little_memory(laptop: Laptop, tmp_path: Path, session: str) -> None:
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        blob = json.dumps({"type": "api-request-blob", "text": "x" * 1_000_000}).encode() + b"\n"
        for number in range(LARGE_MB):
            machine.write(machine.say(f"{number} {'y' * 20_000}") + blob)
        told = json.dumps(machine.hook("Stop"))
        bounded = ["sh", "-c", f'ulimit -v {MAX_MEMORY_KB}; exec "$@"', "sh", PYTHON, "-I", "-S", "-c", start.START]
        command = [*bounded, str(patient_agent()), "claude", told]
        subprocess.run(command, env=machine.environ, timeout=6 * TIMEOUT_S, check=True)
    assert len(stored(laptop, session)) == LARGE_MB


@pytest.mark.slow
@pytest.mark.races
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.usefixtures("agent_home")
def test_however_often_the_upload_is_killed_the_store_equals_the_transcript(
    laptop: Laptop, tmp_path: Path, session: str, seed: int
) -> None:
    chance = random.Random(seed)
    with BadRoad(laptop.url) as road:
        machine = Machine(tmp_path, laptop, road, session)
        running: list[subprocess.Popen[bytes]] = []
        rest = b""
        for number in range(ROUNDS):
            content = rest + b"".join(machine.say(f"{number}.{line}") for line in range(chance.randrange(900)))
            cut = chance.randrange(len(content) + 1)
            machine.write(content[:cut])
            rest = content[cut:]
            road.mishaps = chance.choices([arrives, answer_is_lost, is_lost, is_answered(500)], [4, 2, 1, 1], k=3)
            running = [machine.start(chance.choice(["Stop", "SessionStart", "SessionEnd"])) for _ in range(2)]
            for process in running:
                end_within(process, chance.uniform(0, MAX_ROUND_S))
        machine.write(rest)
        road.mishaps = []
        machine.run("SessionStart")
        machine.run("SessionStart")
        assert_stored(laptop, machine, session)
    assert spool.waiting(settings(laptop, road.url)) == []


def end_within(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill the process once so much time has passed, unless it has ended."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
