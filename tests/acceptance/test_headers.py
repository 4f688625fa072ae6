"""The contract's "Run and agent from headers"."""

import httpx2
import pytest

from tests.acceptance.calls import RUNS, answered, claim, events, kinds, post, refusal

BODIES = {"posts": {"text": "hello"}, "claims": {"resource": "src/app.py"}, "check": {"paths": ["src/app.py"]}}


@pytest.mark.promise("header-agent")
def test_the_agent_may_come_in_a_header_to_every_call(http: httpx2.Client, run_id: str) -> None:
    headers = {"X-CtrlB-Agent": "agent-h"}
    for route, body in BODIES.items():
        response = http.post(f"{RUNS}/{run_id}/{route}", json=body, headers=headers)
        assert response.is_success, response.text
    released = answered(
        http.request("DELETE", f"{RUNS}/{run_id}/claims", json={"resource": "src/app.py"}, headers=headers)
    )
    assert released["released"] == 1
    answered(http.delete(f"{RUNS}/{run_id}/claims", params={"resource": "src/app.py"}, headers=headers))
    assert {event["agent"] for event in events(http, run_id)} == {"agent-h"}
    assert kinds(http, run_id) == ["NOTE", "HOLD", "DONE"]


@pytest.mark.promise("header-agent")
def test_the_agent_of_the_body_goes_before_the_header(http: httpx2.Client, run_id: str) -> None:
    body = {"agent": "agent-b", "text": "hello"}
    answered(http.post(f"{RUNS}/{run_id}/posts", json=body, headers={"X-CtrlB-Agent": "agent-h"}), 201)
    assert [event["agent"] for event in events(http, run_id)] == ["agent-b"]


@pytest.mark.promise("header-agent")
@pytest.mark.parametrize("agent", ["", None])
def test_an_agent_that_is_empty_in_the_body_is_taken_from_the_header(
    http: httpx2.Client, run_id: str, agent: object
) -> None:
    body = {"agent": agent, "text": "hello"}
    answered(http.post(f"{RUNS}/{run_id}/posts", json=body, headers={"X-CtrlB-Agent": "agent-h"}), 201)
    assert [event["agent"] for event in events(http, run_id)] == ["agent-h"]


@pytest.mark.promise("header-absent")
@pytest.mark.parametrize("value", ["", "${CTRLB_AGENT}", "${CTRLB_AGENT:-}", "${"])
@pytest.mark.parametrize("route", BODIES)
def test_a_header_that_is_empty_or_not_expanded_counts_as_absent(
    http: httpx2.Client, run_id: str, route: str, value: str
) -> None:
    headers = {"X-CtrlB-Agent": value}
    response = http.post(f"{RUNS}/{run_id}/{route}", json=BODIES[route], headers=headers)
    assert refusal(response, 400).startswith("agent is required")
    assert kinds(http, run_id) == []
    assert answered(http.get(f"{RUNS}/{run_id}/peers", headers=headers))["you"] is None


@pytest.mark.promise("header-absent")
def test_a_header_with_a_dollar_sign_elsewhere_is_an_agent(http: httpx2.Client, run_id: str) -> None:
    headers = {"X-CtrlB-Agent": "$agent{1}"}
    answered(http.post(f"{RUNS}/{run_id}/posts", json={"text": "hello"}, headers=headers), 201)
    assert [event["agent"] for event in events(http, run_id)] == ["$agent{1}"]


@pytest.mark.promise("header-run-is-path")
def test_the_run_is_the_one_in_the_path_whatever_a_header_or_a_body_says(http: httpx2.Client, run_id: str) -> None:
    other = f"{run_id}-other"
    body = {"agent": "agent-a", "text": "hello", "run_id": other, "dataset": "another"}
    answered(http.post(f"{RUNS}/{run_id}/posts", json=body, headers={"X-CtrlB-Run": other}), 201)
    answered(http.delete(f"{RUNS}/{run_id}/claims", params={"agent": "agent-a", "resource": "x", "run_id": other}))
    assert (kinds(http, run_id), kinds(http, other)) == (["NOTE"], [])


@pytest.mark.promise("header-agent", "claim-refused")
def test_an_agent_is_the_same_whether_its_name_came_in_a_body_or_a_header(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    path, headers = f"{RUNS}/{run_id}/claims", {"X-CtrlB-Agent": "agent-a"}
    assert answered(http.post(path, json={"resource": "src/app.py"}, headers=headers))["renewed"]
    post(http, run_id, "agent-b", "I am another")
    assert claim(http, run_id, "agent-b")["held_by"] == "agent-a"


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("value", ["a/b", "a\\b", "x" * 201])
def test_a_header_that_is_no_agent_id_is_refused(http: httpx2.Client, run_id: str, value: str) -> None:
    headers = {"X-CtrlB-Agent": value}
    response = http.post(f"{RUNS}/{run_id}/posts", json={"text": "hello"}, headers=headers)
    assert refusal(response, 400).startswith("agent: ")
    assert kinds(http, run_id) == []
