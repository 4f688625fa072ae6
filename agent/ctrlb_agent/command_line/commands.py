"""What each command does. Each returns its exit status, which its first line tells; an error is a Mistake."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ctrlb_agent import calls
from ctrlb_agent.calls import MAX_CHECKED_PATHS
from ctrlb_agent.command_line import shown
from ctrlb_agent.command_line.place import (
    Mistake,
    Place,
    Refusal,
    acting,
    ask,
    checked_dataset,
    checked_key,
    named,
    reached,
)
from ctrlb_agent.command_line.streams import say, say_aside
from ctrlb_agent.connection import shown_url

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

OK, REFUSED = 0, 1
NOT_FOUND = 404


def claim(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when it is yours, 1 when another has it or it is done."""
    place = _in_run(arguments, environ)
    resource = named(arguments.resource, place.root)
    answer = ask(place.settings, calls.claim(place.settings.dataset, place.run, place.agent, resource, place.root))
    _print(arguments, answer, shown.claim)
    return OK if answer["held"] else REFUSED


def release(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when it was yours to release, 1 when you held nothing."""
    place = _in_run(arguments, environ)
    resource, finished = named(arguments.resource, place.root), not arguments.hand_back
    call = calls.release(place.settings.dataset, place.run, place.agent, resource, place.root, finished)
    answer = ask(place.settings, call)
    _print(arguments, answer, shown.release)
    return OK if answer["released"] else REFUSED


def check(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when nobody else holds a path, 1 when somebody does."""
    if len(arguments.path) > MAX_CHECKED_PATHS:
        raise Mistake(f"at most {MAX_CHECKED_PATHS} paths can be checked at once, not {len(arguments.path)}")
    place = _in_run(arguments, environ)
    paths = [named(path, place.root, is_path=True) for path in arguments.path]
    answer = ask(place.settings, calls.check(place.settings.dataset, place.run, place.agent, paths, place.root))
    _print(arguments, answer, shown.check)
    return REFUSED if answer["conflicts"] else OK


def post(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 once the note is kept."""
    place = _in_run(arguments, environ)
    answer = ask(place.settings, calls.post(place.settings.dataset, place.run, place.agent, arguments.text))
    _print(arguments, answer, lambda _: "posted")
    return OK


def peers(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0, also for a run that nobody wrote to."""
    place = _in_run(arguments, environ, needs_agent=False)
    answer = ask(place.settings, calls.peers(place.settings.dataset, place.run, place.agent, arguments.limit))
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
    answer = ask(settings, calls.search(settings.dataset, arguments.term, fields))
    _print(arguments, answer, shown.search)
    return OK if answer["hits"] else REFUSED


def backfill(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 when all is uploaded."""
    from ctrlb_agent.command_line.backfill import run

    return run(arguments, environ)


def status(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """0 once the server has answered."""
    place = acting(arguments, environ, needs_run=False, needs_agent=False)
    answer = {
        "url": shown_url(place.settings.url),
        "dataset": place.settings.dataset,
        "run_id": place.run,
        "agent": place.agent,
        "root": place.root,
        "settings": ask(place.settings, calls.settings()),
        "resources": _resources(place) if place.run else [],
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
    """0 once it is kept, for hooks and commands that find nothing in their environment."""
    from ctrlb_agent import state
    from ctrlb_agent.addresses import checked_url

    file = state.path("config.json")
    kept = state.read_json(file)
    if kept is None and os.path.exists(file):
        raise Mistake(f"{file} cannot be read: mend or remove it")
    try:
        url = checked_url(arguments.url) if arguments.url else None
    except ValueError as error:
        raise Mistake(f"--url {error}") from None
    new = {
        "url": url,
        "key": checked_key(_key_read()) if arguments.key_from_stdin else None,
        "dataset": checked_dataset(arguments.dataset) if arguments.dataset else None,
    }
    if not any(new.values()):
        raise Mistake("nothing to keep: pass --url, --dataset or --key-from-stdin")
    state.write_json(file, {**(kept or {}), **{name: value for name, value in new.items() if value}})
    say(f"kept in {file}, which only you can read")
    return OK


def _key_read() -> str:
    """A line of standard input; a person who types it does not see it."""
    if sys.stdin is None:
        return ""
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    from getpass import getpass

    try:
        return getpass("key (not shown): ")
    except EOFError:
        return ""


def _in_run(arguments: argparse.Namespace, environ: Mapping[str, str], needs_agent: bool = True) -> Place:
    """Where the command acts. Of a run that nobody named, a person is told which it is. Raises Mistake."""
    place = acting(arguments, environ, needs_agent=needs_agent)
    if place.of_checkout and not arguments.json:
        say_aside(shown.printable(f"in run {place.run}, which this checkout's live agents share"))
    return place


def _resources(place: Place) -> list[dict[str, Any]]:
    """What is claimed in the run; nothing when nobody has written to it yet."""
    try:
        return list(ask(place.settings, calls.run(place.settings.dataset, place.run))["resources"])
    except Refusal as refusal:
        if refusal.status != NOT_FOUND:
            raise
        return []


def _print(arguments: argparse.Namespace, answer: dict[str, Any], words: Callable[[dict[str, Any]], str]) -> None:
    say(json.dumps(answer) if arguments.json else shown.printable(words(answer)))
