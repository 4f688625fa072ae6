"""Keys: made, listed and revoked by a person and by the command line, and refused each for its own reason."""

import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ctrlb.__main__ import main
from ctrlb.domain.key_format import written_key
from ctrlb.laptop import ENV_FILE, FIRST_USER, WORKSPACE
from ctrlb.ports import MAX_LIVE_KEYS, Ports
from ctrlb.sign_in import new_code
from ctrlb.wiring import embedded
from tests.acceptance.calls import SESSIONS, answered, records, refusal, row, search, upload
from tests.laptop import PROJECT, Laptop
from tests.laptop_mode.conftest import add_key, add_member, client

DAY_US = 86_400_000_000


def run(laptop: Laptop, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ctrlb", *arguments, "--data", str(laptop.folder)]
    return subprocess.run(command, cwd=PROJECT / "shared", capture_output=True, text=True, timeout=60)


def refused_with(laptop: Laptop, key: str, status: int = 401) -> str:
    """The code that the key is refused with."""
    with client(laptop, key) as http:
        response = http.get("/ai/relay/settings")
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error", "code"}
    assert key not in response.text
    code: str = response.json()["code"]
    return code


@pytest.mark.parametrize(("days", "expected"), [(None, 90), (30, 30), (365, 365), (0, None)])
def test_a_person_makes_a_key_that_works_and_is_listed(
    laptop: Laptop, person: httpx2.Client, days: int | None, expected: int | None
) -> None:
    body = {"name": f"for {days}"} if days is None else {"name": f"for {days}", "expires_days": days}
    made = answered(person.post("/ai/keys", json=body), 201)
    assert set(made) == {"key", "key_id", "name", "expires"}
    assert re.fullmatch(r"ctrlb_local_[A-Za-z0-9]{12}_[A-Za-z0-9]{49}", made["key"])
    with client(laptop, made["key"]) as http:
        answered(http.get("/ai/relay/settings"))
    listing = answered(person.get("/ai/keys"))["keys"]
    (listed,) = [key for key in listing if key["key_id"] == made["key_id"]]
    assert made["key"] not in str(listing)
    assert (listed["name"], listed["user_name"], listed["revoked"]) == (f"for {days}", "admin", None)
    assert listed["last_used"] >= listed["created"]
    assert made["expires"] == listed["expires"]
    assert listed["expires"] == (None if expected is None else listed["created"] + expected * DAY_US)


def test_a_person_with_a_hundred_keys_revokes_one_before_they_make_another(laptop: Laptop, stores: Ports) -> None:
    add_member(stores, "zoe")
    for _ in range(MAX_LIVE_KEYS):
        add_key(stores, "zoe")
    code = new_code(WORKSPACE, "zoe", stores)
    token = answered(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": code}))["token"]
    with client(laptop, token) as zoe:
        refused = refusal(zoe.post("/ai/keys", json={"name": "one more"}), 400)
        assert "you have 100 keys that are neither revoked nor expired" in refused
        first = answered(zoe.get("/ai/keys"))["keys"][0]["key_id"]
        answered(zoe.delete(f"/ai/keys/{first}"))
        answered(zoe.post("/ai/keys", json={"name": "one more"}), 201)
        refusal(zoe.post("/ai/keys", json={"name": "another"}), 400)


@pytest.mark.promise("code-revoked")
def test_a_key_that_a_person_revokes_is_refused_at_once(laptop: Laptop, person: httpx2.Client) -> None:
    made = answered(person.post("/ai/keys", json={"name": "short-lived"}), 201)
    with client(laptop, made["key"]) as http:
        answered(http.get("/ai/relay/settings"))
        first = answered(person.delete(f"/ai/keys/{made['key_id']}"))
        assert refused_with(laptop, made["key"]) == "MCP_KEY_REVOKED"
    assert first["key_id"] == made["key_id"]
    assert answered(person.delete(f"/ai/keys/{made['key_id']}")) == first
    (listed,) = [key for key in answered(person.get("/ai/keys"))["keys"] if key["key_id"] == made["key_id"]]
    assert listed["revoked"] == first["revoked"]


def test_a_key_of_another_person_is_neither_listed_nor_revoked(
    laptop: Laptop, person: httpx2.Client, stores: Ports
) -> None:
    add_member(stores, "bob")
    key = add_key(stores, "bob")
    key_id = key.split("_")[2]
    assert key_id not in str(answered(person.get("/ai/keys")))
    refusal(person.delete(f"/ai/keys/{key_id}"), 404)
    with client(laptop, key) as http:
        answered(http.get("/ai/relay/settings"))


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("name", {}),
        ("name", {"name": ""}),
        ("name", {"name": "x" * 101}),
        ("name", {"name": "a\x00b"}),
        ("name", {"name": 5}),
        ("expires_days", {"name": "k", "expires_days": 31}),
        ("expires_days", {"name": "k", "expires_days": "30"}),
        ("expires_days", {"name": "k", "expires_days": -1}),
    ],
)
def test_a_key_is_not_made_of_wrong_fields(person: httpx2.Client, field: str, body: object) -> None:
    before = answered(person.get("/ai/keys"))
    assert refusal(person.post("/ai/keys", json=body), 400).startswith(field)
    assert answered(person.get("/ai/keys")) == before


