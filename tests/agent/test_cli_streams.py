"""The command line among pipes, terminals and servers that are odd: its status is always the truth."""

import contextlib
import fcntl
import json
import os
import pty
import subprocess
import termios

import pytest

from tests.agent.programs import AGENT, PYTHON, TIMEOUT_S, ctrlb, environment
from tests.agent.scripted_server import ScriptedServer, answers
from tests.agent.shell import Shell
from tests.laptop import Laptop


def piped(shell: Shell, laptop: Laptop, command: str, **changed: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in which `ctrlb` is the command line, as agent b."""
    environ = environment(shell.home, laptop, CTRLB_RUN=shell.run, CTRLB_AGENT="b") | changed
    line = f"ctrlb() {{ '{PYTHON}' '{AGENT / 'ctrlb_agent'}' \"$@\"; }}; {command}"
    return subprocess.run(["bash", "-c", line], env=environ, cwd=shell.root, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("ctrlb claim taken.py | true; exit ${PIPESTATUS[0]}", 1),
        ("ctrlb claim free.py | true; exit ${PIPESTATUS[0]}", 0),
        ("ctrlb claim taken.py >&-", 1),
        ("ctrlb claim free.py >&-", 0),
        ("ctrlb claim free.py > /dev/full", 2),
        ("ctrlb --help | true; exit ${PIPESTATUS[0]}", 0),
        ("mkdir gone; cd gone; rmdir ../gone; ctrlb claim x.py", 2),
        ("ctrlb check ''", 2),
        (r"ctrlb search $'a\xffb'", 2),
        (r"ctrlb peers --run $'a\xffb'", 0),
        (r"ctrlb claim $'a\xffb.py'", 2),
        ("ctrlb configure --key-from-stdin <&-", 2),
        ("ctrlb claim taken.py 2>&-", 1),
        ("ctrlb peers --limit 501 2>&1 | true; exit ${PIPESTATUS[0]}", 2),
        ("ctrlb peers --limit 501 2>&-", 2),
        ("ctrlb backfill 2>&-", 0),
        ("ctrlb backfill 2>&1 | true; exit ${PIPESTATUS[0]}", 0),
        ("ctrlb peers --limit 501 --json > /dev/full", 2),
    ],
)
def test_a_shell_is_told_the_truth_whatever_it_does_with_the_streams(
    shell: Shell, laptop: Laptop, command: str, status: int
) -> None:
    shell("a", "claim", "taken.py")

    done = piped(shell, laptop, command)

    assert (done.returncode, b"Traceback" in done.stderr, b"Exception" in done.stderr) == (status, False, False), done


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("ctrlb peers --limit 501 --json", "limit"),
        ("ctrlb claim --json", "required: resource"),
        ("ctrlb clam --json", "did you mean claim?"),
        ("CTRLB_URL=http://127.0.0.1:1 ctrlb peers --json", "nothing listens"),
        ("ctrlb peers --limit 501 --json 2>&-", "limit"),
    ],
)
def test_with_json_an_error_is_a_json_object_too(shell: Shell, laptop: Laptop, command: str, error: str) -> None:
    done = piped(shell, laptop, command)

    assert done.returncode == 2
    assert error in json.loads(done.stdout)["error"]


def test_with_json_a_refused_key_has_its_code(shell: Shell, laptop: Laptop) -> None:
    done = piped(shell, laptop, "ctrlb peers --json", CTRLB_KEY="ctrlb_no_key")

    assert json.loads(done.stdout)["code"] == "MCP_INVALID_KEY"
    assert b"(MCP_INVALID_KEY)" in done.stderr


def test_a_key_that_a_person_types_is_not_shown(shell: Shell, laptop: Laptop) -> None:
    ours, terminal = pty.openpty()
    process = subprocess.Popen(
        [PYTHON, str(AGENT / "ctrlb_agent"), "configure", "--key-from-stdin"],
        env=environment(shell.home),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    seen = os.read(ours, 100)
    assert b"key" in seen
    os.write(ours, laptop.key.encode() + b"\n")
    with contextlib.suppress(OSError):  # the terminal ends with the process
        while more := os.read(ours, 1_000):
            seen += more
    os.close(ours)

    assert process.wait(TIMEOUT_S) == 0
    assert b"kept in" in seen
    assert laptop.key.encode() not in seen
    assert json.loads((shell.home / "state" / "config.json").read_text()) == {"key": laptop.key}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_held_claim_is_told_as_held_on_any_terminal(shell: Shell, laptop: Laptop, encoding: str) -> None:
    done = piped(shell, laptop, "ctrlb claim ü/日本.py && ctrlb claim ü/日本.py --json", PYTHONIOENCODING=encoding)

    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["key"] == "path:ü/日本.py"


def test_what_others_wrote_does_not_steer_the_terminal(shell: Shell) -> None:
    shell("a", "post", "\x1b[2Jred \x1b]0;title\x07")

    assert "\x1b" not in shell("b", "peers").stdout


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"held": 1, "lease_until": "x"}', b'{"held": true, "lease_until": 1e999}'],
)
def test_an_answer_without_the_fields_is_an_error_and_no_refusal(shell: Shell, body: bytes) -> None:
    with ScriptedServer(answers(200, body)) as server:
        environ = environment(shell.home, CTRLB_URL=server.url, CTRLB_KEY="k", CTRLB_RUN="run", CTRLB_AGENT="a")
        done = ctrlb("claim", "x", environ=environ, cwd=shell.root)

    assert done.returncode == 2
    assert "does not answer as CtrlB does" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sent", "said"),
    [
        (["--url", "nope"], "", "--url is not the address of a server"),
        (["--url", "http://u:p@host"], "", "without a user"),
        (["--dataset", "ü x"], "", "--dataset should be"),
        (["--key-from-stdin"], "not a key", "no key of CtrlB's"),
        (["--key-from-stdin"], "", "no key of CtrlB's"),
        ([], "", "nothing to keep"),
    ],
)
def test_only_what_can_be_an_address_or_a_key_is_kept(shell: Shell, arguments: list[str], sent: str, said: str) -> None:
    done = ctrlb("configure", *arguments, environ=environment(shell.home), cwd=shell.root, sent=sent)

    assert done.returncode == 2
    assert said in done.stderr
    assert not (shell.home / "state" / "config.json").exists()


def test_a_broken_file_is_not_written_over(shell: Shell) -> None:
    (shell.home / "state").mkdir(mode=0o700)
    (shell.home / "state" / "config.json").write_text('{"key": ')

    done = ctrlb("configure", "--url", "http://x", environ=environment(shell.home), cwd=shell.root)

    assert done.returncode == 2
    assert (shell.home / "state" / "config.json").read_text() == '{"key": '
