"""The contract's calls, as short as a test wants to write them."""

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import httpx2

SESSIONS = "/ai/sessions/agent_sessions"
RUNS = "/ai/relay/agent_sessions/runs"
BASE_US = 1_793_000_000_000_000
MAX_SEQ = 2**53 - 1
EVENTUALLY_S = 60.0
POLL_S = 0.1

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")


def eventually(look: Callable[[], T]) -> T:
    """What `look` returns once it raises no AssertionError: search and the list of runs may lag behind a write."""
    give_up_s = time.monotonic() + EVENTUALLY_S
    while True:
        try:
            return look()
        except AssertionError:
            if time.monotonic() > give_up_s:
                raise
        time.sleep(POLL_S)


def fresh_word() -> str:
    """A word that stands nowhere else, so that a search finds the test's own rows and no others."""
    return f"w{uuid.uuid4().hex}"


def row(session_id: str, seq: int, **columns: Any) -> Json:
    """One content block; rows of a session are a second apart."""
    return {"session_id": session_id, "seq": seq, "_timestamp": BASE_US + seq * 1_000_000, **columns}


def upload(http: httpx2.Client, *rows: Json) -> None:
    """Upload the rows and see them accepted."""
    response = http.post(f"{SESSIONS}/records", json=list(rows))
    assert (response.status_code, response.json()) == (202, {"accepted": len(rows)}), response.text


def records(http: httpx2.Client, session_id: str, seq_from: int = 0, seq_to: int = MAX_SEQ) -> list[Json]:
    """The rows of a session."""
    params = {"seq_from": seq_from, "seq_to": seq_to}
    answer = answered(http.get(f"{SESSIONS}/{quote(session_id, safe='')}/records", params=params))
    assert set(answer) == {"session_id", "rows"}
    assert answer["session_id"] == session_id
    rows: list[Json] = answer["rows"]
    return rows


def search(http: httpx2.Client, term: str, **params: Any) -> Json:
    """One page of hits."""
    return answered(http.get(f"{SESSIONS}/search", params={"term": term, **params}))


def claim(http: httpx2.Client, run_id: str, agent: str, resource: str = "src/app.py", **fields: Any) -> Json:
    """What a claim answers."""
    body = {"agent": agent, "resource": resource, **fields}
    return answered(http.post(f"{RUNS}/{run_id}/claims", json=body))


def release(http: httpx2.Client, run_id: str, agent: str, resource: str = "src/app.py", **fields: Any) -> Json:
    """What a release answers."""
    body = {"agent": agent, "resource": resource, **fields}
    return answered(http.request("DELETE", f"{RUNS}/{run_id}/claims", json=body))


def check(http: httpx2.Client, run_id: str, agent: str, *paths: str, **fields: Any) -> Json:
    """What an edit check answers."""
    return answered(http.post(f"{RUNS}/{run_id}/check", json={"agent": agent, "paths": list(paths), **fields}))


def post(http: httpx2.Client, run_id: str, agent: str, text: str) -> None:
    """Post a note and see it kept."""
    response = http.post(f"{RUNS}/{run_id}/posts", json={"agent": agent, "text": text})
    assert (response.status_code, response.json()) == (201, {"ok": True}), response.text


def events(http: httpx2.Client, run_id: str) -> list[Json]:
    """What `peers` lists of the run, newest first."""
    found: list[Json] = answered(http.get(f"{RUNS}/{run_id}/peers", params={"limit": 500}))["events"]
    return found


def kinds(http: httpx2.Client, run_id: str) -> list[str]:
    """The kinds of the run's events, oldest first."""
    return [event["kind"] for event in reversed(events(http, run_id))]


def answered(response: httpx2.Response, status: int = 200) -> Json:
    """The answer of a call that was not refused."""
    assert response.status_code == status, response.text
    answer: Json = response.json()
    return answer


def refusal(response: httpx2.Response, status: int) -> str:
    """The message of a call that was refused with the status, in the one shape of an error."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    message: str = response.json()["error"]
    assert message
    return message
