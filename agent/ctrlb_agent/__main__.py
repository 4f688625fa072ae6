"""`python3 -m ctrlb_agent`, or this folder as a program: `python3 …/ctrlb_agent`."""

import io
import os
import signal
import sys

if sys.version_info < (3, 9):  # noqa: UP036 - said in words, before something fails
    sys.exit("ctrlb-agent: Python 3.9 or newer is needed")
if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

if sys.stdout is None:  # the caller closed it
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the end
if sys.stderr is None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
try:
    from ctrlb_agent.command_line import cli, streams

    status = cli.main(sys.argv[1:], os.environ)
except KeyboardInterrupt:  # a shell that runs this in a loop is to see that it was broken off
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
except SystemExit as ended:  # of `--help` and `--version`
    status = ended.code if isinstance(ended.code, int) else 0
streams.finish()
sys.exit(status)
