"""install.py as a process, for a user whose machine has no Codex on PATH, or a broken one."""

import base64
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ctrlb_agent.codex_setup import codex_file, codex_program, codex_trust
from ctrlb_agent.codex_setup.codex_block import Refused
from ctrlb_agent.codex_setup.codex_options import holds_mcp_key
from ctrlb_agent.codex_setup.codex_program import CodexFailed
from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S

URL = "http://127.0.0.1:8080"
PLAIN_PATH = "/usr/bin:/bin"
KEY = "ctrlb_default_abcdefghijkl_" + "s" * 49
OTEL = ("--otel", "--otel-endpoint", "https://o.example.com/_otel/v1/logs", "--otel-header")
ORIGINAL = 'model = "gpt-5.5"\n\n[tui]\nnotifications = true\n'


@dataclass(frozen=True)
class User:
    """Somebody with a home and, maybe, a config of Codex."""

    home: Path

    @property
    def config(self) -> Path:
        return self.home / ".codex" / "config.toml"

    @property
    def copies(self) -> list[Path]:
        """The copies of the config that were kept."""
        return sorted(self.config.parent.glob("config.toml.ctrlb-backup-*"))

    def environ(self, **more: str) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": PLAIN_PATH, "LANG": "C.UTF-8", **more}

    def install(
        self, *options: str, agent: Path = AGENT, codex: bool = True, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the installer."""
        return subprocess.run(
            [PYTHON, "-I", str(agent / "install.py"), *(["--codex"] if codex else []), *options],
            env=self.environ(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def files(self) -> dict[str, bytes]:
        """Everything below the home."""
        return {str(path.relative_to(self.home)): path.read_bytes() for path in self.home.rglob("*") if path.is_file()}


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Somebody who uses Codex."""
    someone = User(tmp_path)
    someone.config.parent.mkdir()
    someone.config.write_text(ORIGINAL)
    return someone


def program(folder: Path, script: str) -> Path:
    """Put a program named codex, a script of the shell, into the folder."""
    folder.mkdir()
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# --- Installing and uninstalling


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
    done = user.install("--url", URL, "--dry-run", *OTEL, "Authorization=Basic abc=")
    assert done.returncode == 0, done
    assert user.files() == before
    patched = tmp_path / "patched.toml"
    patched.write_text(ORIGINAL)
    diff = done.stdout[done.stdout.index("--- ") : done.stdout.index("dry run:")]
    subprocess.run(["patch", "--quiet", str(patched)], input=diff, text=True, check=True)
    user.install("--url", URL, *OTEL, "Authorization=Basic abc=")
    assert patched.read_text() == user.config.read_text()
    assert "-# >>> ctrlb-agent >>>" in user.install("--uninstall", "--dry-run").stdout
    assert patched.read_text() == user.config.read_text()


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


# --- What is refused, and leaves everything as it was

WRONG = {
    "nothing to set up": ((), "--codex", False),
    "an unknown option": (("--wat",), "usage:", True),
    "no endpoint": (("--url", URL, "--otel"), "--otel needs --otel-endpoint and --otel-header", True),
    "no header": (("--url", URL, *OTEL[:-1]), "--otel needs", True),
    "a header without a name": (("--url", URL, *OTEL, "Basic abc"), "NAME=VALUE", True),
    "a header without a value": (("--url", URL, *OTEL, "Authorization="), "NAME=VALUE", True),
    "a header of two lines": (("--url", URL, *OTEL, "A=b\nC: d"), "NAME=VALUE", True),
    "an export without --otel": (("--url", URL, *OTEL[1:], "A=b"), "go with --otel", True),
    "an endpoint to be filled in": (
        ("--otel", "--otel-endpoint", "<your endpoint>", "--otel-header", "A=b"),
        "no addr",
        True,
    ),
    "an address to be filled in": (("--url", "<your CtrlB URL>"), "address of a server", True),
    "an address with a password": (("--url", "http://u:p@host"), "without a user", True),
    "two ways to trust": (("--url", URL, "--trust", "--no-trust"), "not allowed with", True),
    "taking out and setting up": (("--uninstall", "--url", URL), "--uninstall goes with", True),
}


@pytest.mark.parametrize(("options", "words", "codex"), WRONG.values(), ids=WRONG)
def test_wrong_options_end_with_2_and_the_usage(user: User, options: tuple[str, ...], words: str, codex: bool) -> None:
    before = user.files()
    done = user.install(*options, codex=codex)
    assert done.returncode == 2, done
    assert words in done.stderr
    assert "usage: install.py" in done.stderr
    assert user.files() == before


@pytest.mark.promise("otel-no-key")
@pytest.mark.parametrize(
    "header",
    [
        f"Authorization=Bearer {KEY}",
        f"Authorization={KEY}",
        f"Authorization=Bearer%20{KEY}",
        f"x-key={KEY}",
        "Authorization=Basic " + base64.b64encode(f"dev@example.com:{KEY}".encode()).decode(),
        "Authorization=Basic " + base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
    ],
)
def test_an_mcp_key_is_refused_in_an_otel_header_and_not_shown(user: User, header: str) -> None:
    before = user.files()
    done = user.install("--url", URL, *OTEL, header)
    assert done.returncode == 1, done
    assert "ingest credentials" in done.stderr
    assert header.rpartition(" ")[2] not in done.stdout + done.stderr
    assert user.files() == before


def test_ingest_credentials_are_no_mcp_key() -> None:
    credential = "ctrlbi_x-ctrlb_abcdefghijkl_" + "s" * 49
    assert not holds_mcp_key(f"Basic {credential}")
    assert not holds_mcp_key("Basic " + base64.b64encode(f"dev:{credential}".encode()).decode())


def test_a_stored_header_makes_the_file_its_users_only(user: User) -> None:
    user.config.chmod(0o644)
    user.install("--url", URL)
    assert user.config.stat().st_mode & 0o777 == 0o644
    done = user.install(*OTEL, "Authorization=Basic abc=", "--otel-header", 'X-Team=a "b"')
    assert done.returncode == 0, done
    assert 'headers = { "Authorization" = "Basic abc=", "X-Team" = "a \\"b\\"" }' in user.config.read_text()
    assert user.config.stat().st_mode & 0o777 == 0o600
    assert "only you can read it" in done.stdout
    assert "OpenTelemetry" not in user.install().stderr


REFUSED = {
    "broken TOML": (b'a = 1\nmodel = "x\n', 'Line 2: a string that begins with " does not end\n    model = "x'),
    "no UTF-8": (b"# one\n# caf\xe9\n", "line 2, is not UTF-8"),
    "an export": (b"[otel]\nenvironment = 'dev'\n", "line 1: otel exports already"),
    "inline hooks": (b"\nhooks = {}\n", "line 2: hooks is a value"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_a_config_without_room_is_refused_and_left_as_it_is(user: User, content: bytes, words: str) -> None:
    user.config.write_bytes(content)
    before = user.files()
    done = user.install("--url", URL, *OTEL, "Authorization=Basic abc=")
    assert done.returncode == 1, done
    assert f"install.py: {user.config}" in done.stderr
    assert words in done.stderr
    assert user.files() == before


def test_without_an_address_nothing_is_written(user: User) -> None:
    before = user.files()
    done = user.install(CTRLB_URL="${CTRLB_URL}")
    assert done.returncode == 1
    assert "--url" in done.stderr
    assert "CTRLB_URL" in user.install(CTRLB_URL="nonsense").stderr
    assert user.files() == before


def test_a_read_only_config_is_refused(user: User) -> None:
    user.config.chmod(0o444)
    done = user.install("--url", URL)
    assert done.returncode == 1
    assert f"chmod u+w {user.config}" in done.stderr
    assert user.config.read_text() == ORIGINAL
    assert user.copies == []


def test_a_config_that_is_no_file_is_refused(user: User) -> None:
    user.config.unlink()
    user.config.symlink_to("/nowhere/config.toml")
    assert "folder is not there" in user.install("--url", URL).stderr
    user.config.unlink()
    user.config.mkdir()
    assert "cannot be read" in user.install("--url", URL).stderr


def test_a_config_that_changes_meanwhile_is_not_overwritten(user: User) -> None:
    file = codex_file.read(str(user.config.parent))
    user.config.write_text(ORIGINAL + "# by Codex\n")
    with pytest.raises(Refused, match="run this again"):
        codex_file.replace(file, "x = 1\n", holds_secret=False)
    assert [path.name for path in user.config.parent.iterdir()] == ["config.toml"]
    assert user.config.read_text() == ORIGINAL + "# by Codex\n"


# --- A Codex that does not do its part


def test_trust_needs_codex(user: User) -> None:
    done = user.install("--url", URL, "--trust")
    assert done.returncode == 1
    assert "codex is not on PATH" in done.stderr
    assert "[mcp_servers.ctrlb]" in user.config.read_text()


def test_a_codex_that_refuses_the_result_leaves_the_file_as_it_is(user: User, tmp_path: Path) -> None:
    said = "case $1 in mcp) echo 'Error: no such luck' >&2;; esac"
    broken = program(tmp_path / "bin", f"grep -q ctrlb-agent $CODEX_HOME/config.toml || exit 0\n{said}\nexit 1")
    done = user.install("--url", URL, PATH=f"{broken.parent}:{PLAIN_PATH}")
    assert done.returncode == 1
    assert "nothing was changed: Error: no such luck" in done.stderr
    assert user.config.read_text() == ORIGINAL


def test_a_codex_that_refuses_the_file_as_it_is_says_so(user: User, tmp_path: Path) -> None:
    broken = program(tmp_path / "bin", 'echo "Error: $CODEX_HOME/config.toml:1:1: no" >&2\nexit 1')
    done = user.install("--url", URL, PATH=f"{broken.parent}:{PLAIN_PATH}")
    assert done.returncode == 1
    assert f"Mend it first: Error: {user.config}:1:1: no" in done.stderr
    assert user.config.read_text() == ORIGINAL


def test_a_codex_that_hangs_is_ended(user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    hung = program(tmp_path / "bin", f"exec 9> {tmp_path}/alive\necho started >&9\nsleep 600 & wait")
    monkeypatch.setattr(codex_program, "DEADLINE_S", 1.0)
    monkeypatch.setattr(codex_program, "LEAVE_S", 0.1)
    monkeypatch.setenv("PATH", f"{hung.parent}:{PLAIN_PATH}")
    with pytest.raises(CodexFailed, match="took longer than"):
        codex_program.verdict(str(hung), ORIGINAL, str(user.config.parent))
    assert codex_trust.untrusted(str(user.config.parent)) is None
    with pytest.raises(CodexFailed, match="did not answer in time"):
        codex_trust.trust(str(user.config.parent))
    os.set_blocking(alive, True)
    assert os.read(alive, 100) == b"started\n" * 3
    assert select.select([alive], [], [], TIMEOUT_S)[0]
    assert os.read(alive, 100) == b"", "a process of the hung program is left"
    os.close(alive)


@pytest.mark.parametrize(
    "script", ["exit 3", "echo nonsense; exit 0", 'read x; echo \'{"id":1,"error":{"message":"no"}}\'']
)
def test_an_app_server_that_says_something_else_is_no_answer(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    other = program(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{other.parent}:{PLAIN_PATH}")
    assert codex_trust.untrusted(str(user.config.parent)) is None
    with pytest.raises(CodexFailed, match="codex app-server"):
        codex_trust.trust(str(user.config.parent))
