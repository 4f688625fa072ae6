"""The contract's "Check paths before an edit", in the default mode."""

import httpx2
import pytest

from tests.acceptance.calls import RUNS, check, claim, events, kinds, refusal, release

FREE = {"mode": "advisory", "allowed": True, "conflicts": []}


@pytest.mark.promise("check-answer", "enforce-advisory", "check-allowed")
def test_a_path_that_another_agent_holds_is_a_conflict_and_may_be_edited_all_the_same(
    http: httpx2.Client, run_id: str
) -> None:
    held = claim(http, run_id, "agent-a")
    assert check(http, run_id, "agent-b", "src/app.py", cwd="/work/app") == {
        "mode": "advisory",
        "allowed": True,
        "conflicts": [
            {
                "path": "src/app.py",
                "key": "path:src/app.py",
                "held_by": "agent-a",
                "lease_until": held["lease_until"],
            }
        ],
    }


@pytest.mark.promise("check-own-path")
def test_a_path_that_the_agent_holds_itself_is_no_conflict(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a")
    assert check(http, run_id, "agent-a", "src/app.py") == FREE


@pytest.mark.promise("check-answer")
def test_a_path_that_nobody_holds_is_no_conflict(http: httpx2.Client, run_id: str) -> None:
    assert check(http, run_id, "agent-a", "src/app.py") == FREE
    claim(http, run_id, "agent-b", "src/other.py")
    claim(http, run_id, "agent-b", "src/done.py")
    claim(http, run_id, "agent-b", "src/back.py")
    release(http, run_id, "agent-b", "src/done.py")
    release(http, run_id, "agent-b", "src/back.py", finished=False)
    assert check(http, run_id, "agent-a", "src/app.py", "src/done.py", "src/back.py") == FREE
    assert check(http, f"{run_id}-other", "agent-a", "src/other.py") == FREE


@pytest.mark.promise("check-answer", "resource-paths")
def test_paths_are_keyed_as_claims_are_and_echoed_as_they_were_sent(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a", "src/app.py")
    claim(http, run_id, "agent-b", "src/b.py")
    paths = ["/work/app/src/app.py", "src/free.py", "./src//b.py"]
    answer = check(http, run_id, "agent-c", *paths, cwd="/work/app")
    assert [(found["path"], found["key"], found["held_by"]) for found in answer["conflicts"]] == [
        ("/work/app/src/app.py", "path:src/app.py", "agent-a"),
        ("./src//b.py", "path:src/b.py", "agent-b"),
    ]


@pytest.mark.promise("check-answer", "resource-explicit-path")
@pytest.mark.parametrize(("resource", "key"), [("Makefile", "name:makefile"), ("path:Makefile", "path:Makefile")])
def test_a_file_without_an_extension_is_found_under_either_key(
    http: httpx2.Client, run_id: str, resource: str, key: str
) -> None:
    claim(http, run_id, "agent-a", resource)
    answer = check(http, run_id, "agent-b", "/work/app/Makefile", "Makefile", cwd="/work/app")
    assert ("Makefile", key) in [(found["path"], found["key"]) for found in answer["conflicts"]]


@pytest.mark.promise("peers-kinds")
def test_a_check_that_found_a_conflict_is_in_the_record_and_one_that_did_not_is_not(
    http: httpx2.Client, run_id: str
) -> None:
    claim(http, run_id, "agent-a")
    check(http, run_id, "agent-b", "src/free.py")
    check(http, run_id, "agent-b", "src/app.py")
    assert kinds(http, run_id) == ["HOLD", "CHECK"]
    assert [event["agent"] for event in events(http, run_id)] == ["agent-b", "agent-a"]


@pytest.mark.promise("check-path-limit")
def test_64_paths_are_checked_and_65_are_refused(http: httpx2.Client, run_id: str) -> None:
    claim(http, run_id, "agent-a", "src/63.py")
    paths = [f"src/{number}.py" for number in range(65)]
    answer = check(http, run_id, "agent-b", *paths[:64])
    assert [found["path"] for found in answer["conflicts"]] == ["src/63.py"]
    response = http.post(f"{RUNS}/{run_id}/check", json={"agent": "agent-b", "paths": paths})
    assert refusal(response, 400).startswith("paths")
    assert kinds(http, run_id) == ["HOLD", "CHECK"]


def test_a_check_of_no_paths_finds_no_conflict(http: httpx2.Client, run_id: str) -> None:
    assert check(http, run_id, "agent-a") == FREE
