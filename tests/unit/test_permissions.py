"""Each operation of the table is refused to a caller without its permission, at each door that it has."""

from typing import Any

import pytest

from ctrlb.domain.access import ROLES
from ctrlb.domain.key_format import secret_hash
from ctrlb.domain.rows import Audit, Grounds, Member, Role, SignIn
from ctrlb.keys import create_key
from ctrlb.models import CreateKeyRequest
from ctrlb.operations import OPERATIONS, Operation, operation_of
from ctrlb.ports import Ports
from ctrlb.sign_in import SESSION_US, TOKEN_PREFIX, sign_out
from tests.conftest import HandClock, add_member, caller_named
from tests.doors import Doors, Reply

GUARDED = [operation for operation in OPERATIONS if operation.permission is not None]
EACH_OPERATION = pytest.mark.parametrize("operation", GUARDED, ids=lambda operation: operation.name)
EACH_TOOL = pytest.mark.parametrize(
    "operation", [operation for operation in GUARDED if operation.tool], ids=lambda operation: operation.name
)
FIELDS: dict[str, Any] = {"dataset": "agent_sessions", "run_id": "r", "agent": "a", "session_id": "s", "records": []}


@pytest.fixture
def doors(stores: Ports, monkeypatch: pytest.MonkeyPatch) -> Doors:
    return Doors(stores, monkeypatch)


@pytest.fixture
def person(stores: Ports, clock: HandClock) -> str:
    """The token of a person whose role allows all."""
    token = TOKEN_PREFIX + "ann"
    stores.identity.add_sign_in(SignIn(secret_hash(token), "acme", "ann", clock.us + SESSION_US), once=False)
    return token


def allow_all_but(stores: Ports, operation: Operation, clock: HandClock) -> None:
    """Make Ann a member whose role has every permission but the operation's."""
    member = Member("acme", "ann", "Most")
    audit = Audit("acme", clock.us, "somebody", "test", before="", after="")
    stores.identity.change_member(None, member, None, audit)
    most = Role("acme", "Most", ROLES["Admin"] - {operation.permission or "mcp.use"}, clock.us)
    stores.identity.change_role(None, most, Grounds(member), audit)


def key_of(stores: Ports) -> str:
    return create_key(CreateKeyRequest(name="k"), caller_named("ann"), stores).key


def assert_refused(reply: Reply, operation: Operation, statuses: tuple[int, ...] = (403,)) -> None:
    assert reply.status in statuses
    if operation.permission == "mcp.use" and reply.answer.get("code"):
        assert reply.answer["code"] == "MCP_FORBIDDEN_ROLE"
    else:
        assert reply.answer == {"error": f"your role does not allow {operation.name}: it needs {operation.permission}"}


@pytest.mark.promise("permission-of-each")
@EACH_OPERATION
def test_a_person_without_the_permission_is_refused(
    operation: Operation, doors: Doors, stores: Ports, person: str, clock: HandClock
) -> None:
    allow_all_but(stores, operation, clock)
    assert_refused(doors.http(operation, person, FIELDS), operation)


@EACH_OPERATION
def test_a_key_without_the_permission_is_refused(
    operation: Operation, doors: Doors, stores: Ports, clock: HandClock
) -> None:
    allow_all_but(stores, operation, clock)
    reply = doors.http(operation, key_of(stores), FIELDS)
    if operation.persons_only and operation.permission != "mcp.use":
        assert (reply.status, "is for a person" in reply.answer["error"]) == (403, True)
    else:
        assert_refused(reply, operation)


@pytest.mark.promise("permission-of-each")
@EACH_TOOL
def test_a_tool_is_refused_to_a_key_without_the_permission(
    operation: Operation, doors: Doors, stores: Ports, clock: HandClock
) -> None:
    allow_all_but(stores, operation, clock)
    assert_refused(doors.mcp(operation.name, key_of(stores), FIELDS), operation, (400, 403))


@EACH_OPERATION
def test_who_has_the_permission_is_let_in_unless_a_key_calls_what_is_for_persons(
    operation: Operation, doors: Doors, stores: Ports, person: str, clock: HandClock
) -> None:
    audit = Audit("acme", clock.us, "somebody", "test", before="", after="")
    stores.identity.change_member(None, Member("acme", "ann", "Admin"), None, audit)
    assert "your role" not in str(doors.http(operation, person, FIELDS).answer)
    reply = doors.http(operation, key_of(stores), FIELDS)
    assert ("is for a person" in str(reply.answer)) == operation.persons_only


def test_any_person_who_is_known_signs_out_whatever_their_role_and_no_key_does(
    doors: Doors, stores: Ports, person: str
) -> None:
    signing_out = operation_of(sign_out)
    add_member(stores, "ann", "Nobody")
    assert doors.http(signing_out, key_of(stores), {}).answer["code"] == "MCP_FORBIDDEN_ROLE"
    add_member(stores, "bob")
    bobs = create_key(CreateKeyRequest(name="k"), caller_named("bob"), stores).key
    assert "is for a person" in doors.http(signing_out, bobs, {}).answer["error"]
    assert doors.http(signing_out, "ctrlbs_a guess", {}).status == 401
    assert doors.http(signing_out, person, {}).answer == {"ok": True}
    assert doors.http(signing_out, person, {}).status == 401


def test_only_these_operations_are_open_to_anybody() -> None:
    open_to_all = {operation.name for operation in OPERATIONS if not operation.asks_who}
    assert open_to_all == {"get_sign_in", "health", "openapi", "sign_in"}
    assert {operation.name for operation in OPERATIONS if operation.asks_who} - {each.name for each in GUARDED} == {
        "sign_out"
    }