def test_the_command_line_makes_lists_and_revokes_keys_beside_the_server(laptop: Laptop) -> None:
    made = run(laptop, "keys", "create", "--name", "for the nightly job", "--expires-days", "30")
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    key_id = key.split("_")[2]
    assert "shown this once" in made.stderr
    with client(laptop, key) as http:
        answered(http.get("/ai/relay/settings"))
    listing = run(laptop, "keys", "list").stdout
    (line,) = [line for line in listing.splitlines() if line.startswith(key_id)]
    assert line.endswith("for the nightly job")
    assert key not in listing
    assert run(laptop, "keys", "revoke", key_id).stdout == f"key {key_id} is refused from now on\n"
    assert refused_with(laptop, key) == "MCP_KEY_REVOKED"
    assert "revoked" in run(laptop, "keys", "list").stdout


def test_the_command_line_says_which_keys_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ENV_FILE).touch()
    with embedded(tmp_path) as stores:
        add_member(stores, FIRST_USER, "Admin")
        now_us = stores.clock.now_us()
        keys = [add_key(stores, FIRST_USER, expires_us=now_us + days * DAY_US) for days in (-1, 1)]
        for active in (False, True):
            add_member(stores, FIRST_USER, "Admin", active=active)
        keys.append(add_key(stores, FIRST_USER, expires_us=now_us + DAY_US))
    assert main(["keys", "list", "--data", str(tmp_path)]) == 0
    states = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert [states[key.split("_")[2]] for key in keys] == ["expired", "stale", "expires"]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["keys", "revoke", "AAAAAAAAAAAA"], 1, "you have no key AAAAAAAAAAAA; `keys list` lists yours"),
        (["serve", "--port", "abc"], 2, "argument --port: a port is a number from 0 to 65535, not abc"),
        (["serve", "--port", "65536"], 2, "argument --port: a port is a number from 0 to 65535, not 65536"),
        (["keys", "create", "--name", "k", "--expires-days", "7"], 2, "--expires-days"),
        (["keys", "create"], 2, "--name"),
        (["keys", "forget"], 2, "forget"),
        (["nonsense"], 2, "nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_command_line_says_what_is_wrong(laptop: Laptop, arguments: list[str], status: int, says: str) -> None:
    done = run(laptop, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.promise("code-expired")
def test_a_key_past_its_expiry_is_refused(laptop: Laptop, stores: Ports) -> None:
    now_us = stores.clock.now_us()
    assert refused_with(laptop, add_key(stores, "admin", expires_us=now_us - 1)) == "MCP_KEY_EXPIRED"
    with client(laptop, add_key(stores, "admin", expires_us=now_us + DAY_US)) as http:
        answered(http.get("/ai/relay/settings"))


@pytest.mark.promise("code-invalid")
def test_a_wrong_secret_is_refused_as_an_unknown_key_is(laptop: Laptop, stores: Ports) -> None:
    key, other = add_key(stores, "admin"), add_key(stores, "admin")
    assert refused_with(laptop, key[:-1] + ("a" if key[-1] != "a" else "b")) == "MCP_INVALID_KEY"
    swapped = "_".join([*key.split("_")[:3], other.split("_")[3]])
    assert refused_with(laptop, swapped) == "MCP_INVALID_KEY"


@pytest.mark.promise("code-invalid")
def test_a_key_of_a_workspace_that_is_not_here_is_refused(laptop: Laptop, stores: Ports) -> None:
    elsewhere = written_key("elsewhere", stores.random.key_id(), stores.random.secret())
    assert refused_with(laptop, elsewhere) == "MCP_INVALID_KEY"


@pytest.mark.promise("code-stale")
def test_a_key_whose_person_is_no_longer_active_is_refused(laptop: Laptop, stores: Ports) -> None:
    add_member(stores, "carol")
    key = add_key(stores, "carol")
    with client(laptop, key) as http:
        answered(http.get("/ai/relay/settings"))
    add_member(stores, "carol", active=False)
    assert refused_with(laptop, key) == "MCP_KEY_STALE"


@pytest.mark.promise("code-forbidden-role")
def test_a_key_whose_role_allows_nothing_is_refused(laptop: Laptop, stores: Ports) -> None:
    add_member(stores, "dave", role="Nobody")
    assert refused_with(laptop, add_key(stores, "dave"), 403) == "MCP_FORBIDDEN_ROLE"


@pytest.mark.promise("key-acts-as-person", "error-403")
def test_a_reader_reads_and_writes_nothing(laptop: Laptop, stores: Ports, http: httpx2.Client) -> None:
    add_member(stores, "erin", role="Reader")
    runs = "/ai/relay/agent_sessions/runs/run-of-erin"
    with client(laptop, add_key(stores, "erin")) as reader:
        for method, path, body in (
            ("POST", f"{SESSIONS}/records", [row("session-of-erin", 0)]),
            ("POST", f"{runs}/posts", {"agent": "a", "text": "t"}),
            ("POST", f"{runs}/claims", {"agent": "a", "resource": "r"}),
            ("DELETE", f"{runs}/claims", {"agent": "a", "resource": "r"}),
            ("POST", f"{runs}/check", {"agent": "a", "paths": ["r"]}),
        ):
            assert "your role does not allow" in refusal(reader.request(method, path, json=body), 403)
        assert answered(reader.get(f"{runs}/peers"))["events"] == []
        assert search(reader, "anything")["total"] == 0
    refusal(http.get(f"{SESSIONS}/session-of-erin/records", params={"seq_from": 0, "seq_to": 1}), 404)


@pytest.mark.promise("http-own-rows", "key-acts-as-person", "upload-fills-user-name", "error-403", "error-404")
def test_a_member_sees_their_own_rows_and_an_admin_all(laptop: Laptop, stores: Ports, http: httpx2.Client) -> None:
    for user in ("frank", "grace"):
        add_member(stores, user)
    runs = "/ai/relay/agent_sessions/runs"
    with client(laptop, add_key(stores, "frank")) as frank, client(laptop, add_key(stores, "grace")) as grace:
        sent = row("of-frank", 0, body="marmalade", block_type="tool_use", command="cook marmalade", run_id="franks")
        upload(frank, {**sent, "user_name": "frank"})
        assert (search(frank, "marmalade")["total"], search(http, "marmalade")["total"]) == (1, 1)
        assert (len(records(frank, "of-frank")), len(records(http, "of-frank"))) == (1, 1)
        assert search(grace, "marmalade")["total"] == 0
        assert answered(grace.get(f"{SESSIONS}/commands", params={"command": "marmalade"}))["total"] == 0
        refusal(grace.get(f"{SESSIONS}/of-frank/records", params={"seq_from": 0, "seq_to": 1}), 404)
        refusal(grace.get(f"{SESSIONS}/of-frank/next", params={"seq": 0}), 404)
        refusal(grace.get(f"{runs}/franks"), 404)
        assert answered(grace.get(runs))["runs"] == []
        assert [found["run_id"] for found in answered(frank.get(runs))["runs"]] == ["franks"]
        assert "belongs to another user" in refusal(grace.post(f"{SESSIONS}/records", json=[row("of-frank", 1)]), 403)
        assert "row 0: user_name" in refusal(
            grace.post(f"{SESSIONS}/records", json=[{**sent, "user_name": "frank"}]), 403
        )
        assert len(records(frank, "of-frank")) == 1
        refusal(grace.get("/ai/sessions/another/search", params={"term": "marmalade"}), 403)
        agents = [agent["user_name"] for agent in answered(frank.get(f"{runs}/franks"))["agents"]]
        assert agents == ["frank"]


@pytest.mark.promise("key-acts-as-person", "claim-refused")
def test_the_same_agent_name_under_another_persons_key_is_another_agent(laptop: Laptop, stores: Ports) -> None:
    for user in ("heidi", "ivan"):
        add_member(stores, user)
    path, body = "/ai/relay/agent_sessions/runs/shared-run/claims", {"agent": "agent-a", "resource": "src/app.py"}
    with client(laptop, add_key(stores, "heidi")) as heidi, client(laptop, add_key(stores, "ivan")) as ivan:
        assert answered(heidi.post(path, json=body))["held"]
        assert answered(ivan.post(path, json=body))["held_by"] == "agent-a"
        assert answered(ivan.request("DELETE", path, json=body))["released"] == 0
        assert answered(heidi.post(path, json=body))["renewed"]


def test_a_key_does_not_live_for_ever_because_of_a_false(person: httpx2.Client) -> None:
    answer = person.post("/ai/keys", json={"name": "k", "expires_days": False})
    assert (answer.status_code, answer.json()) == (400, {"error": "expires_days: should be a number"})
