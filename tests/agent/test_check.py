"""The check before an edit: what it asks the server, and what it tells the client."""

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ctrlb_agent import complaints, state
from ctrlb_agent.edit_check.check import answer_once, spellings
from ctrlb_agent.sessions.identity import Identity
from tests.agent.hook_process import encoded, recorded, write_of
from tests.agent.programs import TIMEOUT_S, logged
from tests.agent.scripted_server import Behaviour, ScriptedServer, closes
from tests.agent.verdicts import FAILURES, HELD, UNTIL_US, verdict

ME = Identity("run-1", "agent-a", "/work/app")


class Check:
    """Checks of a session in a folder of its own, by a process that lives on, as the background process does."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self.environ = {"CTRLB_RUN": ME.run, "CTRLB_AGENT": ME.agent}

    def edit(self, server: ScriptedServer, *paths: str, deadline_s: float = TIMEOUT_S) -> bytes:
        """What is printed before a patch of these paths."""
        lines = "\n".join(f"*** Add File: {path}\n+1" for path in paths)
        patch = f"*** Begin Patch\n{lines}\n*** End Patch"
        sent = recorded("codex", "PreToolUse-apply_patch", cwd=str(self.root), tool_input={"command": patch})
        return self.call(server, sent, deadline_s)

    def call(self, server: ScriptedServer, sent: dict[str, Any], deadline_s: float = TIMEOUT_S) -> bytes:
        """What is printed before a tool call."""
        environ = {**self.environ, "CTRLB_URL": server.url, "CTRLB_KEY": "a-key"}
        return answer_once("codex", encoded(sent), environ, time.monotonic() + deadline_s)

    def output(self, server: ScriptedServer, *paths: str) -> dict[str, Any]:
        """The fields that the client reads."""
        whole = json.loads(self.edit(server, *paths))
        assert list(whole) == ["hookSpecificOutput"]
        said: dict[str, Any] = whole["hookSpecificOutput"]
        return said

    def log(self) -> str:
        """What was written down."""
        return logged(self.home)


@pytest.fixture
def checks(tmp_path: Path, agent_home: Path) -> Check:
    root = tmp_path / "checkout"
    (root / ".git").mkdir(parents=True)
    return Check(root.resolve(), agent_home)


def asked(server: ScriptedServer) -> list[dict[str, Any]]:
    """The bodies of the requests that the server got."""
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]


def test_one_request_asks_for_every_path_of_the_call(checks: Check) -> None:
    with ScriptedServer(verdict()) as server:
        assert checks.edit(server, "src/a.py", "b.py", "../c.py", f"{checks.root}/d.py") == b""

    outside = str(checks.root.parent / "c.py")
    paths = ["src/a.py", "b.py", outside, "d.py"]
    assert asked(server) == [{"agent": ME.agent, "paths": paths, "cwd": str(checks.root)}]


def test_more_paths_than_a_request_may_have_are_asked_for_in_several(checks: Check) -> None:
    paths = [f"file-{number}.py" for number in range(130)]
    with ScriptedServer(verdict()) as server:
        checks.edit(server, *paths)

    assert [len(body["paths"]) for body in asked(server)] == [64, 64, 2]
    assert [path for body in asked(server) for path in body["paths"]] == paths
    assert server.connections == 1


@pytest.mark.parametrize("run", ["nightly 1%2F", "ré?#&", "a+b;c=d", "..%"])
def test_an_id_is_one_part_of_the_address_whatever_is_in_it(checks: Check, run: str) -> None:
    checks.environ["CTRLB_RUN"] = run
    with ScriptedServer(verdict()) as server:
        checks.edit(server, "a.py")

    line = server.requests[0].partition(b"\r\n")[0].decode("ascii")
    assert line == f"POST /ai/relay/agent_sessions/runs/{quote(run, safe='')}/check HTTP/1.1"


def test_the_dataset_is_the_one_that_is_set(checks: Check) -> None:
    checks.environ["CTRLB_DATASET"] = "other"
    with ScriptedServer(verdict()) as server:
        checks.edit(server, "a.py")

    assert server.requests[0].startswith(b"POST /ai/relay/other/runs/")


def test_a_path_that_nobody_can_claim_is_not_asked_for(checks: Check) -> None:
    long = "/".join(["d" * 200] * 25)
    with ScriptedServer(verdict()) as server:
        sent = write_of("new\nline.py", checks.root)
        assert checks.call(server, sent) == b""
        assert server.requests == []
        checks.edit(server, "tab\there.py", long, "good.py")

    assert [body["paths"] for body in asked(server)] == [["good.py"]]


def test_a_linked_file_is_asked_for_under_every_name_it_has(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "libs").mkdir()
    (root / "libs" / "real.py").touch()
    (root / "packages").symlink_to("libs")
    (root / "libs" / "link.py").symlink_to("real.py")
    named = list(spellings(str(root), [f"{root}/packages/link.py"]))
    assert named == ["libs/link.py", "packages/link.py", "libs/real.py"]
    assert list(spellings(str(root), [f"{root}/libs/real.py"])) == ["libs/real.py"]


def test_a_link_to_a_link_is_asked_for_under_each_name_on_the_way(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "libs" / "deep").mkdir(parents=True)
    (root / "libs" / "deep" / "real.py").touch()
    (root / "folder").symlink_to("libs/deep")
    (root / "libs" / "second.py").symlink_to("../folder/../deep/real.py")
    (root / "first.py").symlink_to(root / "libs" / "second.py")
    (root / "loop.py").symlink_to("loop.py")
    assert list(spellings(str(root), [f"{root}/first.py"])) == ["first.py", "libs/second.py", "libs/deep/real.py"]
    assert list(spellings(str(root), [f"{root}/loop.py"])) == ["loop.py"]


def test_a_linked_checkout_and_the_real_one_ask_for_the_same(checks: Check) -> None:
    link = checks.root.parent / "link"
    link.symlink_to(checks.root)
    with ScriptedServer(verdict()) as server:
        for root in (checks.root, link):
            sent = write_of(root / "src" / "app.py", root, session_id=f"session-{root.name}")
            checks.call(server, sent)

    assert asked(server)[0] == asked(server)[1]
    assert asked(server)[0]["paths"] == ["src/app.py"]


def test_in_advisory_mode_the_agent_is_told_the_holder_and_the_claim_call(checks: Check) -> None:
    with ScriptedServer(verdict(HELD)) as server:
        output = checks.output(server, "src/app.py")

    assert set(output) == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == "PreToolUse"
    until = time.strftime("%H:%M:%S UTC", time.gmtime(UNTIL_US / 1_000_000))
    assert output["additionalContext"] == (
        f"src/app.py is held by agent-b until {until}. The edit goes ahead. Before you go on, call claim with "
        '{"resource": "src/app.py", "run_id": "run-1", "agent": "agent-a"}; if held is false, pick other work.'
    )


def test_in_enforce_mode_the_edit_is_refused_with_the_holder_and_the_claim_call(checks: Check) -> None:
    with ScriptedServer(verdict(HELD, mode="enforce")) as server:
        output = checks.output(server, "src/app.py")

    assert set(output) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    assert output["permissionDecision"] == "deny"
    reason = output["permissionDecisionReason"]
    assert reason.startswith("src/app.py is held by agent-b until ")
    assert 'call claim with {"resource": "src/app.py", "run_id": "run-1", "agent": "agent-a"}' in reason


@pytest.mark.parametrize("mode", ["off", "advisory", "enforce"])
def test_without_a_conflict_nothing_is_said(checks: Check, mode: str) -> None:
    with ScriptedServer(verdict(mode=mode)) as server:
        assert checks.edit(server, "src/app.py") == b""


def test_in_mode_off_nothing_is_said_even_of_a_conflict(checks: Check) -> None:
    with ScriptedServer(verdict(HELD, mode="off", allowed=True)) as server:
        assert checks.edit(server, "src/app.py") == b""


def test_one_file_of_many_that_is_held_refuses_the_call(checks: Check) -> None:
    free = json.dumps({"mode": "enforce", "allowed": True, "conflicts": []}).encode()
    held = json.dumps({"mode": "enforce", "allowed": False, "conflicts": [HELD]}).encode()

    def first_held(server: ScriptedServer, connection: Any) -> None:
        for body in (held, free):
            server.read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with ScriptedServer(first_held) as server:
        assert checks.output(server, *(f"{n}.py" for n in range(70)))["permissionDecision"] == "deny"
    assert len(server.requests) == 2


def test_what_is_known_is_told_when_a_later_question_fails(checks: Check) -> None:
    body = json.dumps({"mode": "enforce", "allowed": False, "conflicts": [HELD]}).encode()

    def once(server: ScriptedServer, connection: Any) -> None:
        server.read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with ScriptedServer(once, closes) as server:
        assert checks.output(server, *(f"{n}.py" for n in range(70)))["permissionDecision"] == "deny"
    assert "an edit was not checked" in checks.log()


@pytest.mark.parametrize(("behaviour", "reason"), list(FAILURES.values()), ids=list(FAILURES))
def test_a_check_that_fails_lets_the_edit_through_and_is_written_down(
    checks: Check, behaviour: Behaviour, reason: str
) -> None:
    with ScriptedServer(behaviour) as server:
        assert checks.edit(server, "a.py", deadline_s=0.5 if "in time" in reason else TIMEOUT_S) == b""

    assert checks.log().count("\n") == 1
    assert "check: an edit was not checked: " in checks.log()
    assert reason in checks.log()
    assert "a-key" not in checks.log()


def test_a_server_that_fails_every_time_does_not_fill_the_log(checks: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complaints, "EVERY_S", 1_000.0)
    with ScriptedServer(closes) as server:
        for _ in range(20):
            checks.edit(server, "a.py")
    assert checks.log().count("\n") == 1

    stamp = checks.home / "complained"
    os.utime(stamp, (0, time.time() - complaints.EVERY_S - 1))
    complaints.complain("later\x1b[31m " + "x" * 10_000)
    assert checks.log().count("\n") == 2
    assert len(checks.log()) < 1_500
    assert "\x1b" not in checks.log()


def test_a_hook_that_ends_while_it_complains_does_not_keep_the_next_reason_out_of_the_log(
    checks: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(line: str) -> None:
        raise SystemExit(0)

    with monkeypatch.context() as ending:
        ending.setattr(state, "log", end)
        with pytest.raises(SystemExit):
            complaints.complain("check: an edit was not checked: it did not answer in time")
    complaints.complain("hook: gave up after 0.95 s")
    assert "gave up" in checks.log()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"no json", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b"{}", b'{"tool_name": 1, "tool_input": {}}'),
        *(b'{"tool_name": "Write", "tool_input": []}', b'{"tool_name": "Write", "tool_input": {"file_path": 1}}'),
    ],
    ids=lambda data: repr(data[:50]),
)
def test_an_input_that_is_none_is_passed_over(checks: Check, data: bytes) -> None:
    with ScriptedServer(verdict(HELD, mode="enforce")) as server:
        environ = {**checks.environ, "CTRLB_URL": server.url, "CTRLB_KEY": "a-key"}
        assert answer_once("claude", data, environ, time.monotonic() + TIMEOUT_S) == b""
    assert server.connections == 0


@pytest.mark.parametrize("missing", ["CTRLB_URL", "CTRLB_KEY"])
def test_where_no_server_is_set_up_nothing_is_asked_or_logged(checks: Check, missing: str) -> None:
    with ScriptedServer(verdict(HELD)) as server:
        environ = {**checks.environ, "CTRLB_URL": server.url, "CTRLB_KEY": "a-key", missing: "${UNSET}"}
        sent = encoded(write_of("a.py", checks.root))
        assert answer_once("claude", sent, environ, time.monotonic() + TIMEOUT_S) == b""
    assert server.connections == 0
    assert checks.log() == ""
