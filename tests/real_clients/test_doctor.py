"""`doctor` beside the real clients: it finds what keeps their hooks and tools from working, and its remedies help."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real_clients.claude_code import OFFLINE, ClaudeCode
from tests.real_clients.client import AGENT, Client, Ended
from tests.real_clients.codex import Codex
from tests.real_clients.script import Play, Say
from tests.real_clients.server import Server

NAME = "ctrlb-agent@ctrlb"


def doctor(client: Client) -> Ended:
    """Ask doctor, as the client's user. It asks both clients, which stay off the internet."""
    path = f"{client.program.parent}{os.pathsep}{os.environ['PATH']}"
    python = replace(client, program=Path(sys.executable))
    environ = {"PATH": path, "PYTHONPATH": str(AGENT), **dict.fromkeys(OFFLINE, "1")}
    return python.run("-m", "ctrlb_agent", "doctor", environ=environ)


@pytest.fixture
def installed(bare_claude_code: ClaudeCode, ctrlb: Server) -> ClaudeCode:
    """Claude Code with the plugin installed, for a user who has exported the server's address and key."""
    bare_claude_code.environ.update(ctrlb.environ)
    for arguments in (["marketplace", "add", str(AGENT)], ["install", NAME]):
        assert bare_claude_code.run("plugin", *arguments).status == 0
    return bare_claude_code


def test_doctor_finds_the_installed_plugin_and_nothing_to_mend(installed: ClaudeCode) -> None:
    found = doctor(installed)
    assert found.status == 0, found
    assert NAME in found.stdout


def test_doctor_finds_the_server_added_by_hand_that_hides_the_plugins(
    installed: ClaudeCode, play: Play, ctrlb: Server
) -> None:
    header = f"Authorization: Bearer {ctrlb.laptop.key}"
    added = installed.run("mcp", "add", "--transport", "http", "mine", f"{ctrlb.laptop.url}/mcp", "--header", header)
    assert added.status == 0, added
    play.scripts = {"GO": [[Say("Hello.")]]}
    begun = next(event for event in installed.prompt("GO on").events if event.get("subtype") == "init")
    assert [server["name"] for server in begun["mcp_servers"]] == ["mine"]
    found = doctor(installed)
    assert found.status == 1, found
    remedy = "claude mcp remove mine"
    assert f"cd {installed.checkout} && {remedy}" in found.stdout
    assert installed.run(*shlex.split(remedy)[1:]).status == 0
    assert doctor(installed).status == 0


def test_doctor_finds_hooks_that_codex_does_not_trust(bare_codex_exec: Codex, ctrlb: Server) -> None:
    bare_codex_exec.environ.update(ctrlb.environ)
    assert bare_codex_exec.install("--url", ctrlb.laptop.url).status == 0
    found = doctor(bare_codex_exec)
    assert found.status == 1, found
    assert "PreToolUse" in found.stdout
    assert bare_codex_exec.install("--url", ctrlb.laptop.url, "--trust").status == 0
    found = doctor(bare_codex_exec)
    assert found.status == 0, found
