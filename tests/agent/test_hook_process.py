"""The hook before a tool call as the clients run it: a process with a recorded input, and a server or none."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from ctrlb_agent import hook as hook_module
from tests.agent.hook_process import SPARE_S, Machine, encoded, recorded, recorded_names, write_of
from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S
from tests.agent.scripted_server import Behaviour, ScriptedServer
from tests.agent.verdicts import FAILURES, HELD, verdict
from tests.laptop import Laptop
from tests.laptop_mode.conftest import client
from tests.nobody import NOBODY

EDITS = [
    *(("claude", name) for name in recorded_names("claude", "PreToolUse") if "-Write" in name or "-Edit" in name),
    *(("codex", name) for name in recorded_names("codex", "PreToolUse") if "apply_patch" in name),
]
OTHERS = [
    (client, name)
    for client in ("claude", "codex")
    for name in recorded_names(client, "PreToolUse")
    if (client, name) not in EDITS
]


@pytest.fixture(scope="module")
def warm(laptop: Laptop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine that is set up for the module's server, with its background process running."""
    made = Machine(tmp_path_factory.mktemp("warm") / "home", laptop.url, laptop.key)
    made.start_daemon()
    yield made
    made.close()


@pytest.fixture
def rival(laptop: Laptop, warm: Machine, machine: Machine) -> Iterator[httpx2.Client]:
    """A client of another agent's in the run of both machines, a new run."""
    run = f"run {uuid.uuid4()} é%2F"
    for user in (warm, machine):
        user.environ |= {"CTRLB_URL": laptop.url, "CTRLB_KEY": laptop.key, "CTRLB_RUN": run}
    headers = {"Authorization": f"Bearer {laptop.key}", "X-CtrlB-Agent": "agent-b"}
    base = f"{laptop.url}/ai/relay/agent_sessions/runs/{quote(run, safe='')}"
    with httpx2.Client(base_url=base, headers=headers, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def token(laptop: Laptop) -> str:
    """What signs a person in, who may change the settings."""
    signed_in: str = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code}).json()["token"]
    return signed_in


@pytest.fixture
def enforce(laptop: Laptop, token: str) -> Iterator[Any]:
    """Sets the enforce mode, for this test."""
    with client(laptop, token) as person:
        before = person.get("/ai/relay/settings").json()

        def change(mode: str) -> None:
            assert person.put("/ai/relay/settings", json={**before, "enforce": mode}).status_code == 200

        yield change
        change(before["enforce"])


def claim(rival: httpx2.Client, resource: str) -> None:
    """Let the rival hold it."""
    assert rival.post("/claims", json={"resource": resource}).json()["held"] is True


def file_of(client: str, name: str) -> str:
    """The file that the recorded call edits."""
    tool_input = recorded(client, name)["tool_input"]
    if "file_path" in tool_input:
        return Path(tool_input["file_path"]).name
    header: str = tool_input["command"].partition("*** Add File: ")[2]
    return header.partition("\n")[0]


@pytest.mark.parametrize(("client", "name"), EDITS)
def test_a_recorded_edit_of_a_free_file_is_let_through_in_silence(
    warm: Machine, rival: httpx2.Client, client: str, name: str
) -> None:
    assert warm.before_edit(recorded(client, name), client).is_silent
    assert warm.log() == ""


@pytest.mark.parametrize(("client", "name"), EDITS)
@pytest.mark.parametrize("mode", ["advisory", "enforce", "off"])
def test_a_recorded_edit_of_a_held_file_is_told_or_refused_as_the_mode_says(
    warm: Machine, rival: httpx2.Client, enforce: Any, client: str, name: str, mode: str
) -> None:
    enforce(mode)
    held = file_of(client, name)
    claim(rival, held)
    done = warm.before_edit(recorded(client, name), client)

    assert (done.status, done.errors) == (0, b"")
    if mode == "off":
        assert done.printed == b""
        return
    said = done.output
    assert said["hookEventName"] == "PreToolUse"
    if mode == "advisory":
        assert set(said) == {"hookEventName", "additionalContext"}
    else:
        assert set(said) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
        assert said["permissionDecision"] == "deny"
    text = said.get("additionalContext") or said["permissionDecisionReason"]
    assert text.startswith(f"{held} is held by agent-b until ")
    assert f'call claim with {{"resource": "{held}", "run_id": "{warm.environ["CTRLB_RUN"]}"' in text
    assert '"agent": "agent-7"' in text


@pytest.mark.parametrize(("client", "name"), OTHERS)
def test_a_recorded_call_that_edits_nothing_asks_no_server(machine: Machine, client: str, name: str) -> None:
    with ScriptedServer(verdict(HELD, mode="enforce")) as server:
        done = machine.before_edit(recorded(client, name), client, CTRLB_URL=server.url)
    assert done.is_silent
    assert server.connections == 0


def test_ones_own_claim_is_no_obstacle_nor_is_it_to_a_subagent(warm: Machine, rival: httpx2.Client) -> None:
    assert rival.post("/claims", json={"agent": "agent-7", "resource": "notes.txt"}).json()["held"] is True
    sent = recorded("claude", "PreToolUse-Write")
    assert warm.before_edit(sent).is_silent
    assert warm.before_edit({**sent, "agent_id": "a45999794fcec398c", "agent_type": "general-purpose"}).is_silent


