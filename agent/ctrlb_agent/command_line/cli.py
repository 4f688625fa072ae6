"""`python3 -m ctrlb_agent`: the relay and the session store for scripts and people.

Exit statuses are for a shell to branch on: 0 held, or what was asked for; 1 refused, or nothing found; 2 an error,
whose reason is on standard error, and with `--json` on standard output, too: `{"error": "…"}`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from ctrlb_agent import __version__
from ctrlb_agent.calls import MAX_CHECKED_PATHS
from ctrlb_agent.command_line import commands, shown
from ctrlb_agent.command_line.place import Mistake, Refusal
from ctrlb_agent.command_line.streams import say, say_aside
from ctrlb_agent.connection import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PROGRAM = "ctrlb-agent"
ERROR = 2

EPILOG = """\
exit status: 0 held, or what was asked for; 1 refused, or nothing found;
2 an error

The server and the key come from CTRLB_URL and CTRLB_KEY, or from what
`configure` keeps. Run and agent come from --run and --agent, CTRLB_RUN and
CTRLB_AGENT, or the Claude Code session that the command runs in; else the run
is the one that the live agents of this checkout share."""


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command and return its exit status. Only a refusal is 1: a shell must not take a fault for one."""
    told: dict[str, Any] = {}
    try:
        arguments = parsed(argv)
        return int(arguments.act(arguments, environ))
    except WrongUse as wrong:
        say_aside(wrong.usage.rstrip())
        fault = str(wrong)
    except (Mistake, Unreachable) as error:
        fault = str(error)
        told = error.said if isinstance(error, Refusal) else {}
    except Exception as error:
        fault = f"this failed, or the server does not answer as CtrlB does ({type(error).__name__}: {error})"
    say_aside(f"{PROGRAM}: {shown.printable(fault)}")
    if "--json" in argv:
        try:
            say(json.dumps({"error": fault, **told}))
        except Mistake as full:
            say_aside(f"{PROGRAM}: {full}")
    return ERROR


class WrongUse(Mistake):
    """The words of the command line are wrong. The text says which; `usage` is how they are to be."""

    def __init__(self, usage: str, fault: str) -> None:
        super().__init__(fault)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """A parser whose faults are raised as WrongUse."""

    def error(self, message: str) -> NoReturn:
        raise WrongUse(self.format_usage(), message)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """What the words of the command line ask for. Raises WrongUse, which names what was perhaps meant."""
    whole, known = _parsers()
    name = next((word for word in argv if not word.startswith("-")), None)
    if name is not None and name not in known:
        raise WrongUse(whole.format_usage(), f"there is no command {name!r}{_perhaps(name, known)}")
    arguments, unknown = whole.parse_known_args(argv)
    if unknown:
        usage = known[arguments.command].format_usage()
        like = "; what has spaces needs quotes"
        if unknown[0].startswith("-"):
            like = _perhaps(unknown[0].partition("=")[0], re.findall(r"--[a-z-]+", usage))
        raise WrongUse(usage, f"unrecognized arguments: {' '.join(unknown)}{like}")
    return arguments


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    return _parsers()[0]


def _perhaps(word: str, known: Iterable[str]) -> str:
    by_name = {one.lstrip("-"): one for one in known}  # the dashes that all have make none alike
    near = difflib.get_close_matches(word.lstrip("-"), by_name, 1)
    return f"; did you mean {by_name[near[0]]}?" if near else ""


def _parsers() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole, and that of each command."""
    whole = Parser(
        prog=PROGRAM,
        description="Claim files, leave notes and search past sessions, from a shell.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    known = whole.add_subparsers(metavar="command", dest="command", required=True)
    _relay_commands(known)
    _session_commands(known)
    _care_commands(known)
    return whole, known.choices


def _relay_commands(known: Any) -> None:
    one = _command(known, commands.claim, "take a file or a task, or learn who has it; claiming again renews")
    one.add_argument("resource", help="a file's path, or a task's name")
    one = _command(known, commands.release, "mark what you claimed as done, or hand it back")
    one.add_argument("resource", help="as you claimed it, or the key that the claim answered")
    one.add_argument("--hand-back", action="store_true", help="not done: another agent may claim it")
    one = _command(known, commands.check, "ask whether another agent holds one of these files")
    one.add_argument("path", nargs="+", help=f"a file's path; at most {MAX_CHECKED_PATHS}")
    one = _command(known, commands.post, "leave a short note to the other agents of the run")
    one.add_argument("text", help="the note; 2,000 characters are kept")
    one = _command(known, commands.peers, "what the agents of the run did, newest first")
    one.add_argument("--limit", type=int, default=40, metavar="N", help="how many events, 1 to 500 (40)")


def _session_commands(known: Any) -> None:
    one = _command(known, commands.search, "find whole words in past sessions", in_run=False)
    one.add_argument("term", help="a word or a phrase")
    one.add_argument("--session", metavar="ID", help="only this session")
    one.add_argument("--tool", metavar="NAME", help="only rows of this tool, for example Bash")
    one.add_argument("--oldest", action="store_true", help="oldest first")
    one.add_argument("--one-per-session", action="store_true", help="the first hit of each session")
    one.add_argument("--limit", type=int, default=10, metavar="N", help="how many hits, 1 to 25 (10)")
    one.add_argument("--offset", type=int, default=0, metavar="N", help="how many hits to skip (0)")
    text = "upload the sessions that are on this machine already, oldest first; run again, it goes on"
    one = _command(known, commands.backfill, text, in_run=False, has_answer=False)
    one.add_argument("--claude", action="store_true", help="only sessions of Claude Code, unless --codex, too")
    one.add_argument("--codex", action="store_true", help="only sessions of Codex, unless --claude, too")
    one.add_argument("--since", type=_day, metavar="DATE", help="written to since, as 2026-11-30")
    one.add_argument("--project", metavar="DIR", help="of sessions that began in this folder or below it")
    one.add_argument("--dry-run", action="store_true", help="only say how much there is")


def _care_commands(known: Any) -> None:
    _command(known, commands.status, "the server, the run, and what is held in it")
    text = "find what keeps the hooks from working, and say what to do"
    one = _command(known, commands.doctor, text, in_run=False, has_dataset=False)
    one.add_argument("--codex-home", metavar="DIR", help="Codex's folder (CODEX_HOME, else ~/.codex)")
    text = "keep the server's address and a key in a file"
    one = _command(known, commands.configure, text, in_run=False, has_answer=False)
    one.add_argument("--url", help="the address of your CtrlB")
    one.add_argument("--key-from-stdin", action="store_true", help="read the key from standard input")


def _command(
    known: Any,
    act: Callable[[argparse.Namespace, Mapping[str, str]], int],
    text: str,
    *,
    in_run: bool = True,
    has_answer: bool = True,
    has_dataset: bool = True,
) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = known.add_parser(
        act.__name__,
        help=text,
        description=f"{text[:1].upper()}{text[1:]}.",
        epilog=f"exit status: {(act.__doc__ or '').rstrip('.')}; 2 an error",
        allow_abbrev=False,
    )
    if has_answer:
        one.add_argument("--json", action="store_true", help="print the answer as one JSON object")
    if has_dataset:
        one.add_argument("--dataset", metavar="NAME", help="the sessions dataset (CTRLB_DATASET, else agent_sessions)")
    if in_run:
        one.add_argument("--run", metavar="ID", help="the run's id (CTRLB_RUN, else this checkout's)")
        one.add_argument("--agent", metavar="ID", help="your agent id (CTRLB_AGENT)")
    one.set_defaults(act=act)
    return one


def _day(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date: it should be like 2026-11-30") from None
