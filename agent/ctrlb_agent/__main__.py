"""`python3 -m ctrlb_agent`, or this folder as a program: `python3 …/ctrlb_agent`."""

import os
import sys

if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from ctrlb_agent.command_line.cli import main

try:
    status = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
except KeyboardInterrupt:
    status = 130
except BrokenPipeError:  # `… | head` has read enough
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 0
sys.exit(status)
