"""The server's routes that the agents' side uses, each as the request to send."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctrlb_agent.connection import Answer, Connection

MAX_CHECKED_PATHS = 64  # contract, "Check paths before an edit"
MAX_PATH_CHARS = 4_096


class Call(NamedTuple):
    """One request: its method, its path with the query, and what goes into its body."""

    method: str
    path: str
    body: dict[str, Any] | None = None

    def send(self, server: Connection, deadline_s: float) -> Answer:
        """Send it and wait for the answer at most `deadline_s` seconds. Raises Unreachable."""
        body = None if self.body is None else json.dumps(self.body).encode()
        return server.request(self.method, self.path, body, deadline_s=deadline_s)


def claim(dataset: str, run: str, agent: str, resource: str, cwd: str) -> Call:
    """Take a resource, or learn who has it."""
    return Call("POST", f"{_run(dataset, run)}/claims", {"agent": agent, "resource": resource, **_seen_from(cwd)})


def release(dataset: str, run: str, agent: str, resource: str, cwd: str, finished: bool) -> Call:
    """Give a claim back: done for good, or for another agent to claim."""
    body = {"agent": agent, "resource": resource, **_seen_from(cwd), "finished": finished}
    return Call("DELETE", f"{_run(dataset, run)}/claims", body)


def check(dataset: str, run: str, agent: str, paths: list[str], cwd: str) -> Call:
    """Ask whether another agent holds one of at most MAX_CHECKED_PATHS files."""
    return Call("POST", f"{_run(dataset, run)}/check", {"agent": agent, "paths": paths, **_seen_from(cwd)})


def post(dataset: str, run: str, agent: str, text: str) -> Call:
    """Leave a note to the other agents of the run."""
    return Call("POST", f"{_run(dataset, run)}/posts", {"agent": agent, "text": text})


def peers(dataset: str, run: str, agent: str, limit: int) -> Call:
    """What the agents of the run have posted, claimed and released, newest first."""
    return Call("GET", f"{_run(dataset, run)}/peers?{_query({'agent': agent, 'limit': limit})}")


def run(dataset: str, run_id: str) -> Call:
    """One run: its agents, events and resources."""
    return Call("GET", _run(dataset, run_id))


def search(dataset: str, term: str, fields: Mapping[str, Any]) -> Call:
    """Find rows by whole words; `fields` are those of the route that are asked for."""
    return Call("GET", f"/ai/sessions/{_part(dataset)}/search?{_query({'term': term, **fields})}")


def records_path(dataset: str) -> str:
    """Where rows are uploaded, in a body that is not made of one JSON object as the others are."""
    return f"/ai/sessions/{_part(dataset)}/records"


def settings() -> Call:
    """The workspace's Relay settings."""
    return Call("GET", "/ai/relay/settings")


def is_path_for_server(path: str) -> bool:
    """Whether the server takes the path: it refuses a whole request for one that is too long or has odd characters."""
    return len(path) <= MAX_PATH_CHARS and not any(
        char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in path
    )


def _seen_from(cwd: str) -> dict[str, str]:
    """The folder that relative paths are to be seen from, which they do without where the server refuses its name."""
    return {"cwd": cwd} if is_path_for_server(cwd) else {}


def _run(dataset: str, run_id: str) -> str:
    return f"/ai/relay/{_part(dataset)}/runs/{_part(run_id)}"


def _part(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _query(fields: Mapping[str, Any]) -> str:
    shown = {name: _shown(value) for name, value in fields.items() if value not in (None, "")}
    return urlencode(shown, errors="replace")


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
