"""What the tests do not take over from whoever starts them, so that they see the same on every machine."""

import os
import re
import signal

KEPT = re.compile("CTRLB_TEST_|CTRLB_AGENT_PYTHON$")
"""How the tests themselves are told something."""
NOT_TAKEN = re.compile(
    "AWS_|CLAUDE|CODEX_|CTRLB_|OIDC_|PYTHON|SEARCH_"
    "|(BODIES_BUCKET|DEAD_LETTER_QUEUE|RELAY_TABLE|REQUESTS_PER_S|SESSIONS_TABLE|WORKSPACE_HOSTS)$"
    "|((ALL|HTTP|HTTPS|NO)_PROXY|SSL_CERT_(DIR|FILE))$",
    re.IGNORECASE,
)
"""What the server, the hooks, the clients and Python itself would read: of the person's own work, not of a test."""

IGNORED_IN_THE_BACKGROUND = (signal.SIGINT, signal.SIGQUIT)
"""A shell without job control starts `command &` with these ignored, and so would all that the tests start."""
UMASK = 0o022


def settle() -> None:
    """Make this process, and all that it starts, one that a person started at a terminal with nothing set up."""
    for name in list(os.environ):
        if NOT_TAKEN.match(name) and not KEPT.match(name):
            del os.environ[name]
    for number in IGNORED_IN_THE_BACKGROUND:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(UMASK)
