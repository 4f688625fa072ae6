"""The contract's "Post a note" and "peers"."""

import httpx2
import pytest

from tests.acceptance.calls import RUNS, answered, check, claim, events, kinds, post, refusal, release


@pytest.mark.promise("post-created", "peers-newest-first")
def test_a_note_is_read_by_everybody_in_the_run(http: httpx2.Client, run_id: str) -> None:
    post(http, run_id, "agent-a", "Taking the parser tests in src/parser")
    answer = answered(http.get(f"{RUNS}/{run_id}/peers", params={"agent": "agent-b"}))
    assert set(answer) == {"you", "events"}
    assert answer["you"] == "agent-b"
    (event,) = answer["events"]
    assert event.pop("ts") > 1_700_000_000_000_000
    assert 0 <= event.pop("age_s") < 60
    assert event == {
        "agent": "agent-a",
        "kind": "NOTE",
        "resource": "",
        "key": "",
        "text": "Taking the parser tests in src/parser",
    }


@pytest.mark.promise("peers-newest-first", "peers-limit")
def test_the_newest_event_comes_first_forty_of_them_by_default(http: httpx2.Client, run_id: str) -> None:
    for number in range(45):
        post(http, run_id, "agent-a", f"note {number}")
    newest_first = [f"note {number}" for number in range(44, -1, -1)]
    for params, count in (({}, 40), ({"limit": 3}, 3), ({"limit": 500}, 45)):
        answer = answered(http.get(f"{RUNS}/{run_id}/peers", params=params))
        assert [event["text"] for event in answer["events"]] == newest_first[:count]


@pytest.mark.promise("peers-limit", "error-400")
@pytest.mark.parametrize("limit", ["0", "501", "-1", "many", "1.5", ""])
def test_a_limit_that_is_no_number_from_1_to_500_is_refused(http: httpx2.Client, run_id: str, limit: str) -> None:
    assert refusal(http.get(f"{RUNS}/{run_id}/peers", params={"limit": limit}), 400).startswith("limit")


@pytest.mark.promise("peers-you")
def test_the_agent_of_a_read_only_fills_in_you(http: httpx2.Client, run_id: str) -> None:
    post(http, run_id, "agent-a", "hello")
    named = answered(http.get(f"{RUNS}/{run_id}/peers", params={"agent": "agent-a"}))
    unnamed = answered(http.get(f"{RUNS}/{run_id}/peers"))
    by_header = answered(http.get(f"{RUNS}/{run_id}/peers", headers={"X-CtrlB-Agent": "agent-b"}))
    assert [answer["you"] for answer in (named, unnamed, by_header)] == ["agent-a", None, "agent-b"]
    assert [len(answer["events"]) for answer in (named, unnamed, by_header)] == [1, 1, 1]


@pytest.mark.promise("peers-text-cut")
def test_a_long_note_is_kept_and_its_event_shows_300_characters(http: httpx2.Client, run_id: str) -> None:
    post(http, run_id, "agent-a", "漢" * 5_000)
    assert [event["text"] for event in events(http, run_id)] == ["漢" * 300]


@pytest.mark.promise("peers-kinds", "claim-record-only-grows")
def test_every_step_of_a_run_is_an_event_and_none_goes_away(http: httpx2.Client, run_id: str) -> None:
    post(http, run_id, "agent-a", "hello")
    claim(http, run_id, "agent-a")
    claim(http, run_id, "agent-b")
    check(http, run_id, "agent-b", "src/app.py")
    release(http, run_id, "agent-a", finished=False)
    claim(http, run_id, "agent-b")
    release(http, run_id, "agent-b")
    steps = [(event["kind"], event["agent"], event["key"]) for event in reversed(events(http, run_id))]
    assert steps == [
        ("NOTE", "agent-a", ""),
        ("HOLD", "agent-a", "path:src/app.py"),
        ("REFUSED", "agent-b", "path:src/app.py"),
        ("CHECK", "agent-b", "path:src/app.py"),
        ("RELEASE", "agent-a", "path:src/app.py"),
        ("HOLD", "agent-b", "path:src/app.py"),
        ("DONE", "agent-b", "path:src/app.py"),
    ]
    assert {event["resource"] for event in events(http, run_id)} == {"", "src/app.py"}


@pytest.mark.promise("run-is-a-shared-id")
def test_runs_with_other_ids_are_apart(http: httpx2.Client, run_id: str) -> None:
    post(http, run_id, "agent-a", "in the first")
    post(http, f"{run_id}-2", "agent-a", "in the second")
    assert [event["text"] for event in events(http, run_id)] == ["in the first"]
    assert claim(http, run_id, "agent-a")["held"]
    assert claim(http, f"{run_id}-2", "agent-b")["held"]


def test_a_run_that_nobody_wrote_to_has_no_events(http: httpx2.Client, run_id: str) -> None:
    assert answered(http.get(f"{RUNS}/{run_id}/peers")) == {"you": None, "events": []}


@pytest.mark.promise("post-created", "error-400")
@pytest.mark.parametrize("text", [None, "", 5, ["hello"]])
def test_a_note_without_a_text_is_refused(http: httpx2.Client, run_id: str, text: object) -> None:
    response = http.post(f"{RUNS}/{run_id}/posts", json={"agent": "agent-a", "text": text})
    assert refusal(response, 400).startswith("text")
    assert kinds(http, run_id) == []
