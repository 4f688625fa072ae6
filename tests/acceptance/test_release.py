"""The contract's "Release a resource"."""

import httpx2
import pytest

from tests.acceptance.calls import RUNS, Json, answered, claim, kinds, refusal, release


@pytest.mark.promise("release-answer", "release-done")
def test_a_release_marks_the_resource_done_unless_told_otherwise(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    assert release(http, run_id, "agent-a") == {
        "released": 1,
        "finished": True,
        "resource": "src/app.py",
        "key": "path:src/app.py",
    }
    assert claim(http, run_id, "agent-b")["finished_by"] == "agent-a"
    assert kinds(http, run_id) == ["HOLD", "DONE", "REFUSED"]


@pytest.mark.promise("release-hand-back", "release-answer")
def test_a_resource_that_was_handed_back_is_free_for_another(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    assert release(http, run_id, "agent-a", finished=False) == {
        "released": 1,
        "finished": False,
        "resource": "src/app.py",
        "key": "path:src/app.py",
    }
    answer = claim(http, run_id, "agent-b")
    assert answer["held"]
    assert "renewed" not in answer
    assert kinds(http, run_id) == ["HOLD", "RELEASE", "HOLD"]


@pytest.mark.promise("release-none-held")
def test_a_release_of_what_nobody_holds_writes_nothing(http: httpx2.Client, run_id: str) -> None:
    assert release(http, run_id, "agent-a") == {
        "released": 0,
        "finished": True,
        "resource": "src/app.py",
        "key": "path:src/app.py",
    }
    assert kinds(http, run_id) == []
    assert claim(http, run_id, "agent-b")["held"]


@pytest.mark.promise("release-none-held")
def test_a_release_of_what_another_holds_leaves_it_with_them(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    assert release(http, run_id, "agent-b")["released"] == 0
    assert release(http, run_id, "agent-b", finished=False)["released"] == 0
    assert claim(http, run_id, "agent-b")["held_by"] == "agent-a"
    assert kinds(http, run_id) == ["HOLD", "REFUSED"]


@pytest.mark.promise("release-none-held")
def test_a_second_release_releases_nothing_and_what_is_done_stays_done(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    release(http, run_id, "agent-a")
    assert release(http, run_id, "agent-a", finished=False)["released"] == 0
    assert claim(http, run_id, "agent-a")["finished_by"] == "agent-a"


def test_one_release_ends_a_hold_however_often_it_was_renewed(http: httpx2.Client, run_id: str) -> None:
    for _ in range(3):
        claim(http, run_id, "agent-a")
    assert release(http, run_id, "agent-a", finished=False)["released"] == 1
    assert claim(http, run_id, "agent-b")["held"]


@pytest.mark.promise("release-by-query")
@pytest.mark.parametrize(("finished", "next_claim"), [("true", "finished_by"), ("false", "lease_until")])
def test_the_fields_of_a_release_may_come_in_the_query(
    http: httpx2.Client, run_id: str, finished: str, next_claim: str
) -> None:
    claim(http, run_id, "agent-a", "/work/app/a b+c%.py", cwd="/work/app")
    params = {"agent": "agent-a", "resource": "/work/app/a b+c%.py", "cwd": "/work/app", "finished": finished}
    assert answered(http.delete(f"{RUNS}/{run_id}/claims", params=params)) == {
        "released": 1,
        "finished": finished == "true",
        "resource": "/work/app/a b+c%.py",
        "key": "path:a b+c%.py",
    }
    assert next_claim in claim(http, run_id, "agent-b", "a b+c%.py")


@pytest.mark.promise("release-by-query", "release-done")
def test_a_release_by_query_is_final_unless_told_otherwise(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    params = {"agent": "agent-a", "resource": "src/app.py"}
    assert answered(http.delete(f"{RUNS}/{run_id}/claims", params=params))["finished"] is True
    assert claim(http, run_id, "agent-b")["finished_by"] == "agent-a"


@pytest.mark.promise("release-by-key", "release-with-cwd")
@pytest.mark.parametrize(
    "fields",
    [
        {"resource": "/work/app/src/app.py", "cwd": "/work/app"},
        {"resource": "src/app.py"},
        {"resource": "path:src/app.py"},
        {"resource": "path:src/app.py", "cwd": "/work/app"},
    ],
    ids=["as it was claimed", "its relative path", "its key", "its key and cwd"],
)
def test_a_claim_of_an_absolute_path_is_released_in_every_way(http: httpx2.Client, run_id: str, fields: Json) -> None:
    claim(http, run_id, "agent-a", "/work/app/src/app.py", cwd="/work/app")
    answer = release(http, run_id, "agent-a", **fields)
    assert answer == {"released": 1, "finished": True, "resource": fields["resource"], "key": "path:src/app.py"}


@pytest.mark.promise("release-by-key")
def test_a_name_is_released_by_its_key(http: httpx2.Client, run_id: str) -> None:
    key = claim(http, run_id, "agent-a", "Task 04 Charts")["key"]
    assert release(http, run_id, "agent-a", key)["released"] == 1


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("field", ["agent", "resource"])
def test_a_release_without_a_required_field_is_refused(http: httpx2.Client, run_id: str, field: str) -> None:
    claim(http, run_id, "agent-a")
    fields = {"agent": "agent-a", "resource": "src/app.py"}
    del fields[field]
    path = f"{RUNS}/{run_id}/claims"
    assert refusal(http.delete(path, params=fields), 400).startswith(f"{field} is required")
    assert refusal(http.request("DELETE", path, json=fields), 400).startswith(f"{field} is required")
    assert kinds(http, run_id) == ["HOLD"]
