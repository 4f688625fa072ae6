"""The tests see the same whoever starts them, and wherever from."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTLED = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.surroundings import settle
settle()
handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)]
print(json.dumps([dict(os.environ), handlers == [signal.default_int_handler, signal.SIG_DFL], os.umask(0)]))
"""
OWN = {
    "AWS_PROFILE": "work",
    "CLAUDE_CONFIG_DIR": "/home/dev/.claude",
    "CODEX_HOME": "/home/dev/.codex",
    "CTRLB_KEY": "a key of the person's own",
    "CTRLB_URL": "https://ctrlb.example.com",
    "OIDC_ISSUER": "https://id.example.com",
    "PYTHONWARNINGS": "error",
    "REQUESTS_PER_S": "1",
    "all_proxy": "http://proxy.example.com",
}
OF_TESTS = {"CTRLB_AGENT_PYTHON": "/python3.9", "CTRLB_TEST_KEY": "k", "CTRLB_TEST_URL": "http://127.0.0.1:1"}


def interrupts_are_ignored() -> None:
    """As a shell without job control leaves it for what it starts in the background."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)


def test_a_run_in_the_background_of_somebody_at_work_is_like_one_at_a_bare_terminal() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SETTLED, str(ROOT)],
        env={"PATH": os.environ["PATH"], **OWN, **OF_TESTS},
        preexec_fn=interrupts_are_ignored,
        capture_output=True,
        check=True,
    ).stdout
    variables, can_be_interrupted, umask = json.loads(found)
    assert not OWN.keys() & variables.keys()
    assert OF_TESTS.items() <= variables.items()
    assert can_be_interrupted
    assert umask == 0o022
