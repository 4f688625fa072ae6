"""The contract's "Settings": a signed-in person changes them, and they take effect at once."""

import httpx2
import pytest

from tests.acceptance.calls import (
    RUNS,
    SESSIONS,
    Json,
    answered,
    check,
    claim,
    events,
    eventually,
    kinds,
    refusal,
    row,
)
from tests.laptop_mode.conftest import DEFAULTS

PATH = "/ai/relay/settings"
LIMITS = {"leaseSeconds": (60, 86_400), "waitMs": (1, 1_000), "silentAfterSeconds": (10, 86_400)}


@pytest.mark.promise("settings-by-person")
def test_a_person_changes_one_setting_and_the_others_stay(http: httpx2.Client, person: httpx2.Client) -> None:
    assert answered(person.put(PATH, json={"leaseSeconds": 900})) == {**DEFAULTS, "leaseSeconds": 900}
    changed = {**DEFAULTS, "leaseSeconds": 900, "enforce": "off", "writeTools": False}
    assert answered(person.put(PATH, json={"enforce": "off", "writeTools": False})) == changed
    assert answered(person.put(PATH, json={})) == changed
    assert answered(person.get(PATH)) == changed
    assert answered(http.get(PATH)) == changed


@pytest.mark.promise("settings-ranges")
@pytest.mark.parametrize("name", LIMITS)
def test_a_number_is_changed_up_to_its_limits_and_not_past_them(person: httpx2.Client, name: str) -> None:
    least, most = LIMITS[name]
    for value in (least, most):
        assert answered(person.put(PATH, json={name: value}))[name] == value
    wrong: list[object] = [least - 1, most + 1, -1, str(least), least + 0.5, True, [], 2**64]
    for bad in wrong:
        assert refusal(person.put(PATH, json={name: bad, "enforce": "off"}), 400).startswith(name)
    assert answered(person.get(PATH)) == {**DEFAULTS, name: most}


@pytest.mark.promise("settings-ranges")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enforce", "maybe"),
        ("enforce", ""),
        ("enforce", False),
        ("sessionsDataset", "a/b"),
        ("sessionsDataset", ""),
        ("sessionsDataset", "_ctrlb_relay_agent_sessions"),
        ("sessionsDataset", 5),
        ("writeTools", "yes"),
        ("writeTools", 1),
    ],
)
def test_a_wrong_value_changes_nothing(person: httpx2.Client, name: str, value: object) -> None:
    assert refusal(person.put(PATH, json={"leaseSeconds": 900, name: value}), 400).startswith(name)
    assert answered(person.get(PATH)) == DEFAULTS


@pytest.mark.promise("enforce-off", "check-answer")
def test_in_mode_off_every_edit_is_let_through(http: httpx2.Client, person: httpx2.Client) -> None:
    claim(http, "run-off", "agent-a")
    person.put(PATH, json={"enforce": "off"})
    assert check(http, "run-off", "agent-b", "src/app.py") == {"mode": "off", "allowed": True, "conflicts": []}
    assert kinds(http, "run-off") == ["HOLD"]


@pytest.mark.promise("enforce-enforce", "check-allowed")
def test_in_mode_enforce_an_edit_with_a_conflict_is_refused(http: httpx2.Client, person: httpx2.Client) -> None:
    held = claim(http, "run-enforce", "agent-a")
    person.put(PATH, json={"enforce": "enforce"})
    conflict = {
        "path": "src/app.py",
        "key": "path:src/app.py",
        "held_by": "agent-a",
        "lease_until": held["lease_until"],
    }
    assert check(http, "run-enforce", "agent-b", "src/free.py", "src/app.py") == {
        "mode": "enforce",
        "allowed": False,
        "conflicts": [conflict],
    }
    free = {"mode": "enforce", "allowed": True, "conflicts": []}
    assert check(http, "run-enforce", "agent-a", "src/app.py") == free
    assert check(http, "run-enforce", "agent-b", "src/free.py") == free


@pytest.mark.promise("settings-lease")
def test_a_new_lease_counts_for_later_claims_only(http: httpx2.Client, person: httpx2.Client) -> None:
    before = claim(http, "run-lease", "agent-a")
    person.put(PATH, json={"leaseSeconds": 86_400})
    after = claim(http, "run-lease", "agent-b", "src/b.py")
    newest, oldest = events(http, "run-lease")
    assert (before["lease_until"] - oldest["ts"], after["lease_until"] - newest["ts"]) == (600_000_000, 86_400_000_000)
    person.put(PATH, json={"leaseSeconds": 60})
    assert claim(http, "run-lease", "agent-b", "src/b.py")["lease_until"] == after["lease_until"]  # never back


@pytest.mark.promise("settings-sessions-dataset", "writes-to-sessions-dataset-only", "reads-may-name-a-dataset")
def test_rows_go_to_the_dataset_of_the_settings(http: httpx2.Client, person: httpx2.Client) -> None:
    claim(http, "run-moved", "agent-a")
    answered(http.post(f"{SESSIONS}/records", json=[row("before", 0)]), 202)
    person.put(PATH, json={"sessionsDataset": "team_sessions"})
    refusal(http.post(f"{SESSIONS}/records", json=[row("after", 0)]), 400)
    answered(http.post("/ai/sessions/team_sessions/records", json=[row("after", 0)]), 202)
    moved = "/ai/relay/team_sessions/runs/run-moved"
    assert answered(http.post(f"{moved}/claims", json={"agent": "agent-b", "resource": "src/app.py"}))["held"]
    assert [event["agent"] for event in events(http, "run-moved")] == ["agent-a"]
    assert [event["agent"] for event in answered(http.get(f"{moved}/peers"))["events"]] == ["agent-b"]
    params = {"seq_from": 0, "seq_to": 9}
    answered(http.get(f"{SESSIONS}/before/records", params=params))
    refusal(http.get(f"{SESSIONS}/after/records", params=params), 404)


@pytest.mark.promise("settings-silent-after", "run-silent-agent")
def test_how_long_an_agent_may_be_silent_is_a_setting(http: httpx2.Client, person: httpx2.Client) -> None:
    five_minutes_ago_us = claim(http, "run-silent", "agent-a")["lease_until"] - 600_000_000 - 300_000_000
    sent = row("silent", 0, run_id="run-silent", agent="agent-b", _timestamp=five_minutes_ago_us)
    answered(http.post(f"{SESSIONS}/records", json=[sent]), 202)

    def detectors(expected: list[str]) -> Json:
        run = answered(http.get(f"{RUNS}/run-silent"))
        assert [finding["detector"] for finding in run["detectors"]] == expected
        return run

    eventually(lambda: detectors(["silent_agent"]))
    person.put(PATH, json={"silentAfterSeconds": 400})
    assert [agent["silent"] for agent in detectors([])["agents"]] == [False, False]
