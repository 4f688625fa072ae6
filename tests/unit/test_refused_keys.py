"""The seven refusals of a key, each with its code and status, at both doors."""

from dataclasses import replace
from typing import Any

import pytest

from ctrlb.domain.key_format import written_key
from ctrlb.domain.rows import Audit, Grant, Grounds, Member, Role
from ctrlb.keys import create_key, revoke_key
from ctrlb.models import CreateKeyRequest, RevokeKeyRequest
from ctrlb.notes import peers
from ctrlb.operations import operation_of
from ctrlb.ports import Ports
from tests.conftest import HandClock, caller_named
from tests.doors import Doors, Reply
from tests.unit.test_identity import AnswersNot

AUDIT = Audit("acme", 0, "somebody", "test", before="", after="")
ANN = Member("acme", "ann", "Member")
DAYS_S = 86_400


@pytest.fixture
def doors(stores: Ports, monkeypatch: pytest.MonkeyPatch) -> Doors:
    return Doors(replace(stores, workspace_hosts={"beta.example.com": "beta", "acme.example.com": "acme"}), monkeypatch)


@pytest.fixture(params=["http", "mcp"])
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def key(stores: Ports) -> str:
    stores.identity.change_member(None, ANN, None, AUDIT)
    return new_key(stores)


def new_key(stores: Ports) -> str:
    return create_key(CreateKeyRequest(name="k", expires_days=30), caller_named("ann"), stores).key


def ask(doors: Doors, door: str, key: str, host: str = "") -> Reply:
    if door == "mcp":
        return doors.mcp("peers", key, {"run_id": "r"}, host)
    return doors.http(operation_of(peers), key, {"dataset": "agent_sessions", "run_id": "r"}, host)


def change_ann(stores: Ports, clock: HandClock, **changes: Any) -> None:
    clock.move_s(1)
    before = stores.identity.member("acme", "ann")
    assert before is not None
    stores.identity.change_member(before, replace(before, **changes, changed_us=clock.us), None, AUDIT)
    clock.move_s(1)


def assert_refused(reply: Reply, status: int, code: str, key: str) -> None:
    assert (reply.status, reply.answer["code"], set(reply.answer)) == (status, code, {"error", "code"})
    assert key not in str(reply)
    assert reply.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)


def test_a_good_key_is_let_in(doors: Doors, door: str, key: str) -> None:
    assert ask(doors, door, key).status == 200


@pytest.mark.promise("code-invalid")
def test_a_key_that_is_none_is_invalid(doors: Doors, door: str, key: str, stores: Ports) -> None:
    unknown = written_key("acme", stores.random.key_id(), stores.random.secret())
    wrong_secret = written_key("acme", key.split("_")[2], stores.random.secret())
    for bad in (key + "x", unknown, wrong_secret, "nonsense"):
        assert_refused(ask(doors, door, bad), 401, "MCP_INVALID_KEY", bad)


@pytest.mark.promise("code-expired")
def test_a_key_is_good_until_its_expiry_and_not_from_then_on(
    doors: Doors, door: str, key: str, clock: HandClock
) -> None:
    clock.move_s(30 * DAYS_S - 1)
    assert ask(doors, door, key).status == 200
    clock.move_s(1)
    assert_refused(ask(doors, door, key), 401, "MCP_KEY_EXPIRED", key)


@pytest.mark.promise("code-revoked")
def test_a_revoked_key_says_so(doors: Doors, door: str, key: str, stores: Ports) -> None:
    revoke_key(RevokeKeyRequest(key_id=key.split("_")[2]), caller_named("ann"), stores)
    assert_refused(ask(doors, door, key), 401, "MCP_KEY_REVOKED", key)


