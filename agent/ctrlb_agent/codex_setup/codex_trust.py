"""Codex runs a hook only after its user has trusted it, and says nothing of those that it leaves out.

`/hooks` in Codex is where a person does that. Its app-server takes the same: a hash of the hook, under the hook's key.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ctrlb_agent.codex_setup import codex_program
from ctrlb_agent.codex_setup.codex_config import installed
from ctrlb_agent.codex_setup.codex_program import AppServer, CodexFailed
from ctrlb_agent.json_values import list_of

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNS = ("trusted", "managed")


def untrusted(codex_home: str) -> list[str] | None:
    """The events whose hooks of ours Codex does not run: untrusted, changed since, switched off, or not seen.

    None when Codex cannot be asked. Takes no longer than codex_program.DEADLINE_S.
    """
    program = codex_program.found()
    if program is None:
        return None
    try:
        with AppServer(program, os.path.abspath(codex_home)) as server:
            return _not_run(server, codex_home)
    except CodexFailed:
        return None


def trust(codex_home: str) -> list[str]:
    """Trust our hooks, and no other, in the user's name. Returns the events whose hooks do not run all the same.

    Raises CodexFailed.
    """
    program = codex_program.found()
    if program is None:
        raise CodexFailed("codex is not on PATH")
    with AppServer(program, os.path.abspath(codex_home)) as server:
        hashes = {
            hook["key"]: {"trusted_hash": hook["currentHash"]}
            for hook in _ours(server, codex_home).values()
            if hook.get("trustStatus") not in RUNS
        }
        if hashes:
            edit = {"keyPath": "hooks.state", "value": hashes, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        return _not_run(server, codex_home)


def _not_run(server: AppServer, codex_home: str) -> list[str]:
    listed = _ours(server, codex_home)
    return [event for event in _commands(codex_home) if not _runs(listed.get(event, {}))]


def _runs(hook: Mapping[str, Any]) -> bool:
    return hook.get("trustStatus") in RUNS and hook.get("enabled") is True


def _commands(codex_home: str) -> dict[str, str]:
    ours = installed(codex_home)
    return ours.commands if ours else {}


def _ours(server: AppServer, codex_home: str) -> dict[str, dict[str, Any]]:
    """What Codex lists of our hooks, by event. One with another command, or of another file, is not ours."""
    folder = os.path.realpath(codex_home)
    events = {command: event for event, command in _commands(codex_home).items()}
    listed = server.call("hooks/list", {"cwds": [folder]}).get("data")
    return {
        events[hook["command"]]: hook
        for entry in list_of(listed)
        for hook in entry.get("hooks", ())
        if hook.get("command") in events and os.path.realpath(os.path.dirname(hook["sourcePath"])) == folder
    }
