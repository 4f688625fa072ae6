"""The installer with the real Codex: what it writes is taken, trusted, and taken out again."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctrlb_agent.codex_setup import codex_trust
from ctrlb_agent.codex_setup.codex_program import AppServer
from tests.real_clients.client import AGENT, Ended
from tests.real_clients.codex import Codex

URL = "http://127.0.0.1:9"
EVENTS = ["SessionStart", "PreToolUse", "SubagentStart", "Stop", "SubagentStop", "SessionEnd"]
TRUSTED = f"Codex trusts the hooks: {', '.join(EVENTS)}"
OTEL = ("--otel", "--otel-endpoint", f"{URL}/_otel/v1/logs", "--otel-header", "Authorization=Basic abc=")
ANSWER_TIMEOUT_S = 120.0
ORIGINAL = """\
# mine
model = "gpt-5.5"
tui = {
  notifications = true,
}
features = { plugins = false, apps = false }
"""
"""Without what Codex would ask the internet for."""


@pytest.fixture
def client(codex: Path, home: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Codex:
    """Codex with a config of its user's, who is also the one that this process runs for."""
    new = Codex(codex, home, checkout, URL)
    new.codex_home.mkdir()
    new.config.write_text(ORIGINAL)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{codex.parent}{os.pathsep}{os.environ['PATH']}")
    return new


def hook(name: str) -> str:
    """A hook of the user's own."""
    return f'[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "true {name}"\n'


def install(client: Codex, *options: str) -> Ended:
    """Install, successfully."""
    done = client.install("--url", URL, *options)
    assert done.status == 0, done
    return done


def uninstall(client: Codex) -> str:
    """Uninstall, successfully, and return what is left."""
    done = client.install("--uninstall")
    assert done.status == 0, done
    return client.config.read_text()


def is_known_in_whole(client: Codex) -> bool:
    """Whether Codex knows every key of its config."""
    return client.run("app-server", "--strict-config", "--print-startup-config").status == 0


def listed(server: AppServer, client: Codex) -> list[dict[str, Any]]:
    """What Codex says of each hook."""
    answer = server.call("hooks/list", {"cwds": [str(client.checkout)]})
    return [found for entry in answer["data"] for found in entry["hooks"]]


def trust_of(client: Codex) -> dict[str, str]:
    """The trust in each hook, by its command."""
    with AppServer(str(client.program), str(client.codex_home)) as server:
        return {found["command"]: found["trustStatus"] for found in listed(server, client)}


def trust_all(client: Codex) -> None:
    """Trust every hook, as a person does in /hooks."""
    with AppServer(str(client.program), str(client.codex_home)) as server:
        hashes = {found["key"]: {"trusted_hash": found["currentHash"]} for found in listed(server, client)}
        edit = {"keyPath": "hooks.state", "value": hashes, "mergeStrategy": "upsert"}
        server.call("config/batchWrite", {"edits": [edit]})


@pytest.mark.parametrize("ending", ["", "\n", "\n\n[projects.'/work']\ntrust_level = 'trusted'"])
def test_what_is_installed_and_trusted_goes_without_a_trace(client: Codex, ending: str) -> None:
    original = ORIGINAL.rstrip("\n") + ending
    client.config.write_text(original)
    assert "does not run these hooks" in install(client).stdout
    assert is_known_in_whole(client)
    assert codex_trust.untrusted(str(client.codex_home)) == EVENTS
    assert TRUSTED in install(client, "--trust").stdout
    assert codex_trust.untrusted(str(client.codex_home)) == []
    assert set(trust_of(client).values()) == {"trusted"}
    assert is_known_in_whole(client)
    before = client.config.read_bytes()
    again = install(client)
    assert "nothing to change" in again.stdout
    assert TRUSTED in again.stdout
    assert client.config.read_bytes() == before
    assert uninstall(client) == original


def test_codex_knows_every_key_of_the_export(client: Codex) -> None:
    install(client, *OTEL)
    assert is_known_in_whole(client)
    assert client.config.stat().st_mode & 0o777 == 0o600
    install(client, "--trust")
    assert client.config.stat().st_mode & 0o777 == 0o600
    assert "abc=" in client.config.read_text()
    assert uninstall(client) == ORIGINAL


