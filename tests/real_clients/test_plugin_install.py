"""The plugin as users get it: validated, installed from its own marketplace, used, and removed."""

import shutil
from pathlib import Path

import pytest

from tests.acceptance.calls import eventually
from tests.real_clients import edits
from tests.real_clients.claude_code import RELAY_COMMAND, ClaudeCode
from tests.real_clients.client import AGENT, committed, running_in
from tests.real_clients.script import Play, Say, Turn
from tests.real_clients.server import Server
from tests.real_clients.test_session_note import told

NAME = "ctrlb-agent@ctrlb"


@pytest.fixture(params=["folder", "repository"])
def installed(request: pytest.FixtureRequest, bare_claude_code: ClaudeCode) -> ClaudeCode:
    """Claude Code with the plugin installed, and nothing exported. A folder's plugin runs where it is, else a copy."""
    source = str(AGENT) if request.param == "folder" else repository(bare_claude_code.home)
    for arguments in (["marketplace", "add", source], ["install", NAME]):
        ended = bare_claude_code.run("plugin", *arguments)
        assert ended.status == 0, ended
    return bare_claude_code


def repository(home: Path) -> str:
    """An address that git takes for a repository whose root is the plugin's folder, in this home alone."""
    folder = Path(shutil.copytree(AGENT, home / "published", ignore=shutil.ignore_patterns("__pycache__")))
    committed(folder)
    address = "https://git.example.com/ctrlb-agent.git"
    (home / ".gitconfig").write_text(f'[url "file://{folder}"]\n\tinsteadOf = {address}\n')
    return address


def test_the_plugin_is_valid_to_the_letter(bare_claude_code: ClaudeCode) -> None:
    ended = bare_claude_code.run("plugin", "validate", "--strict", str(AGENT))
    assert ended.status == 0, ended


def test_the_installed_plugin_checks_edits_and_uploads(installed: ClaudeCode, play: Play, ctrlb: Server) -> None:
    ctrlb.enforce("enforce")
    run = f"installed-{installed.home.name}"
    ctrlb.held_by(run, "rival-7", "notes.txt")
    play.scripts = {"GO": [[edits.write(installed.checkout / "notes.txt", "one\n")], [Say("Done.")]]}
    ended = installed.prompt("GO on", environ={**ctrlb.environ, "CTRLB_RUN": run, "CTRLB_AGENT": "builder-1"})
    assert ended.status == 0, ended
    begun = next(event for event in ended.events if event.get("subtype") == "init")
    (plugin,) = (plugin for plugin in begun["plugins"] if plugin["name"] == "ctrlb-agent")
    is_copy = Path(plugin["path"]).is_relative_to(installed.home / ".claude")
    assert is_copy == (installed.home / "published").exists()
    assert told(play.prompted("GO")[0]) == (run, "builder-1")
    assert not (installed.checkout / "notes.txt").exists()
    assert play.prompted("GO")[1].tells("rival-7")
    assert {row.run_id for row in ctrlb.rows_up_to(ended.session_id, "Done.")} == {run}


def test_a_user_who_exports_nothing_gives_address_and_key_when_installing(
    bare_claude_code: ClaudeCode, play: Play, ctrlb: Server
) -> None:
    assert bare_claude_code.run("plugin", "marketplace", "add", str(AGENT)).status == 0
    given = ["--config", f"url={ctrlb.laptop.url}", "--config", f"key={ctrlb.laptop.key}"]
    ended = bare_claude_code.run("plugin", "install", NAME, *given)
    assert ended.status == 0, ended
    play.scripts = {"GO": [[edits.write(bare_claude_code.checkout / "notes.txt", "one\n")], [Say("Done.")]]}
    ended = bare_claude_code.prompt("GO on")
    begun = next(event for event in ended.events if event.get("subtype") == "init")
    assert [server["status"] for server in begun["mcp_servers"]] == ["connected"]
    run, agent = told(play.prompted("GO")[0])
    assert {(row.run_id, row.agent) for row in ctrlb.rows_up_to(ended.session_id, "Done.")} == {(run, agent)}


def test_before_anything_is_set_up_the_plugin_costs_no_turn(installed: ClaudeCode, play: Play) -> None:
    play.scripts = {"GO": [[edits.write(installed.checkout / "notes.txt", "one\n")], [Say("Done.")]]}
    ended = installed.prompt("GO on")
    assert (ended.status, ended.events[-1]["result"]) == (0, "Done.")
    assert (installed.checkout / "notes.txt").read_text() == "one\n"


def test_the_installed_copy_holds_the_relay_command(installed: ClaudeCode, play: Play, ctrlb: Server) -> None:
    play.scripts = {RELAY_COMMAND: [[Say("I will.")]]}
    assert installed.prompt("/ctrlb-agent:relay run-9", environ=ctrlb.environ).status == 0
    assert play.prompted(RELAY_COMMAND)[0].tells("run-9")


def test_after_it_is_uninstalled_nothing_of_it_runs(installed: ClaudeCode, play: Play, ctrlb: Server) -> None:
    turns: list[Turn] = [[edits.write(installed.checkout / "notes.txt", "one\n")], [Say("Done.")]]
    play.scripts = {"BEFORE": turns, "AFTER": turns}
    installed.environ.update(ctrlb.environ, CTRLB_AGENT_IDLE_S="2")
    assert installed.prompt("BEFORE all else").status == 0
    assert list((installed.home / ".ctrlb-agent").glob("daemon-*.lock"))
    for arguments in (["uninstall", NAME], ["marketplace", "remove", "ctrlb"]):
        ended = installed.run("plugin", *arguments)
        assert ended.status == 0, ended

    def look() -> None:
        assert not running_in(installed.home)

    eventually(look)  # what was still uploading, and the background process
    shutil.rmtree(installed.home / ".ctrlb-agent")
    ended = installed.prompt("AFTER that")
    assert not [event for event in ended.events if event.get("subtype", "").startswith("hook_")]
    begun = next(event for event in ended.events if event.get("subtype") == "init")
    assert not begun["mcp_servers"]
    assert not any(name.startswith("ctrlb-agent") for name in begun["slash_commands"])
    assert not play.prompted("AFTER")[0].tells("CtrlB")
    assert not (installed.home / ".ctrlb-agent").exists()
    assert "ctrlb-agent" not in (installed.home / ".claude" / "settings.json").read_text()
    assert not running_in(installed.home)
