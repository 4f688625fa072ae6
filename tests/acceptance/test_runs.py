"""The contract's "Runs and settings": the list of runs and the page of one."""

import json
import time

import httpx2
import pytest

from tests.acceptance.calls import (
    RUNS,
    Json,
    answered,
    claim,
    events,
    eventually,
    post,
    refusal,
    release,
    row,
    upload,
)

PAGE = {
    "run_id",
    "status",
    "started",
    "last",
    "agents",
    "agents_total",
    "events",
    "events_total",
    "resources",
    "resources_total",
    "detectors",
}


def listed(http: httpx2.Client, status: str, *run_ids: str) -> list[Json]:
    """Those of the runs that are in the list, in its order, read page by page."""
    found: list[Json] = []
    params: dict[str, str | int] = {"status": status, "limit": 200}
    for _ in range(20):
        answer = answered(http.get(RUNS, params=params))
        assert set(answer) == {"runs", "next_cursor"}
        found += [run for run in answer["runs"] if run["run_id"] in run_ids]
        if len(found) == len(run_ids) or answer["next_cursor"] is None:
            break
        params["cursor"] = answer["next_cursor"]
    return found


def page(http: httpx2.Client, run_id: str) -> Json:
    return answered(http.get(f"{RUNS}/{run_id}"))


def edit(session_id: str, agent: str, run_id: str, seq: int, *paths: str, **columns: object) -> Json:
    sent = {"block_type": "tool_use", "tool_name": "Edit", "run_id": run_id, "agent": agent, **columns}
    return row(session_id, seq, paths=json.dumps(paths), **sent)


@pytest.mark.promise("runs-listed")
def test_runs_are_listed_newest_started_first(http: httpx2.Client, run_id: str) -> None:
    names = [f"{run_id}-{number}" for number in range(3)]
    for name in names:
        post(http, name, "agent-a", "hello")
    claim(http, names[0], "agent-b")
    post(http, names[0], "agent-a", "the first to start, and the last to write")

    def look() -> None:
        found = listed(http, "all", *names)
        assert [run["run_id"] for run in found] == list(reversed(names))
        assert [(run["agents"], run["events"], run["held"]) for run in found] == [(1, 1, 0), (1, 1, 0), (2, 3, 1)]
        for run in found:
            assert set(run) == {"run_id", "status", "started", "last", "agents", "events", "held"}
            assert run["started"] <= run["last"]

    eventually(look)


@pytest.mark.promise("runs-listed")
def test_a_run_that_was_written_to_just_now_is_live_and_an_old_one_is_done(
    http: httpx2.Client, run_id: str, session_id: str
) -> None:
    two_hours_ago_us = time.time_ns() // 1_000 - 7_200_000_000
    post(http, run_id, "agent-a", "hello")
    upload(http, edit(session_id, "agent-a", f"{run_id}-old", 0, "src/app.py", _timestamp=two_hours_ago_us))

    def look() -> None:
        names = (run_id, f"{run_id}-old")
        assert [run["run_id"] for run in listed(http, "live", *names)] == [run_id]
        assert [run["run_id"] for run in listed(http, "done", *names)] == [f"{run_id}-old"]
        assert {run["run_id"]: run["status"] for run in listed(http, "all", *names)} == {
            run_id: "live",
            f"{run_id}-old": "done",
        }

    eventually(look)


@pytest.mark.promise("runs-cursor")
def test_the_cursor_goes_through_all_runs_once(http: httpx2.Client, run_id: str) -> None:
    names = [f"{run_id}-{number}" for number in range(5)]
    for name in names:
        post(http, name, "agent-a", "hello")
    eventually(lambda: _assert_equal([run["run_id"] for run in listed(http, "all", *names)], names[::-1]))
    seen: list[str] = []
    params: dict[str, str | int] = {"status": "all", "limit": 2}
    while len(seen) < 5:
        answer = answered(http.get(RUNS, params=params))
        assert len(answer["runs"]) == 2
        assert answer["next_cursor"]
        seen += [run["run_id"] for run in answer["runs"] if run["run_id"] in names]
        params["cursor"] = answer["next_cursor"]
    assert seen == names[::-1]