@pytest.mark.promise("code-stale", "code-stale-role")
@pytest.mark.parametrize(
    "change",
    [{"role": "Admin"}, {"grants": (Grant("logs", "read"),)}, {"active": False}],
    ids=lambda each: next(iter(each)),
)
def test_a_key_is_stale_once_its_person_changed(
    doors: Doors, door: str, key: str, stores: Ports, clock: HandClock, change: dict[str, Any]
) -> None:
    change_ann(stores, clock, **change)
    assert_refused(ask(doors, door, key), 401, "MCP_KEY_STALE", key)
    change_ann(stores, clock, active=True)
    assert_refused(ask(doors, door, key), 401, "MCP_KEY_STALE", key)  # what is undone was a change, too
    assert ask(doors, door, new_key(stores)).status == 200


@pytest.mark.promise("code-stale-role")
def test_a_key_is_stale_once_the_role_of_its_person_is_defined_anew(
    doors: Doors, door: str, stores: Ports, clock: HandClock
) -> None:
    role = Role("acme", "Auditor", frozenset(("mcp.use", "relay.read_all")), clock.us)
    stores.identity.change_member(None, replace(ANN, role="Auditor"), None, AUDIT)
    stores.identity.change_role(None, role, Grounds(replace(ANN, role="Auditor")), AUDIT)
    key = new_key(stores)
    assert ask(doors, door, key).status == 200
    clock.move_s(1)
    anew = replace(role, permissions=frozenset(("mcp.use",)), changed_us=clock.us)
    stores.identity.change_role(role, anew, Grounds(replace(ANN, role="Auditor")), AUDIT)
    assert_refused(ask(doors, door, key), 401, "MCP_KEY_STALE", key)


@pytest.mark.promise("code-workspace-mismatch")
@pytest.mark.parametrize("host", ["beta.example.com", "BETA.example.com:443"])
def test_a_key_is_refused_at_the_address_of_another_workspace(doors: Doors, door: str, key: str, host: str) -> None:
    assert_refused(ask(doors, door, key, host), 403, "MCP_WORKSPACE_MISMATCH", key)


@pytest.mark.parametrize(
    "host", ["", "acme.example.com", "elsewhere.example.com", "[::1]:8321", "[", "beta.example.com.evil"]
)
def test_a_key_is_let_in_at_its_own_address_and_at_one_of_no_workspace(
    doors: Doors, door: str, key: str, host: str
) -> None:
    assert ask(doors, door, key, host).status == 200


def test_only_who_has_the_key_learns_that_the_address_is_wrong(
    doors: Doors, door: str, key: str, stores: Ports
) -> None:
    wrong_secret = written_key("acme", key.split("_")[2], stores.random.secret())
    assert_refused(ask(doors, door, wrong_secret, "beta.example.com"), 401, "MCP_INVALID_KEY", wrong_secret)


@pytest.mark.promise("code-forbidden-role")
@pytest.mark.parametrize("role", ["Nobody", "Uploader"])
def test_a_key_whose_role_lacks_its_use_is_forbidden(
    doors: Doors, door: str, stores: Ports, clock: HandClock, role: str
) -> None:
    member = replace(ANN, role=role)
    stores.identity.change_member(None, member, None, AUDIT)
    uploader = Role("acme", "Uploader", frozenset(("sessions.write",)), clock.us)
    stores.identity.change_role(None, uploader, Grounds(member), AUDIT)
    key = new_key(stores)
    assert_refused(ask(doors, door, key), 403, "MCP_FORBIDDEN_ROLE", key)


@pytest.mark.promise("code-unavailable")
def test_a_key_that_cannot_be_checked_is_told_when_to_come_again(
    doors: Doors, door: str, key: str, stores: Ports
) -> None:
    doors.stores = replace(stores, identity=AnswersNot(stores.identity, "key"))
    reply = ask(doors, door, key)
    assert_refused(reply, 503, "MCP_AUTH_UNAVAILABLE", key)
    assert reply.headers["Retry-After"] == "7"


def test_a_request_without_a_credential_has_no_code(doors: Doors, door: str) -> None:
    reply = ask(doors, door, "")
    assert (reply.status, set(reply.answer), reply.headers["WWW-Authenticate"]) == (401, {"error"}, "Bearer")
