"""Where a command acts: the server, the run, the agent, and how its files are named."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent.connection import Connection, error_of, shown_url
from ctrlb_agent.json_values import object_in
from ctrlb_agent.paths import relative_to, root_of
from ctrlb_agent.sessions.identity import acting_as, run_of_checkout
from ctrlb_agent.settings import Settings, settings_of, value_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ctrlb_agent.calls import Call
    from ctrlb_agent.connection import Answer

DEADLINE_S = 15.0
KEY = re.compile(r"ctrlb_[!-~]{1,500}")
DATASET = re.compile(r"(?!_ctrlb_)[A-Za-z0-9_-]{1,64}")


class Mistake(Exception):
    """What the caller asked for cannot be done. The text says why, and what to do instead."""


class Refusal(Mistake):
    """The server does not do what was asked. The text is its own, and `said` the answer's object."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(error_of(answer))
        self.status = answer.status
        self.said = object_in(answer.body) or {}


class Place(NamedTuple):
    """Where a command acts: the server, and as which agent of which run. An id that is not known is empty.

    `of_checkout` says that nobody named the run: it is the one that the live agents of the checkout share.
    """

    settings: Settings
    run: str
    agent: str
    root: str
    of_checkout: bool


def acting(
    arguments: argparse.Namespace, environ: Mapping[str, str], needs_run: bool = True, needs_agent: bool = True
) -> Place:
    """Who the command acts as. Raises Mistake when what it needs of that is not known."""
    settings = reached(arguments, environ)
    session = acting_as(environ.get("CLAUDE_CODE_SESSION_ID", ""), environ)
    run = arguments.run or (session.run if session else value_of(environ, "CTRLB_RUN"))
    agent = arguments.agent or (session.agent if session else value_of(environ, "CTRLB_AGENT"))
    root = session.root if session else root_of(_here())
    shared = "" if run else run_of_checkout(root)
    if needs_run and not (run or shared):
        raise Mistake(
            "the run is not known: pass --run, or set CTRLB_RUN. "
            f"No live agent shares a run of the checkout {root}; the console lists all runs"
        )
    if needs_agent and not agent:
        raise Mistake("the agent is not known: pass --agent, or set CTRLB_AGENT")
    return Place(settings, run or shared, agent, root, bool(shared))


def reached(arguments: argparse.Namespace, environ: Mapping[str, str], needs_server: bool = True) -> Settings:
    """The server's address and the key. Raises Mistake when one is missing that is needed."""
    settings = settings_of(environ)
    if needs_server and not settings.url:
        raise Mistake("the server is not known: set CTRLB_URL, or run `configure --url`")
    if needs_server and not settings.key:
        raise Mistake("there is no key: set CTRLB_KEY, or run `configure --key-from-stdin`")
    return settings._replace(dataset=arguments.dataset) if arguments.dataset else settings


def named(resource: str, root: str, is_path: bool = False) -> str:
    """The resource as the run knows it: a path relative to the checkout's root, a name as it is.

    A path is read from the current directory as a shell does, unless only the root has such a file: agents are told to
    name files from there. What looks like no path (contract, "Resource keys") is a name, whatever files there are.
    """
    if is_path and not resource:
        raise Mistake("a path is empty")
    prefixed = resource.startswith(("path:", "name:", "task:"))
    looks_like_path = "/" in resource or os.path.splitext(resource)[1] != ""
    if prefixed or not (is_path or looks_like_path):
        return resource
    here = os.path.normpath(os.path.join(_here(), resource))
    plain = not resource.startswith(("/", "./", "../"))
    if plain and not os.path.lexists(here):
        here = os.path.join(root, resource)
    return relative_to(root, here)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Mistake("the current directory is gone: change to another") from None


def checked_key(line: str) -> str:
    """The key that was read. Raises Mistake when it is none of CtrlB's; it is not shown."""
    key = line.strip()
    if not KEY.fullmatch(key):
        raise Mistake("what came from standard input is no key of CtrlB's: it begins with ctrlb_")
    return key


def checked_dataset(name: str) -> str:
    """The dataset's name. Raises Mistake when none can have it."""
    if not DATASET.fullmatch(name):
        raise Mistake("--dataset should be 1 to 64 letters, digits, - or _")
    return name


def ask(settings: Settings, call: Call) -> dict[str, Any]:
    """The answer's object. Raises Refusal, Unreachable, and Mistake where another program answers."""
    connection = Connection(settings.url, settings.key)
    answer = call.send(connection, DEADLINE_S)
    connection.close()
    if answer.status >= 300:
        raise Refusal(answer)
    said = object_in(answer.body)
    if said is None:
        raise Mistake(f"{shown_url(settings.url)} does not answer as CtrlB does: is the address right?")
    return said