@pytest.mark.promise("runs-cursor")
def test_the_last_page_has_no_cursor(http: httpx2.Client) -> None:
    params: dict[str, str | int] = {"status": "all", "limit": 200}
    for _ in range(1_000):
        answer = answered(http.get(RUNS, params=params))
        if answer["next_cursor"] is None:
            break
        params["cursor"] = answer["next_cursor"]
    assert answer["next_cursor"] is None


@pytest.mark.promise("runs-cursor")
def test_a_cursor_still_gives_the_page_after_it_when_runs_have_started_since(http: httpx2.Client, run_id: str) -> None:
    first, second, third = names = [f"{run_id}-{number}" for number in range(3)]
    for name in names[:2]:
        post(http, name, "agent-a", "hello")
    eventually(lambda: _assert_equal([run["run_id"] for run in listed(http, "all", *names)], [second, first]))
    cursor = answered(http.get(RUNS, params={"limit": 1}))["next_cursor"]
    post(http, third, "agent-a", "hello")
    eventually(lambda: _assert_equal([run["run_id"] for run in listed(http, "all", *names)], [third, second, first]))
    for _ in range(2):
        (after,) = answered(http.get(RUNS, params={"limit": 1, "cursor": cursor}))["runs"]
        assert after["run_id"] == first


@pytest.mark.promise("runs-listed", "error-400")
@pytest.mark.parametrize("params", [{"status": "dead"}, {"status": ""}, {"limit": 0}, {"limit": 201}, {"limit": -1}])
def test_a_list_that_is_asked_for_wrongly_is_refused(http: httpx2.Client, params: Json) -> None:
    (field,) = params
    assert refusal(http.get(RUNS, params=params), 400).startswith(field)


@pytest.mark.promise("run-page")
def test_one_run_shows_its_agents_events_resources_and_detectors(
    http: httpx2.Client, run_id: str, session_id: str
) -> None:
    now_us = time.time_ns() // 1_000
    upload(http, edit(session_id, "agent-a", run_id, 1, "src/app.py", _timestamp=now_us))
    claim(http, run_id, "agent-a")
    claim(http, run_id, "agent-b", "docs/done.md")
    release(http, run_id, "agent-b", "docs/done.md")
    claim(http, run_id, "agent-b", "Task 1")
    release(http, run_id, "agent-b", "Task 1", finished=False)

    def look() -> Json:
        run = page(http, run_id)
        assert set(run) == PAGE
        assert (run["run_id"], run["status"], run["events_total"]) == (run_id, "live", 5)
        assert [(agent["agent"], agent["silent"], agent["sessions"]) for agent in run["agents"]] == [
            ("agent-a", False, [session_id]),
            ("agent-b", False, []),
        ]
        assert (run["agents_total"], run["resources_total"]) == (2, 3)
        return run

    run = eventually(look)
    shown = events(http, run_id)
    assert [{**event, "age_s": 0} for event in run["events"]] == [{**event, "age_s": 0} for event in shown]
    states = [(found["resource"], found["key"], found["state"], found["agent"]) for found in run["resources"]]
    assert states == [
        ("Task 1", "name:task 1", "released", "agent-b"),
        ("docs/done.md", "path:docs/done.md", "done", "agent-b"),
        ("src/app.py", "path:src/app.py", "held", "agent-a"),
    ]
    assert [found["lease_until"] is None for found in run["resources"]] == [True, True, False]
    assert run["detectors"] == []


