"""Who a session is, as its hooks find out: from files, the environment and the processes of this machine."""

import os
import time
from pathlib import Path

import pytest

from ctrlb_agent import state
from ctrlb_agent.paths import root_of
from ctrlb_agent.sessions import identity, names
from ctrlb_agent.sessions.identity import Identity, identity_of, identity_of_session, join_run
from ctrlb_agent.sessions.membership import Session
from tests.agent.programs import logged
from tests.agent.sessions import CLAUDE, end, hook, start


def test_agents_of_one_checkout_share_a_readable_run_and_have_ids_of_their_own(checkout: Path) -> None:
    (checkout / "src").mkdir()
    first, second = start("one", checkout), start("two", checkout / "src")
    assert first.run == second.run
    assert first.run.startswith("app-")
    assert names.id_fault(first.run) is None
    assert first.agent != second.agent
    assert first.agent.startswith("claude-")
    assert first.root == second.root == str(checkout)


def test_another_checkout_has_another_run(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "app" / ".git").mkdir(parents=True)
    assert start("one", checkout).run != start("two", tmp_path / "elsewhere" / "app").run


def test_a_link_to_a_checkout_is_the_checkout(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(checkout)
    assert start("one", tmp_path / "link").run == start("two", checkout).run


def test_a_worktree_and_a_folder_without_git_are_roots_themselves(tmp_path: Path) -> None:
    (tmp_path / "worktree" / "deep").mkdir(parents=True)
    (tmp_path / "worktree" / ".git").write_text("gitdir: elsewhere")
    assert root_of(str(tmp_path / "worktree" / "deep")) == str(tmp_path / "worktree")
    assert root_of(str(tmp_path)) == str(tmp_path)


def test_every_hook_tells_the_identity_that_the_first_one_made(checkout: Path) -> None:
    missed = identity_of(hook("one", checkout, "PreToolUse"), CLAUDE, "claude")
    in_subagent = hook("one", checkout / "deep", "PreToolUse", agent_id="a4599")
    assert start("one", checkout) == missed == identity_of(in_subagent, CLAUDE, "claude") == identity_of_session("one")


def test_claude_codes_project_tells_the_root_wherever_its_shell_is(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / ".git").mkdir(parents=True)
    environ = {**CLAUDE, "CLAUDE_PROJECT_DIR": str(checkout)}
    assert identity_of(hook("one", tmp_path / "other", "PreToolUse"), environ, "claude").root == str(checkout)


def test_nothing_of_claude_code_is_believed_of_a_codex_that_its_shell_started(checkout: Path, tmp_path: Path) -> None:
    environ = {"CLAUDE_PID": "1", "CLAUDE_PROJECT_DIR": str(tmp_path)}
    assert identity_of(hook("thread", checkout), environ, "codex").root == str(checkout)


def test_the_variables_win_and_either_may_be_missing(checkout: Path) -> None:
    both = start("one", checkout, environ={**CLAUDE, "CTRLB_RUN": "nightly", "CTRLB_AGENT": "builder-1"})
    assert both == Identity("nightly", "builder-1", str(checkout))
    run_only = start("two", checkout, environ={**CLAUDE, "CTRLB_RUN": "nightly"})
    assert run_only.run == "nightly"
    assert run_only.agent not in ("", "builder-1")
    agent_only = start("three", checkout, environ={**CLAUDE, "CTRLB_AGENT": "builder-3"})
    assert agent_only.agent == "builder-3"
    assert agent_only.run == start("four", checkout).run
    assert identity_of_session("one") == both


@pytest.mark.parametrize("value", ["", "  ", "${CTRLB_RUN}", "a/b", "a\\b", "x" * 201, "bell\a"])
def test_a_variable_that_holds_no_id_counts_as_unset(checkout: Path, value: str) -> None:
    assert start("one", checkout, environ={**CLAUDE, "CTRLB_RUN": value}).run.startswith("app-")


def test_a_variable_that_appears_later_is_followed_at_once(checkout: Path) -> None:
    before = start("one", checkout)
    later = {**CLAUDE, "CTRLB_RUN": "nightly"}
    after = identity_of(hook("one", checkout, "PreToolUse"), later, "claude")
    assert after == before._replace(run="nightly") == identity_of_session("one")


def test_clear_hands_the_identity_to_the_next_session_of_the_process(checkout: Path) -> None:
    before = start("one", checkout)
    end("one", checkout, "clear")
    assert start("two", checkout, "clear") == before
    assert start("three", checkout).agent != before.agent
    assert identity_of_session("one") == before, "what it said is still to be uploaded"


def test_a_cleared_session_that_acts_again_keeps_its_identity_from_the_next(checkout: Path) -> None:
    before = start("one", checkout)
    end("one", checkout, "clear")
    assert identity_of(hook("one", checkout, "PreToolUse"), CLAUDE, "claude") == before
    assert identity_of(hook("two", checkout, "UserPromptSubmit"), CLAUDE, "claude").agent != before.agent


def test_a_session_that_ended_comes_back_as_itself(checkout: Path) -> None:
    before = start("one", checkout)
    end("one", checkout)
    assert start("one", checkout, "resume") == before


def test_a_session_that_comes_back_joins_the_run_that_began_meanwhile(checkout: Path) -> None:
    before = start("one", checkout)
    end("one", checkout)
    meanwhile = start("two", checkout)
    assert meanwhile.run != before.run
    assert start("one", checkout, "resume") == before._replace(run=meanwhile.run)


def test_hooks_that_come_after_the_end_bring_nobody_back(checkout: Path) -> None:
    before = start("one", checkout)
    end("one", checkout)
    for event in ("Stop", "SubagentStop", "SessionEnd"):
        assert identity_of(hook("one", checkout, event), CLAUDE, "claude") == before
    assert start("two", checkout).run != before.run


def test_whoever_joins_a_run_stays_in_it_over_resume_until_a_variable_says_otherwise(checkout: Path) -> None:
    environ = {**CLAUDE, "CTRLB_RUN": "nightly"}
    before = start("one", checkout, environ=environ)
    joined = join_run(hook("one", checkout, "UserPromptExpansion"), environ, "claude", "run-9")
    assert joined == before._replace(run="run-9")
    assert identity_of(hook("one", checkout, "PreToolUse"), environ, "claude") == joined
    end("one", checkout, environ=environ)
    assert start("one", checkout, "resume", environ=environ) == joined
    assert start("one", checkout, "resume", environ=CLAUDE) == joined
    assert start("one", checkout, "resume", environ={**CLAUDE, "CTRLB_RUN": "weekly"}).run == "weekly"


def test_whoever_joins_a_run_takes_no_id_that_somebody_there_has(checkout: Path) -> None:
    other = start("two", checkout, environ={**CLAUDE, "CTRLB_RUN": "run-9"})
    clash = {**CLAUDE, "CTRLB_AGENT": other.agent}
    start("one", checkout, environ=clash)
    joined = join_run(hook("one", checkout, "UserPromptExpansion"), CLAUDE, "claude", "run-9")
    assert joined.agent != other.agent


@pytest.mark.parametrize("run", ["", "a/b", "x" * 201])
def test_what_cannot_be_a_run_id_is_not_joined(checkout: Path, run: str) -> None:
    before = start("one", checkout)
    with pytest.raises(ValueError, match="a run id"):
        join_run(hook("one", checkout, "UserPromptExpansion"), CLAUDE, "claude", run)
    assert identity_of_session("one") == before


def test_a_folder_that_cannot_be_written_gives_the_same_answer_each_time(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("CTRLB_AGENT_HOME", str(tmp_path / "a-file" / "state"))
    first, second = start("one", checkout), start("two", checkout)
    assert first == start("one", checkout) == identity_of(hook("one", checkout, "PreToolUse"), CLAUDE, "claude")
    assert first.run == second.run
    assert first.agent != second.agent
    assert identity_of_session("one") is None


def test_a_lock_that_somebody_keeps_costs_a_moment_and_no_answer(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "START_LOCK_WAIT_S", 0.01)
    before = start("one", checkout)
    with state.locked(state.path("sessions.lock"), 1.0):
        second = start("two", checkout)
    assert second.run == before.run
    assert second == start("two", checkout)
    assert "without the lock" in logged(Path(state.home()))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"run": 1}', "\x00", '{"run": ' + "[" * 100_000, "[" * 100_000])
def test_a_broken_file_costs_nobody_a_hook(checkout: Path, content: str) -> None:
    before = start("one", checkout)
    other = start("two", checkout)
    Path(state.path("sessions", "one.json")).write_text(content)
    assert start("one", checkout) == before
    assert start("two", checkout) == other


@pytest.mark.parametrize("value", ["x", "", [], {}, None, -1, 10**30, 0.5])
@pytest.mark.parametrize("field", Session._fields)
def test_a_file_with_an_odd_value_costs_nobody_a_hook(checkout: Path, field: str, value: object) -> None:
    start("one", checkout)
    other = start("two", checkout)
    kept = state.read_json(state.path("sessions", "one.json"))
    assert kept
    state.write_json(state.path("sessions", "one.json"), {**kept, field: value})
    for session in ("one", "two", "three"):
        who = start(session, checkout)
        assert names.id_fault(who.run) is names.id_fault(who.agent) is None
        assert identity_of(hook(session, checkout, "PreToolUse"), CLAUDE, "claude") == who
        assert start("two", checkout) == other
    end("one", checkout)


@pytest.mark.parametrize("cwd", ["a\0b", "/\ud800", "", "x" * 100_000, "/no/such/folder"])
def test_a_folder_that_can_be_none_costs_nobody_a_hook(checkout: Path, cwd: str) -> None:
    assert start("one", Path(cwd)).run
    assert start("two", checkout, environ={**CLAUDE, "CLAUDE_PROJECT_DIR": cwd}).run


def test_a_session_that_was_seen_in_the_future_is_not_live_for_ever(checkout: Path) -> None:
    before = start("one", checkout, environ={"CLAUDE_PID": "0"})
    end_of_time_s = time.time() + 10 * 365 * 24 * 3600
    kept = state.read_json(state.path("sessions", "one.json"))
    state.write_json(state.path("sessions", "one.json"), {**(kept or {}), "pid": 0})
    os.utime(state.path("sessions", "one.json"), (end_of_time_s, end_of_time_s))
    assert start("two", checkout).run != before.run


@pytest.mark.parametrize("session_id", ["../../../etc/passwd", "a/b", "x" * 5000, "Größe", "\ud800", "."])
def test_no_session_id_leads_out_of_the_state_folder(checkout: Path, agent_home: Path, session_id: str) -> None:
    assert start(session_id, checkout) == start(session_id, checkout)
    (kept,) = (agent_home / "sessions").iterdir()
    assert kept.stat().st_mode & 0o077 == 0


def test_a_hook_that_names_no_session_is_in_the_run_of_the_checkout(checkout: Path) -> None:
    run = start("one", checkout).run
    assert identity_of({"cwd": str(checkout)}, {}, "script").run == run


def test_what_is_kept_of_old_sessions_is_bounded(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "MAX_SESSIONS", 5)
    for number in range(8):
        start(f"session-{number}", checkout)
        end(f"session-{number}", checkout)
        os.utime(state.path("sessions", f"session-{number}.json"), (number + 1e9, number + 1e9 + 0.5))
    monkeypatch.setattr(identity, "KEPT_S", float("inf"))
    for number in range(8, 20):
        start(f"session-{number}", checkout)
        end(f"session-{number}", checkout)
    kept = sorted(path.name for path in Path(state.path("sessions")).iterdir())
    assert kept == [f"session-{number}.json" for number in range(15, 20)]


def test_a_session_that_lives_is_not_forgotten_however_old_it_is(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = start("one", checkout)
    os.utime(state.path("sessions", "one.json"), (1e9, 1e9))
    assert start("two", checkout).run == before.run
    assert identity_of_session("one") == before
