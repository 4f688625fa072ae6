"""`python3 -m ctrlb_agent`: the relay and the session store for scripts and people.

Exit statuses are for a shell to branch on: 0 held, or what was asked for; 1 refused, or nothing found; 2 an error,
whose reason is on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ctrlb_agent import __version__, calls
from ctrlb_agent.calls import MAX_CHECKED_PATHS
from ctrlb_agent.command_line import shown
from ctrlb_agent.command_line.place import (
    Mistake,
    Place,
    acting,
    ask,
    checked_dataset,
    checked_key,
    checked_url,
    named,
    reached,
)
from ctrlb_agent.connection import Unreachable, shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OK, REFUSED, ERROR = 0, 1, 2


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command and return its exit status. Only a refusal is 1: a shell must not take a fault for one."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.act(arguments, environ))
    except (Mistake, Unreachable) as error:
        fault = str(error)
    except Exception as error:
        fault = f"this failed, or the server does not answer as CtrlB does ({type(error).__name__}: {error})"
    print(f"ctrlb: {shown.printable(fault)}", file=sys.stderr)
    return ERROR


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    whole = argparse.ArgumentParser(
        prog="ctrlb", description="Claim files, leave notes and search past sessions, from a shell.", epilog=EPILOG
    )
    whole.add_argument("--version", action="version", version=f"ctrlb-agent {__version__}")
    commands = whole.add_subparsers(metavar="command", required=True)
    _relay_commands(commands)
    _session_commands(commands)
    _care_commands(commands)
    return whole


EPILOG = """exit status: 0 held, or what was asked for; 1 refused, or nothing found; 2 an error.
The server and the key come from CTRLB_URL and CTRLB_KEY, or from what `configure` keeps. Run and agent come from --run
and --agent, CTRLB_RUN and CTRLB_AGENT, or the Claude Code session that the command runs in."""


def _relay_commands(commands: Any) -> None:
    one = _command(commands, "claim", claim, "take a file or a task, or learn who has it; claiming again renews")
    one.add_argument("resource", help="a file's path, or a task's name")
    one = _command(commands, "release", release, "mark what you claimed as done, or hand it back")
    one.add_argument("resource", help="as you claimed it, or the key that the claim answered")
    one.add_argument("--hand-back", action="store_true", help="not done: another agent may claim it")
    one = _command(commands, "check", check, "ask whether another agent holds one of these files")
    one.add_argument("path", nargs="+", help=f"a file's path; at most {MAX_CHECKED_PATHS}")
    one = _command(commands, "post", post, "leave a short note to the other agents of the run")
    one.add_argument("text", help="the note; 2,000 characters are kept")
    one = _command(commands, "peers", peers, "what the agents of the run did, newest first")
    one.add_argument("--limit", type=int, default=40, help="how many events, 1 to 500 (40)")


def _session_commands(commands: Any) -> None:
    one = _command(commands, "search", search, "find whole words in past sessions", in_run=False)
    one.add_argument("term", help="a word or a phrase")
    one.add_argument("--session", help="only this session")
    one.add_argument("--tool", help="only rows of this tool, for example Bash")
    one.add_argument("--oldest", action="store_true", help="oldest first")
    one.add_argument("--one-per-session", action="store_true", help="the first hit of each session")
    one.add_argument("--limit", type=int, default=10, help="how many hits, 1 to 25 (10)")
    one.add_argument("--offset", type=int, default=0, help="how many hits to skip (0)")
    text = "upload the sessions that are on this machine already, oldest first; run again, it goes on"
    one = _command(commands, "backfill", backfill, text, in_run=False, has_answer=False)
    one.add_argument("--claude", action="store_true", help="only sessions of Claude Code, unless --codex, too")
    one.add_argument("--codex", action="store_true", help="only sessions of Codex, unless --claude, too")
    one.add_argument("--since", type=datetime.fromisoformat, metavar="DATE", help="written to since, as 2026-11-30")
    one.add_argument("--project", metavar="DIR", help="of sessions that began in this folder or below it")
    one.add_argument("--dry-run", action="store_true", help="only say how much there is")


def _care_commands(commands: Any) -> None:
    _command(commands, "status", status, "the server, the run, and what you hold in it")
    one = _command(
        commands, "doctor", doctor, "find what keeps the hooks from working, and say what to do", in_run=False
    )
    one.add_argument("--codex-home", help="where Codex keeps its config.toml (CODEX_HOME, else ~/.codex)")
    text = "keep the server's address and a key in a file"
    one = _command(commands, "configure", configure, text, in_run=False, has_answer=False)
    one.add_argument("--url", help="the address of your CtrlB")
    one.add_argument("--key-from-stdin", action="store_true", help="read the key from standard input")


def _command(
    commands: Any,
    name: str,
    act: Callable[[argparse.Namespace, Mapping[str, str]], int],
    text: str,
    in_run: bool = True,
    has_answer: bool = True,
) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
    if has_answer:
        one.add_argument("--json", action="store_true", help="print the server's answer as it is")
    one.add_argument("--dataset", help="the sessions dataset (CTRLB_DATASET, else agent_sessions)")
    if in_run:
        one.add_argument("--run", help="the run's id (CTRLB_RUN)")
        one.add_argument("--agent", help="your agent id (CTRLB_AGENT)")
    one.set_defaults(act=act)
    return one


def claim(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when it is yours, 1 when another has it or it is done."""
    place = acting(arguments, environ)
    resource = named(arguments.resource, place.root)
    answer = ask(place, calls.claim(place.settings.dataset, place.run, place.agent, resource, place.root))
    _print(arguments, answer, shown.claim)
    return OK if answer["held"] else REFUSED


