"""What a command says, whatever its caller has made of its streams: closed, full, or a pipe that nobody reads."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ctrlb_agent.command_line.place import Mistake

if TYPE_CHECKING:
    from typing import TextIO


def say(text: str) -> None:
    """Print on standard output. A reader that has gone, as of `… | head`, changes nothing about what was done.

    Raises Mistake where the output cannot take it, such as a disk that is full.
    """
    fault = _written(f"{text}\n", sys.stdout)
    if fault and not isinstance(fault, BrokenPipeError):
        raise Mistake(f"done, but what came of it could not be printed: {fault}") from fault


def say_aside(text: str) -> None:
    """Print on standard error, if anybody listens there: the status tells, too."""
    _written(f"{text}\n", sys.stderr)


def finish() -> None:
    """Write out what others printed, such as `--help`: at its end the interpreter would complain of a reader gone."""
    _written("", sys.stdout)
    _written("", sys.stderr)


def _written(text: str, stream: TextIO) -> OSError | None:
    """Why the stream does not take the text, if so. What it is given after that goes nowhere."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as fault:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return fault
    return None
