"""The run that a command acts in when nobody named one: that of the checkout around the current directory."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.agent.programs import ctrlb, environment
from tests.agent.sessions import CLAUDE, end, start
from tests.agent.shell import Done, Shell
from tests.laptop import Laptop


class Person:
    """Somebody whose shell is in the checkout, and who has set neither a run nor an agent."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def __call__(self, *arguments: str, cwd: str = ".", **more: str) -> Done:
        environ = environment(self.shell.home, self.shell.laptop, **more)
        return ctrlb(*arguments, environ=environ, cwd=self.shell.root / cwd)

    def kept(self) -> dict[str, tuple[bytes, int]]:
        """Every session on file, with the time at which it was last touched."""
        files = (self.shell.home / "state" / "sessions").iterdir()
        return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


@pytest.fixture
def person(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A person on the machine whose sessions this process plays."""
    monkeypatch.setenv("CTRLB_AGENT_HOME", str(shell.home / "state"))
    return Person(shell)


def test_a_person_acts_in_the_run_of_the_live_agents_and_is_told_which(person: Person) -> None:
    run = start("one", person.shell.root).run
    told = f"in run {run}, which this checkout's live agents share\n"

    claimed = person("claim", "src/app.py", "--agent", "me")
    checked = person("check", "src/app.py", "--agent", "another", cwd="src")
    posted = person("post", "hello", CTRLB_AGENT="me")
    released = person("release", "src/app.py", "--agent", "me")
    seen = person("peers")

    every = (claimed, checked, posted, released, seen)
    assert [done.stderr for done in every] == [told] * len(every)
    assert [done.returncode for done in every] == [0, 1, 0, 0, 0]
    assert "me NOTE  hello" in seen.stdout
    assert person("peers", "--run", run).stdout.splitlines()[-1].endswith(" me HOLD path:src/app.py")


def test_json_stays_the_servers_answer_and_nothing_is_said_beside_it(person: Person) -> None:
    run = start("one", person.shell.root).run
    by_itself = person("claim", "x.py", "--agent", "me", "--json")
    by_name = person("claim", "x.py", "--agent", "me", "--json", "--run", run)

    assert (by_itself.stderr, by_name.stderr) == ("", "")
    assert set(json.loads(by_itself.stdout)) == {"held", "resource", "key", "lease_until"}
    assert json.loads(by_name.stdout)["renewed"] is True


def test_status_tells_the_run_of_the_checkout_in_its_answer(person: Person) -> None:
    run = start("one", person.shell.root).run
    told, as_json = person("status"), person("status", "--json")

    assert (told.stderr, as_json.stderr) == ("", "")
    assert f"\nrun      {run}\n" in told.stdout
    assert json.loads(as_json.stdout)["run_id"] == run


def test_who_asks_joins_makes_and_renews_nothing(person: Person) -> None:
    start("one", person.shell.root)
    heard_s = time.time() - 600  # so long ago that a hook would note it anew
    os.utime(person.shell.home / "state" / "sessions" / "one.json", (heard_s, heard_s))
    before = person.kept()

    assert person("peers").returncode == 0
    assert person.kept() == before


def test_what_is_named_wins(person: Person) -> None:
    start("one", person.shell.root)
    start("two", person.shell.root, environ={**CLAUDE, "CTRLB_RUN": "set"})

    for named in (person("peers", "--run", "said"), person("peers", CTRLB_RUN="set")):
        assert (named.returncode, named.stderr) == (0, "")
    as_session = person("status", "--json", CLAUDE_CODE_SESSION_ID="two")
    assert json.loads(as_session.stdout)["run_id"] == "set"


@pytest.mark.parametrize("arguments", [("claim", "x"), ("release", "x"), ("post", "x"), ("check", "x")])
def test_the_agent_is_still_to_be_named(person: Person, arguments: tuple[str, ...]) -> None:
    start("one", person.shell.root)
    done = person(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ctrlb-agent: the agent is not known: pass --agent, or set CTRLB_AGENT\n"


def test_without_a_live_agent_the_run_is_to_be_named(person: Person, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / ".git").mkdir(parents=True)
    start("over", person.shell.root)
    end("over", person.shell.root)
    start("elsewhere", tmp_path / "elsewhere")
    start("told", person.shell.root, environ={**CLAUDE, "CTRLB_RUN": "nightly"})  # draws nobody with it
    before = person.kept()
    done, as_json = person("peers"), person("peers", "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert "the run is not known: pass --run, or set CTRLB_RUN. No live agent shares a run of the check" in done.stderr
    assert f"{person.shell.root}; the console lists all runs" in done.stderr
    assert json.loads(as_json.stdout)["error"].startswith("the run is not known")
    assert person.kept() == before


def test_a_state_folder_that_cannot_be_read_has_no_run(person: Person, laptop: Laptop) -> None:
    (person.shell.home / "no-folder").write_text("")
    done = person("peers", CTRLB_AGENT_HOME=str(person.shell.home / "no-folder"))

    assert done.returncode == 2
    assert "the run is not known: pass --run" in done.stderr
