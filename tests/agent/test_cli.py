"""`ctrlb` in a shell: what it prints, and what a script can branch on."""

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent.command_line import cli, place
from tests.agent.programs import AGENT, PYTHON, ctrlb, environment
from tests.agent.scripted_server import ScriptedServer, hangs, response
from tests.agent.shell import Done, Shell
from tests.laptop import Laptop
from tests.laptop_mode.conftest import client


def answer(done: Done) -> Any:
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_claim_is_held_by_one_and_refused_to_the_other(shell: Shell) -> None:
    first = shell("a", "claim", "src/app.py")
    again = shell("a", "claim", "src/app.py")
    other = shell("b", "claim", "src/app.py")

    assert (first.returncode, again.returncode, other.returncode) == (0, 0, 1)
    assert first.stdout.startswith("held until ")
    assert again.stdout.startswith("renewed until ")
    assert other.stdout == "src/app.py is already held by a; pick something else\n"


def test_json_is_the_servers_answer(shell: Shell) -> None:
    held = answer(shell("a", "claim", "src/app.py", "--json"))

    assert held["held"] is True
    assert held["key"] == "path:src/app.py"


@pytest.mark.parametrize(
    ("resource", "cwd", "key"),
    [
        ("src/app.py", ".", "path:src/app.py"),
        ("app.py", "src", "path:src/app.py"),
        ("./new.py", "src", "path:src/new.py"),
        ("../readme.md", "src", "path:readme.md"),
        ("src/app.py", "src", "path:src/app.py"),
        ("Task 04 Charts", "src", "name:task 04 charts"),
        ("task:a/b.c", "src", "name:task:a/b.c"),
        ("path:Makefile", "src", "path:Makefile"),
    ],
)
def test_a_path_is_named_from_the_checkouts_root(shell: Shell, resource: str, cwd: str, key: str) -> None:
    assert answer(shell("a", "claim", resource, "--json", cwd=cwd))["key"] == key


def test_an_absolute_path_through_a_link_is_the_same_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(shell.root)

    assert answer(shell("a", "claim", str(tmp_path / "link" / "src" / "app.py"), "--json"))["key"] == "path:src/app.py"


def test_a_release_marks_done_or_hands_back(shell: Shell) -> None:
    for resource in ("one.py", "two.py"):
        shell("a", "claim", resource)
    done = shell("a", "release", "one.py")
    back = shell("a", "release", "two.py", "--hand-back")
    nothing = shell("a", "release", "two.py")

    assert (done.returncode, done.stdout) == (0, "done: path:one.py\n")
    assert (back.returncode, back.stdout) == (0, "handed back: path:two.py\n")
    assert (nothing.returncode, nothing.stdout) == (1, "you held no claim on path:two.py: nothing was released\n")
    assert shell("b", "claim", "one.py").stdout == "one.py was already finished by a; pick something else\n"
    assert shell("b", "claim", "two.py").returncode == 0


def test_a_check_names_the_holder(shell: Shell) -> None:
    shell("a", "claim", "Makefile")

    free = shell("a", "check", "Makefile", "src/app.py")
    held = shell("b", "check", "src/app.py", "Makefile")

    assert (free.returncode, free.stdout) == (0, "free\n")
    assert held.returncode == 1
    assert held.stdout.startswith("Makefile is held by a until ")


def test_notes_and_claims_are_shown_newest_first(shell: Shell) -> None:
    shell("a", "post", "Taking the lexer\nand its tests")
    shell("b", "claim", "src/app.py")

    lines = shell("a", "peers").stdout.splitlines()

    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "b HOLD path:src/app.py",
        "a NOTE  Taking the lexer and its tests",
    ]


def test_a_run_that_nobody_wrote_to_has_no_events(shell: Shell) -> None:
    assert shell("a", "peers").stdout == "nobody has written to this run yet\n"


def test_status_shows_what_is_held(shell: Shell) -> None:
    empty = shell("a", "status").stdout
    shell("b", "claim", "src/app.py")
    status = shell("a", "status").stdout

    assert empty.splitlines()[-1] == "held     nothing"
    assert f"run      {shell.run}\nagent    a\nroot     {shell.root}\nenforce  advisory\n" in status
    assert status.splitlines()[-1].startswith("held     path:src/app.py by b until ")


def test_status_needs_no_run(shell: Shell, laptop: Laptop) -> None:
    environ = environment(shell.home, laptop)
    told = ctrlb("status", environ=environ, cwd=shell.root)
    as_json = json.loads(ctrlb("status", "--json", environ=environ, cwd=shell.root).stdout)

    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"server   {laptop.url}, dataset agent_sessions\nrun      not known: pass --run")
    assert told.stdout.endswith("enforce  advisory\n")
    assert (as_json["run_id"], as_json["resources"]) == ("", [])


def test_search_finds_what_a_session_said_and_answers_as_grep_does(shell: Shell, laptop: Laptop) -> None:
    row = {"session_id": "s-1", "seq": 3, "block_type": "tool_use", "tool_name": "Bash", "command": "make quokka"}
    with client(laptop, laptop.key) as http:
        http.post("/ai/sessions/agent_sessions/records", json=[row]).raise_for_status()

    found = shell("a", "search", "quokka", "--tool", "Bash", "--oldest")
    none = shell("a", "search", "wombat")

    assert (found.returncode, none.returncode) == (0, 1)
    assert found.stdout == "1 found\n\ns-1 3  tool_use Bash\n  make quokka\n"
    assert none.stdout == "0 found\n"


