"""install.py as a process: it sets Codex up, and takes out again what it wrote."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.codex_user import ORIGINAL, OTEL, PLAIN_PATH, URL, User, program
from tests.agent.programs import AGENT


def test_installing_writes_the_block_and_keeps_a_copy_of_the_old_file(user: User) -> None:
    done = user.install("--url", URL + "/mcp/")
    assert done.returncode == 0, done
    text = user.config.read_text()
    assert text.startswith(ORIGINAL)
    assert f'url = "{URL}/mcp"' in text
    assert [copy.read_text() for copy in user.copies] == [ORIGINAL]
    assert str(user.copies[0]) in done.stdout
    assert "/hooks" in done.stdout
    assert "CTRLB_KEY is not set" in done.stdout
    assert user.copies[0].stat().st_mode & 0o777 == 0o600


def test_hooks_find_the_server_and_their_python_without_any_variable(user: User) -> None:
    kept = user.home / ".ctrlb-agent"
    kept.mkdir()
    (kept / "config.json").write_text('{"url": "http://old", "key": "k"}')
    assert "http://old" in user.install("--url", URL).stdout
    assert (kept / "config.json").read_text() == f'{{"url":"{URL}","key":"k"}}'
    assert os.access((kept / "python").read_text().strip(), os.X_OK)


def test_a_second_run_changes_nothing_and_needs_no_address(user: User) -> None:
    user.install("--url", URL)
    before = user.files()
    again = user.install(CTRLB_KEY="x")
    assert again.returncode == 0, again
    assert "nothing to change" in again.stdout
    assert "CTRLB_KEY" not in again.stdout
    assert user.files() == before


def test_uninstalling_gives_the_file_back(user: User) -> None:
    user.config.write_bytes(ORIGINAL.replace("\n", "\r\n").encode())
    user.config.chmod(0o640)
    user.install("--url", URL)
    assert user.config.stat().st_mode & 0o777 == 0o640
    done = user.install("--uninstall")
    assert done.returncode == 0, done
    assert user.config.read_bytes() == ORIGINAL.replace("\n", "\r\n").encode()
    assert user.config.stat().st_mode & 0o777 == 0o640
    assert "nothing to change" in user.install("--uninstall").stdout
    assert len(user.copies) == 2


def test_where_there_was_no_config_there_is_none_afterwards(tmp_path: Path) -> None:
    user = User(tmp_path)
    assert "nothing to change" in user.install("--uninstall").stdout
    assert user.install("--url", URL).returncode == 0
    assert user.config.stat().st_mode & 0o777 == 0o600
    assert user.config.parent.stat().st_mode & 0o777 == 0o700
    assert user.install("--uninstall").returncode == 0
    assert not user.config.exists()
    assert len(user.copies) == 1


def test_an_empty_config_is_empty_afterwards(user: User) -> None:
    user.config.write_bytes(b"")
    user.install("--url", URL)
    user.install("--uninstall")
    assert user.config.read_bytes() == b""


@pytest.mark.promise("otel-dry-run")
def test_a_dry_run_shows_the_change_and_writes_nothing(user: User, tmp_path: Path) -> None:
    before = user.files()
    done = user.install("--url", URL, "--dry-run", *OTEL, "X-Team=abc=")
    assert done.returncode == 0, done
    assert user.files() == before
    patched = tmp_path / "patched.toml"
    patched.write_text(ORIGINAL)
    diff = done.stdout[done.stdout.index("--- ") : done.stdout.index("dry run:")]
    subprocess.run(["patch", "--quiet", str(patched)], input=diff, text=True, check=True)
    user.install("--url", URL, *OTEL, "X-Team=[hidden]")
    assert patched.read_text() == user.config.read_text()
    assert "-# >>> ctrlb-agent >>>" in user.install("--uninstall", "--dry-run").stdout
    assert patched.read_text() == user.config.read_text()


OTHERS_HEADERS = """
[mcp_servers.other]
url = "https://other.example.com/mcp"
http_headers = { "Authorization" = "Bearer others-1", X-Team = 'others-2' }
[mcp_servers.third.http_headers]
X-Key = "others-3"  # a note
[mcp_servers.third.env]
WORD = "others-4"
"""


def test_a_dry_run_shows_no_credential_of_ours_or_of_others(user: User) -> None:
    user.config.write_text(OTHERS_HEADERS)
    done = user.install("--url", URL, "--dry-run", *OTEL, "Authorization=Basic b3Vycw==")
    assert done.returncode == 0, done
    user.install("--url", URL, *OTEL, "Authorization=Basic b3Vycw==")
    assert "b3Vycw==" in user.config.read_text()
    gone = user.install("--uninstall", "--dry-run")
    for shown in (done.stdout, gone.stdout):
        assert "others-" not in shown
        assert "b3Vycw" not in shown
        assert '"Authorization" = "[hidden]"' in shown
        assert 'bearer_token_env_var = "CTRLB_KEY"' in shown
    assert ' X-Key = "[hidden]"  # a note' in done.stdout
    user.config.write_text(OTHERS_HEADERS + 'http_headers = { "A" = "Bearer others-5\n')
    broken = user.install("--url", URL)
    assert broken.returncode == 1
    assert "[hidden]" in broken.stderr
    assert "others-" not in broken.stderr


def test_a_dry_run_makes_no_folder(tmp_path: Path) -> None:
    assert User(tmp_path).install("--url", URL, "--dry-run").returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_file_of_a_dotfiles_manager_stays_a_link(user: User) -> None:
    dotfiles = user.home / "dotfiles"
    dotfiles.mkdir()
    target = user.config.rename(dotfiles / "codex.toml")
    user.config.symlink_to("../dotfiles/codex.toml")
    assert user.install("--url", URL).returncode == 0
    assert user.config.is_symlink()
    assert "[mcp_servers.ctrlb]" in target.read_text()
    assert [path.name for path in dotfiles.iterdir()] == ["codex.toml"]
    user.install("--uninstall")
    assert target.read_text() == ORIGINAL


def test_the_folder_of_codex_can_be_named(user: User, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert user.install("--url", URL, CODEX_HOME=str(other)).returncode == 0
    assert user.install("--url", URL, "--codex-home", str(other), CODEX_HOME="/nowhere").returncode == 0
    assert user.config.read_text() == ORIGINAL
    assert "[mcp_servers.ctrlb]" in (other / "config.toml").read_text()
    missing = user.install("--url", URL, "--codex-home", str(tmp_path / "typo"))
    assert missing.returncode == 1
    assert "mkdir -p" in missing.stderr


def test_hooks_are_quoted_for_the_shell_and_made_executable(user: User, tmp_path: Path) -> None:
    agent = tmp_path / "it's a $(folder)" / "ctrlb-agent"
    (agent / "hooks").mkdir(parents=True)
    (agent / "ctrlb_agent").symlink_to(AGENT / "ctrlb_agent")
    (agent / "install.py").write_bytes((AGENT / "install.py").read_bytes())
    hook = agent / "hooks" / "ctrlb-hook"
    assert "is missing" in user.install("--url", URL, agent=agent).stderr
    hook.write_text('#!/bin/sh\necho "$@"\n')
    hook.chmod(0o644)
    done = user.install("--url", URL, agent=agent)
    assert done.returncode == 0, done
    (command,) = [line for line in user.config.read_text().splitlines() if "codex Stop" in line]
    shell = command.removeprefix('command = "').removesuffix('"').replace('\\"', '"')
    assert subprocess.check_output(["sh", "-c", shell], text=True) == "codex Stop\n"


TRUSTS_ALL = """
import json, os, sys, tomllib
if sys.argv[1:] != ["app-server"]:
    sys.exit(0)
path = os.environ["CODEX_HOME"] + "/config.toml"
for line in sys.stdin:
    asked = json.loads(line)
    groups = [group for event in tomllib.load(open(path, "rb"))["hooks"].values() for group in event]
    listed = [
        {"command": hook["command"], "sourcePath": path, "trustStatus": "trusted", "enabled": True}
        for group in groups for hook in group["hooks"]
    ]
    if "id" in asked:
        print(json.dumps({"id": asked["id"], "result": {"data": [{"hooks": listed}]}}), flush=True)
"""
"""A program that answers as a Codex does whose user has trusted every hook."""


def test_hooks_that_are_trusted_already_are_said_to_be_when_trust_is_not_wanted(user: User, tmp_path: Path) -> None:
    script = tmp_path / "codex.py"
    script.write_text(TRUSTS_ALL)
    codex = program(tmp_path / "bin", f'exec {sys.executable} {script} "$@"')
    done = user.install("--url", URL, "--no-trust", PATH=f"{codex.parent}:{PLAIN_PATH}")
    assert done.returncode == 0, done
    assert "Codex trusts the hooks: SessionStart" in done.stdout
    assert "does not run" not in done.stdout