def release(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when it was yours to release, 1 when you held nothing."""
    place = acting(arguments, environ)
    resource, finished = named(arguments.resource, place.root), not arguments.hand_back
    call = calls.release(place.settings.dataset, place.run, place.agent, resource, place.root, finished)
    answer = ask(place, call)
    _print(arguments, answer, shown.release)
    return OK if answer["released"] else REFUSED


def check(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when nobody else holds a path, 1 when somebody does."""
    if len(arguments.path) > MAX_CHECKED_PATHS:
        raise Mistake(f"at most {MAX_CHECKED_PATHS} paths can be checked at once, not {len(arguments.path)}")
    place = acting(arguments, environ)
    paths = [named(path, place.root, is_path=True) for path in arguments.path]
    answer = ask(place, calls.check(place.settings.dataset, place.run, place.agent, paths, place.root))
    _print(arguments, answer, shown.check)
    return REFUSED if answer["conflicts"] else OK


def post(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 once the note is kept."""
    place = acting(arguments, environ)
    answer = ask(place, calls.post(place.settings.dataset, place.run, place.agent, arguments.text))
    _print(arguments, answer, lambda _: "posted")
    return OK


def peers(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0, also for a run that nobody wrote to."""
    place = acting(arguments, environ, needs_agent=False)
    answer = ask(place, calls.peers(place.settings.dataset, place.run, place.agent, arguments.limit))
    _print(arguments, answer, shown.peers)
    return OK


def search(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 with hits, 1 without, as grep does."""
    settings = reached(arguments, environ)
    fields = {
        "session_id": arguments.session,
        "tool": arguments.tool,
        "order": "oldest" if arguments.oldest else "newest",
        "one_per_session": arguments.one_per_session,
        "limit": arguments.limit,
        "offset": arguments.offset,
    }
    answer = ask(Place(settings, "", "", ""), calls.search(settings.dataset, arguments.term, fields))
    _print(arguments, answer, shown.search)
    return OK if answer["hits"] else REFUSED


def backfill(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when all is uploaded, 2 when something is not."""
    from ctrlb_agent.command_line.backfill import run

    return run(arguments, environ)


def status(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 once the server has answered."""
    place = acting(arguments, environ, needs_agent=False)
    answer = {
        "url": shown_url(place.settings.url),
        "dataset": place.settings.dataset,
        "run_id": place.run,
        "agent": place.agent,
        "root": place.root,
        "settings": ask(place, calls.settings()),
        "resources": _resources(place),
    }
    _print(arguments, answer, shown.status)
    return OK


def doctor(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when all is well, 1 when something is to be mended."""
    from ctrlb_agent.command_line.doctor import findings

    found = findings(environ, arguments.codex_home)
    _print(arguments, {"findings": [finding._asdict() for finding in found]}, lambda _: shown.findings(found))
    return REFUSED if any(finding.level == "fail" for finding in found) else OK


def configure(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Keep the address, the key, or both, for hooks and commands that find none in their environment."""
    from ctrlb_agent import state

    file = state.path("config.json")
    kept = state.read_json(file)
    if kept is None and os.path.exists(file):
        raise Mistake(f"{file} cannot be read: mend or remove it")
    new = {
        "url": checked_url(arguments.url) if arguments.url else None,
        "key": checked_key(sys.stdin.readline() if sys.stdin else "") if arguments.key_from_stdin else None,
        "dataset": checked_dataset(arguments.dataset) if arguments.dataset else None,
    }
    if not any(new.values()):
        raise Mistake("nothing to keep: pass --url, --dataset or --key-from-stdin")
    state.write_json(file, {**(kept or {}), **{name: value for name, value in new.items() if value}})
    print(f"kept in {file}, which only you can read")
    return OK


def _resources(place: Place) -> list[dict[str, Any]]:
    """What is claimed in the run; nothing when nobody has written to it yet."""
    try:
        return list(ask(place, calls.run(place.settings.dataset, place.run)).get("resources", []))
    except Mistake:
        return []


def _print(arguments: argparse.Namespace, answer: dict[str, Any], words: Callable[[dict[str, Any]], str]) -> None:
    """Print the answer. A reader that has gone, as of `… | head`, changes nothing about what was done."""
    printed = json.dumps(answer) if arguments.json else shown.printable(words(answer))
    if sys.stdout is None:  # the caller closed it
        return
    try:
        print(printed, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        if not isinstance(error, BrokenPipeError):
            raise Mistake(f"done, but what came of it could not be printed: {error}") from error
