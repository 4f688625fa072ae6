"""Where a command acts: the server, the run, the agent, and how its files are named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent.connection import Connection, error_of, shown_url
from ctrlb_agent.json_values import object_in
from ctrlb_agent.paths import relative_to, root_of
from ctrlb_agent.sessions.identity import acting_as
from ctrlb_agent.settings import Settings, settings_of, value_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ctrlb_agent.calls import Call

DEADLINE_S = 15.0


class Mistake(Exception):
    """What the caller asked for cannot be done. The text says why, and what to do instead."""


class Place(NamedTuple):
    """Where a command acts: the server, and as which agent of which run."""

    settings: Settings
    run: str
    agent: str
    root: str


def acting(arguments: argparse.Namespace, environ: Mapping[str, str], needs_agent: bool = True) -> Place:
    """Who the command acts as. Raises Mistake when that is not known."""
    settings = reached(arguments, environ)
    session = acting_as(environ.get("CLAUDE_CODE_SESSION_ID", ""), environ)
    run = arguments.run or (session.run if session else value_of(environ, "CTRLB_RUN"))
    agent = arguments.agent or (session.agent if session else value_of(environ, "CTRLB_AGENT"))
    if not run:
        raise Mistake("the run is not known: pass --run, or set CTRLB_RUN")
    if needs_agent and not agent:
        raise Mistake("the agent is not known: pass --agent, or set CTRLB_AGENT")
    return Place(settings, run, agent, session.root if session else root_of(os.getcwd()))


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
    prefixed = resource.startswith(("path:", "name:", "task:"))
    looks_like_path = "/" in resource or os.path.splitext(resource)[1] != ""
    if prefixed or not (is_path or looks_like_path):
        return resource
    here = os.path.abspath(resource)
    plain = not resource.startswith(("/", "./", "../"))
    if plain and not os.path.lexists(here):
        here = os.path.join(root, resource)
    return relative_to(root, here)


def ask(place: Place, call: Call) -> dict[str, Any]:
    """The answer's object. Raises Mistake with the server's words when it refuses, and Unreachable."""
    connection = Connection(place.settings.url, place.settings.key)
    answer = call.send(connection, DEADLINE_S)
    connection.close()
    if answer.status >= 300:
        raise Mistake(error_of(answer))
    said = object_in(answer.body)
    if said is None:
        raise Mistake(f"{shown_url(place.settings.url)} does not answer as CtrlB does: is the address right?")
    return said
