"""`doctor`: each thing that keeps the hooks from working is named, with what to do."""

import json
import os
from pathlib import Path

import pytest

from ctrlb_agent.codex_setup.codex_config import with_ours
from tests.agent.programs import AGENT, ctrlb, environment, logged
from tests.agent.scripted_server import ScriptedServer, answers
from tests.laptop import Laptop

CLAUDE = """#!/bin/sh
echo '[{"id": "ctrlb-agent@ctrlb", "version": "0.1.0", "scope": "user", "enabled": true}]'
"""


class Patient:
    """A home, and the programs on its path."""

    def __init__(self, home: Path, laptop: Laptop) -> None:
        self.home = home
        self.programs = home / "bin"
        self.programs.mkdir()
        self.environ = environment(home, laptop, CTRLB_RUN="run") | {"PATH": f"{self.programs}:/usr/bin:/bin"}

    def install(self, name: str, script: str) -> None:
        program = self.programs / name
        program.write_text(script)
        program.chmod(0o755)

    def findings(self, **changed: str) -> list[tuple[str, str, str]]:
        done = ctrlb("doctor", "--json", environ=self.environ | changed, cwd=self.home)
        found = [(one["level"], one["text"], one["remedy"]) for one in json.loads(done.stdout)["findings"]]
        assert done.returncode == (1 if any(level == "fail" for level, _, _ in found) else 0), done.stderr
        return found

    def failures(self, **changed: str) -> list[tuple[str, str]]:
        return [(text, remedy) for level, text, remedy in self.findings(**changed) if level == "fail"]


@pytest.fixture
def patient(tmp_path: Path, laptop: Laptop) -> Patient:
    return Patient(tmp_path, laptop)


def test_a_healthy_machine_has_nothing_to_mend(patient: Patient, laptop: Laptop) -> None:
    found = patient.findings()
    words = ctrlb("doctor", environ=patient.environ, cwd=patient.home)

    assert ("ok", f"{laptop.url} answers, and takes the key; enforce mode is advisory", "") in found
    assert words.returncode == 0
    assert f"ok    {laptop.url} answers, and takes the key; enforce mode is advisory\n" in words.stdout


@pytest.mark.parametrize(
    ("changed", "text", "remedy"),
    [
        ({"CTRLB_URL": ""}, "the server is not known", "set CTRLB_URL"),
        ({"CTRLB_KEY": ""}, "there is no key", "set CTRLB_KEY"),
        ({"CTRLB_RUN": "${CTRLB_RUN}"}, "CTRLB_RUN is ${CTRLB_RUN}", "was not expanded"),
        ({"CTRLB_KEY": "a\nb"}, "the key holds characters that are not printable", "copy it again"),
        ({"CTRLB_URL": "http://127.0.0.1:1"}, "nothing listens at http://127.0.0.1:1", "start it"),
        ({"CTRLB_KEY": "ctrlb_local_typo"}, "(MCP_INVALID_KEY)", "make a new one"),
        ({"CTRLB_DATASET": "elsewhere"}, "sessions dataset is agent_sessions", "CTRLB_DATASET=agent_sessions"),
    ],
)
def test_what_keeps_the_server_away_is_named(patient: Patient, changed: dict[str, str], text: str, remedy: str) -> None:
    assert any(text in said and remedy in to_do for said, to_do in patient.failures(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"CTRLB_KEY": "a\nsecret"},
        {"CTRLB_KEY": "sécret secret"},
        {"CTRLB_KEY": "${KEY:-secret}"},
        {"CTRLB_URL": "http://user:secret@127.0.0.1:1"},
        {"CTRLB_URL": "${URL:-http://user:secret@127.0.0.1:1}"},
        {"CTRLB_URL": "http://user:secret@{host}"},
    ],
)
def test_no_key_and_no_password_is_shown(patient: Patient, laptop: Laptop, changed: dict[str, str]) -> None:
    changed = {name: value.replace("{host}", laptop.url.partition("//")[2]) for name, value in changed.items()}
    found = patient.findings(**changed)
    status = ctrlb("status", environ=patient.environ | changed, cwd=patient.home)

    assert not [finding for finding in found if "secret" in "".join(finding)]
    assert "secret" not in status.stdout + status.stderr + logged(patient.home / "state")


@pytest.mark.parametrize("status", [200, 404, 500])
def test_another_kind_of_server_is_told_from_ours(patient: Patient, status: int) -> None:
    with ScriptedServer(answers(status, b"<html>")) as server:
        failures = patient.failures(CTRLB_URL=server.url)

    assert (f"{server.url} answers {status}, and not as CtrlB does", "mend CTRLB_URL") in failures


def test_an_address_with_a_slash_at_its_end_is_named(patient: Patient, laptop: Laptop) -> None:
    assert patient.failures(CTRLB_URL=f"{laptop.url}/") == [
        ("CTRLB_URL ends in /, so Claude Code's tools ask for //mcp", "export it without that /")
    ]