@pytest.mark.parametrize(
    ("changed", "arguments", "said"),
    [
        ({"CTRLB_URL": ""}, ["claim", "x"], "the server is not known: set CTRLB_URL"),
        ({"CTRLB_KEY": "${CTRLB_KEY}"}, ["claim", "x"], "there is no key: set CTRLB_KEY"),
        ({"CTRLB_RUN": ""}, ["peers"], "the run is not known: pass --run"),
        ({"CTRLB_AGENT": ""}, ["post", "x"], "the agent is not known: pass --agent"),
        ({"CTRLB_KEY": "ctrlb_no_key"}, ["peers"], "(MCP_INVALID_KEY)"),
        ({}, ["claim", ""], "resource"),
        ({}, ["peers", "--limit", "501"], "limit"),
        ({}, ["search", "--limit", "26", "word"], "limit"),
        ({}, ["check", *(str(number) for number in range(65))], "at most 64 paths"),
        ({"CTRLB_URL": "http://127.0.0.1:1"}, ["peers"], "nothing listens at http://127.0.0.1:1"),
    ],
)
def test_a_mistake_is_status_2_and_says_what_to_do(
    shell: Shell, laptop: Laptop, changed: dict[str, str], arguments: list[str], said: str
) -> None:
    environ = environment(shell.home, laptop, CTRLB_RUN="run", CTRLB_AGENT="a") | changed

    done = ctrlb(*arguments, environ=environ, cwd=shell.root)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_what_is_held_is_not_told_as_nothing_when_the_server_fails(shell: Shell) -> None:
    def settings_only(server: ScriptedServer, connection: socket.socket) -> None:
        server.read_request(connection)
        is_for_settings = b" /ai/relay/settings " in server.requests[-1]
        connection.sendall(response(200, b'{"enforce":"off"}') if is_for_settings else response(500, b"{}"))

    with ScriptedServer(settings_only) as server:
        environ = environment(shell.home, CTRLB_URL=server.url, CTRLB_KEY="k", CTRLB_RUN="run", CTRLB_AGENT="a")
        done = ctrlb("status", environ=environ, cwd=shell.root)

    assert (done.returncode, done.stdout) == (2, "")
    assert "answered 500" in done.stderr


def test_without_a_command_the_usage_is_shown(shell: Shell) -> None:
    done = ctrlb(environ=environment(shell.home), cwd=shell.root)
    helped = ctrlb("--help", environ=environment(shell.home), cwd=shell.root)

    assert done.returncode == 2
    assert "usage: ctrlb-agent" in done.stderr
    assert helped.returncode == 0
    for command in ("claim", "release", "check", "post", "peers", "search", "backfill", "status", "doctor"):
        assert f"\n    {command}" in helped.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["clam", "x"], "there is no command 'clam'; did you mean claim?"),
        (["fly"], "there is no command 'fly'\n"),
        (["claim", "x", "--rnu", "r"], "unrecognized arguments: --rnu r; did you mean --run?"),
        (["claim", "x", "--agen=a"], "unrecognized arguments: --agen=a; did you mean --agent?"),
        (["release", "x", "--finished"], "unrecognized arguments: --finished\n"),
        (["backfill", "--jsno"], "unrecognized arguments: --jsno\n"),
        (["search", "two", "words"], "unrecognized arguments: words; what has spaces needs quotes\n"),
        (["backfill", "--since", "yesterday"], "--since: 'yesterday' is no date: it should be like 2026-11-30"),
    ],
)
def test_of_a_word_that_is_none_the_nearest_is_named(shell: Shell, arguments: list[str], said: str) -> None:
    done = ctrlb(*arguments, environ=environment(shell.home), cwd=shell.root)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_help_of_a_command_tells_its_statuses(shell: Shell) -> None:
    helped = ctrlb("claim", "--help", environ=environment(shell.home), cwd=shell.root).stdout

    assert "exit status: 0 when it is yours, 1 when another has it or it is done; 2 an" in helped


def test_it_runs_as_a_module_from_its_folder(shell: Shell) -> None:
    done = subprocess.run([PYTHON, "-m", "ctrlb_agent", "--version"], cwd=AGENT, capture_output=True, check=True)

    assert done.stdout.startswith(b"ctrlb-agent 0.")


def test_the_address_and_the_key_can_be_kept_in_a_file_of_ones_own(shell: Shell, laptop: Laptop) -> None:
    bare = environment(shell.home, CTRLB_RUN=shell.run, CTRLB_AGENT="a")
    kept = ctrlb("configure", "--url", laptop.url, "--key-from-stdin", environ=bare, cwd=shell.root, sent=laptop.key)
    again = ctrlb("configure", "--dataset", "agent_sessions", environ=bare, cwd=shell.root)
    claimed = ctrlb("claim", "src/app.py", environ=bare, cwd=shell.root)

    assert (kept.returncode, again.returncode, claimed.returncode) == (0, 0, 0)
    assert laptop.key not in kept.stdout
    file = shell.home / "state" / "config.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["key"] == laptop.key


def test_a_server_that_says_nothing_is_given_up(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "DEADLINE_S", 0.2)
    with ScriptedServer(hangs) as server:
        status = cli.main(
            ["peers", "--run", "r"],
            {"CTRLB_URL": server.url, "CTRLB_KEY": "k", "CTRLB_AGENT_HOME": str(shell.home / "state")},
        )

    assert status == 2