@pytest.mark.parametrize("held", ["src/old.py", "src/new.py"])
def test_a_move_is_an_edit_of_both_its_files(warm: Machine, rival: httpx2.Client, held: str) -> None:
    claim(rival, held)
    patch = "*** Begin Patch\n*** Update File: src/old.py\n*** Move to: src/new.py\n@@\n-1\n+2\n*** End Patch"
    sent = recorded("codex", "PreToolUse-apply_patch", tool_input={"command": patch})
    text = warm.before_edit(sent, "codex").output["additionalContext"]
    assert text.startswith(f"{held} is held by agent-b")


@pytest.mark.parametrize(
    "name", ['sp ace/it\'s "so".py', "café.py", "cafe\u0301.py", "日本/語.py", "a\\b.py", "%41.py"]
)
def test_a_claim_is_found_however_odd_its_name(warm: Machine, rival: httpx2.Client, name: str) -> None:
    claim(rival, name)
    assert warm.before_edit(write_of(name, warm.home)).output["additionalContext"]


def test_the_real_and_a_linked_checkout_meet_in_one_claim(warm: Machine, rival: httpx2.Client) -> None:
    checkout, link = warm.home / "checkout", warm.home / "link"
    (checkout / ".git").mkdir(parents=True)
    (checkout / "src").mkdir()
    link.symlink_to(checkout)
    claim(rival, "src/app.py")
    for number, root in enumerate((checkout, link)):
        sent = write_of(root / "src" / "app.py", root / "src", session_id=f"session-{number}")
        assert warm.before_edit(sent).output["additionalContext"].startswith("src/app.py is held by agent-b")


@pytest.mark.parametrize("name", ["tab\there", "line\nbreak", "\x7f", "\x85", "\udcff"])
def test_a_checkout_is_checked_whatever_its_name(warm: Machine, rival: httpx2.Client, name: str) -> None:
    (warm.home / name / ".git").mkdir(parents=True)
    claim(rival, "src/app.py")
    sent = json.dumps(write_of("src/app.py", warm.home / name)).encode()  # the client's text may hold half a pair
    for _ in range(2):
        assert warm.before_edit(sent).output["additionalContext"].startswith("src/app.py is held by agent-b")


def test_a_file_outside_of_the_checkout_is_found_under_its_absolute_path(warm: Machine, rival: httpx2.Client) -> None:
    checkout = warm.home / "checkout"
    (checkout / ".git").mkdir(parents=True, exist_ok=True)
    outside = str(warm.home.resolve() / "outside.py")
    claim(rival, outside)
    sent = write_of("../outside.py", checkout)
    assert outside in warm.before_edit(sent).output["additionalContext"]


@pytest.mark.parametrize("through", ["the background process", "the hook itself"])
@pytest.mark.parametrize(("behaviour", "reason"), list(FAILURES.values()), ids=list(FAILURES))
def test_whatever_the_server_does_the_edit_goes_on_within_a_second(
    machine: Machine, behaviour: Behaviour, reason: str, through: str
) -> None:
    machine.agent = AGENT
    if through == "the background process":
        machine.start_daemon()
    with ScriptedServer(behaviour) as server:
        done = machine.before_edit(recorded("claude", "PreToolUse-Write"), CTRLB_URL=server.url)
        machine.close()

    assert done.is_silent
    assert done.took_s < hook_module.TOTAL_S + SPARE_S
    assert machine.log().count("\n") in (1, 2)  # two, when the alarm rings at the moment when the request is given up
    assert reason in machine.log() or "gave up after" in machine.log()
    assert machine.environ["CTRLB_KEY"] not in machine.log()


@pytest.mark.parametrize("through", ["the background process", "the hook itself"])
def test_where_nothing_listens_the_edit_goes_on(machine: Machine, through: str) -> None:
    if through == "the background process":
        machine.start_daemon()
    for _ in range(3):
        assert machine.before_edit(recorded("claude", "PreToolUse-Write"), CTRLB_URL=NOBODY).is_silent
    assert machine.log().count("nothing listens at") == 1


def test_an_edit_of_megabytes_is_checked_like_any_other(machine: Machine, rival: httpx2.Client) -> None:
    claim(rival, "big.txt")
    for size in (100_000, 3_000_000):
        sent = write_of("big.txt", machine.home)
        sent["tool_input"]["content"] = "é" * size
        assert machine.before_edit(sent).output["additionalContext"].startswith("big.txt is held by agent-b")


def test_before_an_edit_only_what_the_interpreter_has_in_itself_is_imported(machine: Machine) -> None:
    machine.start_daemon()
    code = "import sys; sys.path.insert(0, sys.argv[1]); from ctrlb_agent import hook; hook.main(sys.argv[2:])"
    flags = ["-I", "-S", "-X", "importtime"]
    sent = encoded(recorded("claude", "PreToolUse-Write"))

    def imported(*command: str) -> set[str]:
        run = [PYTHON, *flags, *command]
        said = subprocess.run(run, env=machine.environ, input=sent, capture_output=True, timeout=TIMEOUT_S).stderr
        return {line.rpartition(b"|")[2].strip().decode() for line in said.splitlines() if b"import time:" in line}

    with ScriptedServer(verdict()) as server:
        machine.environ["CTRLB_URL"] = server.url
        ours = imported("-c", code, str(machine.agent), "claude", "PreToolUse")
        machine.close()
    assert len(server.requests) == 1
    assert ours - imported("-c", "pass") == {"ctrlb_agent", "ctrlb_agent.hook", "_socket"}