@pytest.mark.promise("run-duplicate-edit")
def test_two_agents_that_edited_one_path_are_found(http: httpx2.Client, run_id: str, session_id: str) -> None:
    one, two = f"{session_id}-1", f"{session_id}-2"
    upload(http, edit(one, "agent-a", run_id, 3, "src/app.py", "src/a.py"))
    upload(http, edit(two, "agent-b", run_id, 4, "/work/app/src/app.py", cwd="/work/app"))

    def look() -> None:
        found = [each for each in page(http, run_id)["detectors"] if each["detector"] == "duplicate_edit"]
        assert len(found) == 1
        finding = found[0]
        assert finding["key"] == "path:src/app.py"
        assert finding["agents"] == ["agent-a", "agent-b"]
        assert "agent-a" in finding["message"]
        assert [(proof["agent"], proof["session_id"], proof["seq"]) for proof in finding["rows"]] == [
            ("agent-a", one, 3),
            ("agent-b", two, 4),
        ]

    eventually(look)


@pytest.mark.promise("run-silent-agent")
def test_an_agent_of_a_live_run_that_stopped_writing_is_found_unless_its_session_ended(
    http: httpx2.Client, run_id: str, session_id: str
) -> None:
    long_ago_us = time.time_ns() // 1_000 - 300_000_000
    for agent, block_type in (("agent-quiet", "text"), ("agent-ended", "result")):
        sent = {"run_id": run_id, "agent": agent, "block_type": block_type, "_timestamp": long_ago_us}
        upload(http, row(f"{session_id}-{agent}", 1, **sent))
    post(http, run_id, "agent-busy", "still here")

    def look() -> None:
        run = page(http, run_id)
        silent = {agent["agent"]: agent["silent"] for agent in run["agents"]}
        assert silent == {"agent-quiet": True, "agent-ended": False, "agent-busy": False}
        assert [(found["detector"], found["agents"]) for found in run["detectors"]] == [
            ("silent_agent", ["agent-quiet"])
        ]

    eventually(look)


def only_finding(http: httpx2.Client, run_id: str, detector: str) -> Json:
    found: list[Json] = [each for each in page(http, run_id)["detectors"] if each["detector"] == detector]
    assert len(found) == 1
    return found[0]


@pytest.mark.promise("run-edit-against-claim", "run-edit-without-claim")
def test_an_agent_that_edited_what_another_held_and_itself_never_claimed_is_found(
    http: httpx2.Client, run_id: str, session_id: str
) -> None:
    claim(http, run_id, "agent-a")
    [held] = events(http, run_id)
    edited_us = held["ts"] + 5_100_000  # what is nearer proves nothing
    upload(http, edit(session_id, "agent-b", run_id, 3, "/work/app/src/app.py", cwd="/work/app", _timestamp=edited_us))

    def look() -> None:
        against = only_finding(http, run_id, "edit_against_claim")
        assert (against["key"], against["agents"]) == ("path:src/app.py", ["agent-b", "agent-a"])
        hold = {"agent": "agent-a", "ts": held["ts"], "session_id": "", "seq": None, "block_idx": None}
        made = {"agent": "agent-b", "ts": edited_us, "session_id": session_id, "seq": 3, "block_idx": 0}
        assert against["rows"] == [hold, made]
        unclaimed = only_finding(http, run_id, "edit_without_claim")
        assert (unclaimed["key"], unclaimed["agents"], unclaimed["rows"]) == ("", ["agent-b"], [made])

    eventually(look)


@pytest.mark.promise("run-contention")
def test_an_agent_that_is_refused_again_and_again_is_found(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    for _ in range(3):
        claim(http, run_id, "agent-b")

    def look() -> None:
        contention = only_finding(http, run_id, "contention")
        assert (contention["key"], contention["agents"]) == ("path:src/app.py", ["agent-b"])
        refused = [event["ts"] for event in events(http, run_id) if event["kind"] == "REFUSED"]
        assert [row["ts"] for row in contention["rows"]] == refused[::-1]

    eventually(look)


@pytest.mark.promise("error-404")
def test_a_run_of_which_you_see_no_row_is_not_found(http: httpx2.Client, run_id: str) -> None:
    assert run_id in refusal(http.get(f"{RUNS}/{run_id}"), 404)


def _assert_equal(found: object, expected: object) -> None:
    assert found == expected
