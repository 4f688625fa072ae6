"""The contract's "Claim a resource" and "How a claim is decided", one call after the other."""

import httpx2
import pytest

from tests.acceptance.calls import RUNS, answered, claim, events, kinds, refusal, release

LEASE_US = 600_000_000


@pytest.mark.promise("claim-held", "claim-always-200", "claim-lease-default", "times-are-microseconds")
def test_a_free_resource_is_yours_for_ten_minutes(http: httpx2.Client, run_id: str) -> None:
    answer = claim(http, run_id, "agent-a", "src/app.py", cwd="/work/app")
    (hold,) = events(http, run_id)
    assert answer == {
        "held": True,
        "resource": "src/app.py",
        "key": "path:src/app.py",
        "lease_until": hold["ts"] + LEASE_US,
    }


@pytest.mark.promise("claim-refused", "claim-always-200")
def test_what_another_agent_holds_is_refused_and_the_holder_named(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-b")
    assert claim(http, run_id, "agent-a") == {
        "held": False,
        "resource": "src/app.py",
        "key": "path:src/app.py",
        "held_by": "agent-b",
        "message": "src/app.py is already held by agent-b; pick something else",
    }


@pytest.mark.promise("claim-finished", "release-done")
def test_what_is_done_is_refused_to_everybody_and_the_finisher_named(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-b")
    release(http, run_id, "agent-b")
    for agent in ("agent-a", "agent-b"):
        assert claim(http, run_id, agent, "./src//app.py") == {
            "held": False,
            "resource": "./src//app.py",
            "key": "path:src/app.py",
            "finished_by": "agent-b",
            "message": "./src//app.py was already finished by agent-b; pick something else",
        }


@pytest.mark.promise("claim-renews")
def test_claiming_again_renews_the_lease(http: httpx2.Client, run_id: str) -> None:
    first = claim(http, run_id, "agent-a")
    again = claim(http, run_id, "agent-a")
    assert again["lease_until"] > first["lease_until"]
    assert again == {
        "held": True,
        "resource": "src/app.py",
        "key": "path:src/app.py",
        "lease_until": again["lease_until"],
        "renewed": True,
    }


@pytest.mark.promise("claim-record-only-grows", "claim-refused")
def test_a_refused_claim_takes_nothing_from_its_holder(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    for _ in range(3):
        assert claim(http, run_id, "agent-b")["held_by"] == "agent-a"
    assert claim(http, run_id, "agent-a")["renewed"]
    assert kinds(http, run_id) == ["HOLD", "REFUSED", "REFUSED", "REFUSED", "HOLD"]


@pytest.mark.promise("resource-paths")
@pytest.mark.parametrize(
    ("resource", "cwd", "key"),
    [
        ("src/app.py", "", "path:src/app.py"),
        ("./src//app.py", "", "path:src/app.py"),
        ("/work/app/src/app.py", "/work/app", "path:src/app.py"),
        ("/work/app/src/app.py", "/work/app/", "path:src/app.py"),
        ("src/./x/../app.py", "", "path:src/app.py"),
        ("path:src/app.py", "", "path:src/app.py"),
        ("App.PY", "", "path:App.PY"),
        ("app.py", "/work/app", "path:app.py"),
        ("/elsewhere/app.py", "/work/app", "path:/elsewhere/app.py"),
        ("/work/application/app.py", "/work/app", "path:/work/application/app.py"),
        ("docs/", "", "path:docs"),
    ],
)
def test_every_spelling_of_a_path_has_one_key(
    http: httpx2.Client, run_id: str, resource: str, cwd: str, key: str
) -> None:
    answer = claim(http, run_id, "agent-a", resource, cwd=cwd)
    assert (answer["held"], answer["resource"], answer["key"]) == (True, resource, key)
    assert claim(http, run_id, "agent-b", key)["held_by"] == "agent-a"


@pytest.mark.promise("resource-names", "resource-explicit-path")
@pytest.mark.parametrize(
    ("resource", "key"),
    [
        ("Task 04 Charts", "name:task 04 charts"),
        ("  task   04\tcharts ", "name:task 04 charts"),
        ("task:migrate-auth", "name:task:migrate-auth"),
        ("Makefile", "name:makefile"),
        ("path:Makefile", "path:Makefile"),
        ("name:Task 04 Charts", "name:task 04 charts"),
    ],
)
def test_every_spelling_of_a_task_has_one_key(http: httpx2.Client, run_id: str, resource: str, key: str) -> None:
    answer = claim(http, run_id, "agent-a", resource)
    assert (answer["held"], answer["key"]) == (True, key)
    assert claim(http, run_id, "agent-b", key)["held_by"] == "agent-a"


@pytest.mark.promise("claim-held")
def test_agents_hold_different_resources_side_by_side(http: httpx2.Client, run_id: str) -> None:
    for number in range(5):
        assert claim(http, run_id, f"agent-{number}", f"src/{number}.py")["held"]
    assert claim(http, run_id, "agent-0", "src/4.py")["held_by"] == "agent-4"


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("field", ["agent", "resource"])
def test_a_claim_without_a_required_field_is_refused(http: httpx2.Client, run_id: str, field: str) -> None:
    body = {"agent": "agent-a", "resource": "src/app.py"}
    del body[field]
    assert refusal(http.post(f"{RUNS}/{run_id}/claims", json=body), 400).startswith(f"{field} is required")
    assert kinds(http, run_id) == []


@pytest.mark.promise("writes-to-sessions-dataset-only")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/ai/sessions/another/records", [{"session_id": "s", "seq": 1}]),
        ("POST", "/ai/relay/another/runs/{run}/posts", {"agent": "a", "text": "t"}),
        ("POST", "/ai/relay/another/runs/{run}/claims", {"agent": "a", "resource": "r"}),
        ("DELETE", "/ai/relay/another/runs/{run}/claims", {"agent": "a", "resource": "r"}),
        ("POST", "/ai/relay/another/runs/{run}/check", {"agent": "a", "paths": ["r"]}),
    ],
    ids=["records", "posts", "claims", "release", "check"],
)
def test_a_write_to_another_dataset_is_refused(
    http: httpx2.Client, run_id: str, method: str, path: str, body: object
) -> None:
    response = http.request(method, path.replace("{run}", run_id), json=body)
    assert "agent_sessions" in refusal(response, 400)
    assert answered(http.get(f"/ai/relay/another/runs/{run_id}/peers"))["events"] == []
