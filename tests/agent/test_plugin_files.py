"""The plugin's files say what Claude Code takes them to say, and agree with the code."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent import __version__, hook, session_hooks
from ctrlb_agent.command_line.cli import parser
from tests.agent.programs import AGENT, TIMEOUT_S

PROJECT = AGENT.parent
MANIFEST = AGENT / ".claude-plugin" / "plugin.json"
MARKETPLACE = AGENT / ".claude-plugin" / "marketplace.json"
EVENTS = json.loads((AGENT / "hooks" / "hooks.json").read_text())["hooks"]
MAY_TAKE_S = {
    "PreToolUse": hook.TOTAL_S,
    **session_hooks.UPLOAD_WAIT_S,
}
"""How long the hooks give themselves. Claude Code is to wait longer, or it would report an error."""


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def the_hook(event: str) -> dict[str, Any]:
    """The one command that the event runs."""
    (group,) = EVENTS[event]
    (command,) = group["hooks"]
    assert isinstance(command, dict)
    return command


def run_in(root: Path, event: str, shell: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the event's command line as Claude Code does, with the plugin in `root`."""
    environ = {
        "CLAUDE_PLUGIN_ROOT": str(root),
        "PATH": "/usr/bin:/bin",
        "HOME": str(root),
        "CTRLB_AGENT_HOME": str(root),
    }
    return subprocess.run(
        [shell, "-c", the_hook(event)["command"]],
        env=environ,
        input=b"{}",
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def test_the_marketplace_offers_this_folder_as_the_plugin() -> None:
    (offered,) = read(MARKETPLACE)["plugins"]
    assert read(MARKETPLACE)["name"] == "ctrlb"
    assert offered["name"] == read(MANIFEST)["name"] == "ctrlb-agent"
    assert offered["source"] == "./"


def test_the_plugin_has_the_codes_version() -> None:
    assert read(MANIFEST)["version"] == __version__


def test_the_plugin_brings_the_projects_licence() -> None:
    assert (AGENT / "LICENSE").read_bytes() == (PROJECT / "LICENSE").read_bytes()


def test_the_key_is_kept_where_the_client_keeps_secrets() -> None:
    options = read(MANIFEST)["userConfig"]
    assert set(options) == {"url", "key"}
    assert options["key"]["sensitive"] is True


def test_the_tools_server_is_told_the_ids_of_the_environment_or_nothing() -> None:
    (server,) = read(AGENT / ".mcp.json")["mcpServers"].items()
    assert server == (
        "ctrlb",
        {
            "type": "http",
            "url": "${CTRLB_URL:-${user_config.url}}/mcp",
            "headers": {
                "Authorization": "Bearer ${CTRLB_KEY:-${user_config.key}}",
                "X-CtrlB-Run": "${CTRLB_RUN:-}",
                "X-CtrlB-Agent": "${CTRLB_AGENT:-}",
            },
        },
    )


@pytest.mark.parametrize("event", EVENTS)
def test_each_hook_runs_the_script_for_its_own_event(event: str) -> None:
    assert the_hook(event)["type"] == "command"
    assert shlex.split(the_hook(event)["command"]) == ["${CLAUDE_PLUGIN_ROOT}/hooks/ctrlb-hook", "claude", event]


@pytest.mark.parametrize("event", EVENTS)
def test_the_client_waits_longer_than_the_hook_takes_and_not_for_ever(event: str) -> None:
    assert MAY_TAKE_S.get(event, hook.TOTAL_S) + 1 < the_hook(event)["timeout"] <= 10


def test_every_tool_that_edits_is_checked_and_no_other() -> None:
    (group,) = EVENTS["PreToolUse"]
    assert group["matcher"] == "Write|Edit|MultiEdit|NotebookEdit"


def test_the_events_that_have_something_to_do_are_all_there() -> None:
    assert set(EVENTS) == {
        "SessionStart",
        "SubagentStart",
        "UserPromptExpansion",
        "PreToolUse",
        *session_hooks.UPLOAD_WAIT_S,
    }


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("event", EVENTS)
def test_a_plugin_that_was_removed_under_a_session_stops_no_tool_call(tmp_path: Path, event: str, shell: str) -> None:
    assert run_in(tmp_path / "gone", event, shell).returncode not in (0, 2)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_folder_whose_name_has_spaces_and_quotes_is_no_trouble(tmp_path: Path, shell: str) -> None:
    root = tmp_path / 'it\'s a "folder" $HOME'
    (root / "hooks").mkdir(parents=True)
    script = root / "hooks" / "ctrlb-hook"
    script.write_text('#!/bin/sh\necho "$@"\n')
    script.chmod(0o755)
    assert run_in(root, "PreToolUse", shell).stdout == b"claude PreToolUse\n"


def test_the_relay_command_is_the_one_that_the_hook_waits_for() -> None:
    name = session_hooks.RELAY_COMMAND
    assert name.partition(":")[0] == read(MANIFEST)["name"]
    assert (AGENT / "commands" / f"{name.partition(':')[2]}.md").is_file()


def test_the_relay_command_states_the_rules_for_agents() -> None:
    text = (AGENT / "commands" / "relay.md").read_text()
    assert "argument-hint: <run id>" in text
    assert "$ARGUMENTS" in text
    for said in ("`peers`", "`post`", "`claim`", "`release`", "`held: true`", "`finished: true`", "run_id", "agent"):
        assert said in text


README = (AGENT / "README.md").read_text()
OF_TESTS = {"CTRLB_AGENT_IDLE_S"}


def test_the_readme_names_every_variable_that_is_read() -> None:
    code = "".join(path.read_text() for path in (AGENT / "ctrlb_agent").glob("*.py"))
    read_by_code = set(re.findall(r"\bCTRLB_[A-Z_]*[A-Z]\b", code)) - OF_TESTS
    assert read_by_code | {"CTRLB_DATASET"} == set(re.findall(r"\bCTRLB_[A-Z_]*[A-Z]\b", README))


def test_the_readme_names_every_command() -> None:
    commands = set(re.findall(r"^    ([a-z]+) ", parser().format_help(), re.MULTILINE))
    assert "claim" in commands
    documented = "\n".join(line for line in README.splitlines() if line.startswith("| `"))
    assert [name for name in commands if not re.search(rf"`{name}\b", documented)] == []


def test_the_readme_links_to_what_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert "LICENSE" in links
    assert [link for link in links if not (AGENT / link).exists()] == []
