"""Before an edit: does another agent of the run hold one of the files? (Contract: "Check paths before an edit".)

What cannot be checked may be edited: every failure is a line in the log and no word to the client.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import calls
from ctrlb_agent.calls import MAX_CHECKED_PATHS
from ctrlb_agent.complaints import complain
from ctrlb_agent.connection import Connection, Unreachable, error_of
from ctrlb_agent.edit_check.telling import Conflict, printed
from ctrlb_agent.json_values import object_in, object_of, parsed
from ctrlb_agent.paths import relative_to
from ctrlb_agent.sessions.identity import Identity, identity_of
from ctrlb_agent.settings import settings_of
from ctrlb_agent.transcripts import edits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from ctrlb_agent.connection import Answer

LATEST_US = 4_102_444_800_000_000  # 2100: a later lease is none
MAX_LINKS = 40  # that lead to each other; systems follow no more


class Verdict(NamedTuple):
    """What the server says of all paths together."""

    allowed: bool
    conflicts: list[Conflict]


class NoVerdict(Exception):
    """The server answered, but not whether the edit may go ahead. The text says what instead."""


def answer(
    client: str,
    data: bytes,
    environ: Mapping[str, str],
    give_up_s: float,
    lend: Callable[[str, str], AbstractContextManager[Connection]],
) -> bytes:
    """What the hook prints for this input. `lend` gives a connection to a URL with a key for as long as it is needed.

    `give_up_s` is a time of the monotonic clock. Nothing is printed, or logged, where nobody has set up a server.
    """
    hook = object_in(data)
    if hook is None:
        complain("check: the hook's input is no JSON object")
        return b""
    edited = _edited(hook)
    if not edited:
        return b""
    settings = settings_of(environ)
    if not settings.are_complete:
        return b""
    who = identity_of(hook, environ, client)
    with lend(settings.url, settings.key) as server:
        return _checked(server, settings.dataset, who, list(spellings(who.root, edited)), give_up_s)


def answer_once(client: str, data: bytes, environ: Mapping[str, str], give_up_s: float) -> bytes:
    """As `answer`, over a connection that is opened for it alone."""
    return answer(client, data, environ, give_up_s, lambda url, key: closing(Connection(url, key)))


def _checked(server: Connection, dataset: str, who: Identity, paths: list[str], give_up_s: float) -> bytes:
    """A denial, a note on who holds the files, or nothing. What is known is told when a later request fails."""
    allowed, conflicts = True, list[Conflict]()
    try:
        for first in range(0, len(paths), MAX_CHECKED_PATHS):
            asked = calls.check(dataset, who.run, who.agent, paths[first : first + MAX_CHECKED_PATHS], who.root)
            verdict = _verdict(asked.send(server, give_up_s - time.monotonic()))
            allowed = allowed and verdict.allowed
            conflicts += verdict.conflicts
    except (Unreachable, NoVerdict) as error:
        complain(f"check: an edit was not checked: {error}")
    return printed(who, allowed, conflicts)


def spellings(root: str, edited: Iterable[str]) -> Iterator[str]:
    """The paths to ask for, each once: as the disk has them, as they were spelled, and what they are links to.

    Agents claim what they see, and the server looks at no disk. A path that nobody can claim is left out: one bad
    path is enough for the server to refuse the question.
    """
    found = dict[str, None]()
    for path in edited:
        found[relative_to(root, path)] = None
        if path.startswith(root.rstrip("/") + "/"):
            found[relative_to(root, path, follow=False)] = None
        for target in _targets(path):
            found[relative_to(root, target)] = None
    return (path for path in found if calls.is_path_for_server(path))


def _targets(path: str) -> Iterator[str]:
    """What the path is a link to, what that is a link to, and so on."""
    for _ in range(MAX_LINKS):
        try:
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError:
            return
        parent, name = os.path.split(path)
        path = os.path.join(os.path.realpath(parent), name)
        yield path


def _verdict(said: Answer) -> Verdict:
    """What the answer says. Raises NoVerdict."""
    if said.status != 200:
        raise NoVerdict(error_of(said))
    fields = object_of(parsed(said.body))
    try:
        allowed, mode = fields["allowed"], fields["mode"]
        conflicts = [_conflict(one) for one in fields["conflicts"]]
    except (TypeError, KeyError, AttributeError):
        raise NoVerdict("the answer is none of CtrlB's") from None
    return Verdict(mode != "enforce" or allowed is not False, conflicts if mode in ("advisory", "enforce") else [])


def _conflict(fields: Mapping[str, Any]) -> Conflict:
    until = fields.get("lease_until")
    until_us = until if isinstance(until, int) and 0 < until < LATEST_US else 0
    return Conflict(str(fields["path"]), str(fields["key"]), str(fields["held_by"]), until_us)


def _edited(hook: Mapping[str, Any]) -> list[str]:
    tool_name, tool_input, cwd = hook.get("tool_name"), hook.get("tool_input"), hook.get("cwd")
    if not isinstance(tool_name, str) or not isinstance(tool_input, dict):
        return []
    return edits.edited_paths(tool_name, tool_input, cwd if isinstance(cwd, str) else "")
