"""The command line among pipes, terminals and servers that are odd: its status is always the truth."""

import json
import subprocess

import pytest

from tests.agent.programs import AGENT, PYTHON, ctrlb, environment
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
    ],
)
def test_a_shell_is_told_the_truth_whatever_it_does_with_the_streams(
    shell: Shell, laptop: Laptop, command: str, status: int
) -> None:
    shell("a", "claim", "taken.py")

    done = piped(shell, laptop, command)

    assert (done.returncode, b"Traceback" in done.stderr, b"Exception" in done.stderr) == (status, False, False), done


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_held_claim_is_told_as_held_on_any_terminal(shell: Shell, laptop: Laptop, encoding: str) -> None:
    done = piped(shell, laptop, "ctrlb claim ü/日本.py && ctrlb claim ü/日本.py --json", PYTHONIOENCODING=encoding)

    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["key"] == "path:ü/日本.py"


def test_what_others_wrote_does_not_steer_the_terminal(shell: Shell) -> None:
    shell("a", "post", "\x1b[2Jred \x1b]0;title\x07")

    assert "\x1b" not in shell("b", "peers").stdout


@pytest.mark.parametrize("body", [b"{}", b'{"held": 1, "lease_until": "x"}', b'{"held": true, "lease_until": 1e999}'])
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
