"""What install.py refuses, so that everything stays as it was: options, configs, and a Codex that takes no part."""

import base64
import os
import select
from pathlib import Path

import pytest

from ctrlb_agent.codex_setup import codex_file, codex_program, codex_trust
from ctrlb_agent.codex_setup.codex_block import Refused
from ctrlb_agent.codex_setup.codex_options import holds_mcp_key
from ctrlb_agent.codex_setup.codex_program import CodexFailed
from tests.agent.codex_user import ORIGINAL, OTEL, PLAIN_PATH, URL, User, program
from tests.agent.programs import TIMEOUT_S

KEY = "ctrlb_default_abcdefghijkl_" + "s" * 49
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
    "a port that is none": (("--url", "http://h:99999"), "has a port", True),
    "a port of letters": (("--url", "http://h:abc"), "has a port", True),
    "an empty query": (("--url", "http://h/?"), "without a user", True),
    "an empty fragment": (("--url", "http://h/#"), "without a user", True),
    "bytes that are no text": (("--url", "http://h\udcff"), "has a port, or characters", True),
    "a header of bytes that are no text": (("--url", URL, *OTEL, "A=b\udcff"), "NAME=VALUE", True),
    "an endpoint with a port that is none": (
        ("--otel", "--otel-endpoint", "http://h:99999/_otel/v1/logs", "--otel-header", "A=b"),
        "no addr",
        True,
    ),
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
        f"Authorization=-{KEY}",
        f"Authorization=Bearer x{KEY}",
        "Authorization=ctrlb%255F" + KEY[6:],
        "Authorization=Basic " + base64.b64encode(base64.b64encode(f"dev:{KEY}".encode())).decode(),
        "Authorization=Basic xy" + base64.b64encode(f"dev:{KEY}".encode()).decode(),
        f"Authorization={KEY.encode().hex()}",
        "Authorization=Bearer ctrlbs_" + "s" * 43,
        "Authorization=Basic " + base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
    ],
)
def test_an_mcp_key_is_refused_in_an_otel_header_and_not_shown(user: User, header: str) -> None:
    before = user.files()
    done = user.install("--url", URL, *OTEL, header)
    assert done.returncode == 1, done
    assert "give an ingest credential" in done.stderr
    assert header.rpartition(" ")[2] not in done.stdout + done.stderr
    assert user.files() == before


def test_the_help_says_that_no_server_takes_the_export_yet(user: User) -> None:
    told = " ".join(user.install("--help").stdout.split())
    assert "CtrlB's server does not take them yet" in told
    assert '"Authorization=Basic <ingest credential>"' in told


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
    assert "install.py: the address" in user.install(CTRLB_URL="http://h\udcff").stderr
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
    user.config.rmdir()
    os.mkfifo(user.config)
    assert "cannot be read" in user.install("--url", URL).stderr
    assert "cannot be read" in user.install("--uninstall").stderr


def test_what_a_killed_trial_left_is_removed_by_the_next_one(user: User, tmp_path: Path) -> None:
    folders = [tmp_path / "tmp" / name for name in ("ctrlb-agent-old", "ctrlb-agent-new", "other")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("secret")
    (folders[0] / "linked").symlink_to(user.config.parent)
    for folder in (folders[0], folders[2]):
        os.utime(folder, (0, 0))
    takes_all = program(tmp_path / "bin", "exit 0")
    done = user.install(
        "--url", URL, "--no-trust", PATH=f"{takes_all.parent}:{PLAIN_PATH}", TMPDIR=str(tmp_path / "tmp")
    )
    assert done.returncode == 0, done
    assert [folder.exists() for folder in folders] == [False, True, True]
    assert user.config.exists()


def test_a_config_that_changes_meanwhile_is_not_overwritten(user: User) -> None:
    file = codex_file.read(str(user.config.parent))
    user.config.write_text(ORIGINAL + "# by Codex\n")
    with pytest.raises(Refused, match="run this again"):
        codex_file.replace(file, "x = 1\n", holds_secret=False)
    assert [path.name for path in user.config.parent.iterdir()] == ["config.toml"]
    assert user.config.read_text() == ORIGINAL + "# by Codex\n"


def test_trust_needs_codex(user: User) -> None:
    done = user.install("--url", URL, "--trust")
    assert done.returncode == 1
    assert "codex is not on PATH" in done.stderr
    assert user.config.read_text() == ORIGINAL
    assert user.copies == []


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
    assert (b"started\n" * 3).startswith(os.read(alive, 100))  # a busy machine may not get so far in its second
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