def test_another_address_keeps_the_trust(client: Codex) -> None:
    install(client, "--trust")
    done = client.install("--url", "http://127.0.0.1:10", "--no-trust")
    assert done.status == 0
    assert "Codex trusts the hooks: SessionStart" in done.stdout
    assert codex_trust.untrusted(str(client.codex_home)) == []


def test_only_our_hooks_are_trusted_and_those_of_the_user_keep_their_trust(client: Codex) -> None:
    client.config.write_text(f"{ORIGINAL}\n{hook('above')}")
    install(client, "--trust")
    assert trust_of(client)["true above"] == "untrusted"
    with client.config.open("a") as config:
        config.write(f"\n{hook('below')}")
    trust_all(client)
    assert set(trust_of(client).values()) == {"trusted"}
    assert "ctrlb" not in uninstall(client)
    assert trust_of(client) == {"true above": "trusted", "true below": "trusted"}


def test_servers_that_codex_adds_and_removes_do_not_confuse_the_block(client: Codex) -> None:
    install(client, "--trust")
    assert client.run("mcp", "add", "other", "--url", "http://127.0.0.1:9/other").status == 0
    assert client.run("mcp", "remove", "ctrlb").status == 0
    install(client)
    servers = client.run("mcp", "list").stdout
    assert f"{URL}/mcp" in servers
    assert f"{URL}/other" in servers
    assert codex_trust.untrusted(str(client.codex_home)) == []
    rest = uninstall(client)
    assert "ctrlb" not in rest
    assert rest.startswith(ORIGINAL)
    assert f"{URL}/other" in client.run("mcp", "list").stdout


def test_approvals_that_codex_keeps_below_our_server_go_with_it(client: Codex) -> None:
    install(client)
    with client.config.open("a") as config:
        config.write('\n[mcp_servers.ctrlb.tools.claim]\napproval_mode = "approve"\n')
    assert is_known_in_whole(client)
    assert "nothing to change" in install(client).stdout
    uninstall(client)
    assert is_known_in_whole(client)


def test_a_key_that_codex_does_not_know_and_files_beside_the_config_are_no_hindrance(client: Codex) -> None:
    client.config.write_text('newer_than_this_codex = 1\nmodel_instructions_file = "mine.md"\n')
    (client.codex_home / "mine.md").write_text("Be kind.")
    install(client, "--trust")
    assert client.run("mcp", "list").status == 0
    assert not is_known_in_whole(client)
    (client.codex_home / "mine.md").unlink()
    done = client.install("--url", "http://127.0.0.1:10")
    assert done.status == 1
    assert "Mend it first" in done.stderr
    assert str(client.codex_home / "mine.md") in done.stderr


def test_a_config_of_a_dotfiles_manager_is_trusted_through_its_link(client: Codex, home: Path) -> None:
    target = client.config.rename(home / "codex.toml")
    client.config.symlink_to(target)
    install(client, "--trust")
    assert client.config.is_symlink()
    assert uninstall(client) == target.read_text() == ORIGINAL
    assert client.config.is_symlink()


def test_where_hooks_are_switched_off_trust_is_not_claimed(client: Codex) -> None:
    client.config.write_text("[features]\nhooks = false\n")
    done = client.install("--url", URL, "--trust")
    assert done.status == 1
    assert "Are hooks switched off" in done.stderr


@pytest.mark.parametrize(("answer", "untrusted"), [("y", []), ("", EVENTS)])
def test_a_person_is_asked_before_hooks_are_trusted(client: Codex, answer: str, untrusted: list[str]) -> None:
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-I", str(AGENT / "install.py"), "--codex", "--url", URL],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**client.own_environ(), "PATH": os.environ["PATH"]},
    ) as process:
        shown = b""
        while b"[y/N]" not in shown:
            assert select.select([controller], [], [], ANSWER_TIMEOUT_S)[0], shown
            shown += os.read(controller, 4096)
        os.write(controller, f"{answer}\n".encode())
        assert process.wait(ANSWER_TIMEOUT_S) == 0
    os.close(terminal)
    os.close(controller)
    assert codex_trust.untrusted(str(client.codex_home)) == untrusted