def test_a_server_added_by_hand_suppresses_the_plugins(patient: Patient, laptop: Laptop) -> None:
    patient.install("claude", CLAUDE)
    assert not patient.failures()
    by_hand = {"mine": {"type": "http", "url": f"{laptop.url}/mcp"}}
    (patient.home / ".claude.json").write_text(json.dumps({"projects": {"/work/app": {"mcpServers": by_hand}}}))

    [(text, remedy)] = patient.failures()

    assert text == "the server mine was added by hand with the same address, so the plugin's is suppressed"
    assert remedy == "cd /work/app && claude mcp remove mine"


def test_a_plugin_with_an_address_of_its_own_needs_no_variable(patient: Patient, laptop: Laptop) -> None:
    patient.install("claude", CLAUDE)
    configs = {"ctrlb-agent@ctrlb": {"options": {"url": laptop.url}}}
    (patient.home / ".claude").mkdir()
    (patient.home / ".claude" / "settings.json").write_text(json.dumps({"pluginConfigs": configs}))

    found = patient.findings(CTRLB_URL="", CTRLB_KEY="")

    assert not [text for level, text, _ in found if level == "fail"]
    assert any(text.startswith(f"Claude Code's plugin has an address of its own, {laptop.url}") for _, text, _ in found)


def test_an_address_that_only_hooks_can_read_is_named(patient: Patient, laptop: Laptop) -> None:
    patient.install("claude", CLAUDE)
    (patient.home / "state").mkdir(mode=0o700)
    (patient.home / "state" / "config.json").write_text(json.dumps({"url": laptop.url}))

    [(text, remedy)] = patient.failures(CTRLB_URL="")

    assert text == "Claude Code's tools have no address: only hooks and commands read config.json"
    assert remedy.startswith("export CTRLB_URL")


def test_a_codex_that_asks_another_server_than_its_hooks_is_named(patient: Patient, laptop: Laptop) -> None:
    (patient.home / ".codex").mkdir()
    ours = with_ours("", "http://127.0.0.1:1", str(AGENT), None, []).text
    (patient.home / ".codex" / "config.toml").write_text(ours)

    [(text, remedy)] = patient.failures()

    assert text == f"Codex's tools ask http://127.0.0.1:1/mcp, and its hooks {laptop.url}"
    assert remedy == f"python3 -I {AGENT / 'install.py'} --codex --url {laptop.url} --trust"


def test_a_client_without_the_plugin_is_worth_a_note(patient: Patient) -> None:
    patient.install("claude", "#!/bin/sh\necho '[]'\n")

    [remedy] = [told for _, text, told in patient.findings() if text == "Claude Code has no plugin ctrlb-agent"]
    assert remedy == f"claude plugin marketplace add {AGENT} && claude plugin install ctrlb-agent@ctrlb"


def test_a_client_that_breaks_or_hangs_up_is_no_reason_to_fail(patient: Patient) -> None:
    patient.install("claude", "#!/bin/sh\nexit 3\n")

    assert not patient.failures()


def test_a_python_that_has_gone_is_named(patient: Patient) -> None:
    (patient.home / "state").mkdir(mode=0o700)
    (patient.home / "state" / "python").write_text("/nowhere/python3\n")

    [(text, remedy)] = patient.failures()

    assert text == "the Python that hooks use is gone: /nowhere/python3"
    assert remedy.startswith("remove ")


@pytest.mark.parametrize("program", ["/bin/false", "/bin/echo"])
def test_what_is_no_python_is_named(patient: Patient, program: str) -> None:
    (patient.home / "state").mkdir(mode=0o700)
    (patient.home / "state" / "python").write_text(f"{program}\n")

    [(text, remedy)] = patient.failures()

    assert text == f"what hooks use is no Python of 3.9 or newer: {program}"
    assert remedy.startswith("remove ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_is_another_users_is_named(patient: Patient) -> None:
    (patient.home / "state").mkdir(mode=0o700)
    (patient.home / "state" / "python").write_text(f"{patient.home}/planted\n")
    patient.install("planted", f"#!/bin/sh\ntouch {patient.home}/ran\n")
    os.chown(patient.home / "state" / "python", 65_534, 65_534)
    assert any(text.startswith("another user wrote ") for text, _ in patient.failures())

    os.chown(patient.home / "state", 65_534, 65_534)
    assert patient.failures()[0][0] == f"nothing can be kept: {patient.home}/state belongs to another user"
    assert not (patient.home / "ran").exists()


def test_a_folder_that_others_can_read_is_named(patient: Patient) -> None:
    (patient.home / "state").mkdir()
    (patient.home / "state").chmod(0o755)

    [(text, remedy)] = patient.failures()

    assert "others can read" in text
    assert remedy == f"chmod 700 {patient.home / 'state'}"


def test_rows_that_wait_and_the_last_failure_are_shown(patient: Patient) -> None:
    (patient.home / "state" / "spool").mkdir(parents=True)
    (patient.home / "state").chmod(0o700)
    (patient.home / "state" / "spool" / "000000000001.batch").write_bytes(b"x" * 1_234)
    (patient.home / "state" / "agent.log").write_text(
        "2020-01-01T00:00:00Z long ago\n2999-01-01T00:00:00Z the server did not answer\n"
    )

    notes = [text for level, text, _ in patient.findings() if level == "note"]

    assert "1,234 bytes of rows wait to be sent" in notes
    assert any(note.startswith("1 lines in ") and note.endswith("the server did not answer") for note in notes)
