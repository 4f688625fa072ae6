"""`python3 -m ctrlb_agent`, or this folder as a program: `python3 …/ctrlb_agent`."""

import io
import os
import sys

if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from ctrlb_agent.command_line.cli import main

for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
try:
    status = main(sys.argv[1:], os.environ)
except KeyboardInterrupt:
    status = 130
except SystemExit as ended:  # of `--help`, and of a wrong option
    status = ended.code if isinstance(ended.code, int) else 0
try:
    if sys.stdout is not None:
        sys.stdout.flush()
except OSError:  # the reader has gone
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
sys.exit(status)
