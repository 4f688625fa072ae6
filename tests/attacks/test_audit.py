"""Changes that matter to security leave a row that says who, when, what was before and after, and holds no secret."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ctrlb.audit import list_audit_events
from ctrlb.domain.access import Caller
from ctrlb.domain.cursors import written_cursor
from ctrlb.domain.errors import NotFound
from ctrlb.domain.rows import Audit, Settings
from ctrlb.ingest import create_ingest_credential, revoke_ingest_credential
from ctrlb.keys import create_key, revoke_key
from ctrlb.laptop import owner
from ctrlb.members import change_member, change_role, invite_member, remove_role
from ctrlb.models import (
    ChangeMemberRequest,
    ChangeRoleRequest,
    ChangeSettingsRequest,
    CreateIngestCredentialRequest,
    CreateKeyRequest,
    InviteMemberRequest,
    RemoveRoleRequest,
    RevokeIngestCredentialRequest,
    RevokeKeyRequest,
)
from ctrlb.ports import Ports
from ctrlb.settings import change_settings
from ctrlb.workspaces import admin_of
from tests.conftest import HandClock, caller_named
from tests.documents import PROJECT, sections, table
from tests.doors import Json, asked

DOCUMENTED = {
    action.strip(" `")
    for row in table(sections((PROJECT / "docs" / "api.md").read_text(), 3)["list_audit_events"], "action")
    for action in row[0].split(",")
}
SCRIBE = {"role": "Scribe", "permissions": ["mcp.use"], "built_in": False}
EVE = {"user_name": "eve", "role": "Reader", "active": True, "grants": []}


@pytest.fixture
def ada(stores: Ports) -> Caller:
    """A signed-in Admin of a workspace that the command line made."""
    return replace(admin_of("acme", "ada", stores), token_sha256="a person's")


def listed(caller: Caller, stores: Ports, **fields: Any) -> list[Json]:
    """All that the caller is shown, oldest first."""
    found: list[Json] = []
    cursor: str | None = ""
    while cursor is not None:
        status, answer = asked(list_audit_events, caller, stores, cursor=cursor, **fields)
        assert status == 200, answer
        found += answer["events"]
        cursor = answer["next_cursor"]
    return found[::-1]


def change_everything(ada: Caller, stores: Ports, clock: HandClock) -> list[str]:
    """Make a change of each kind, a second apart; the secrets that came out, and their hashes."""

    def made(run: Callable[..., Any], request: Any) -> Any:
        clock.move_s(1)
        return run(request, ada, stores)

    key = made(create_key, CreateKeyRequest(name="k"))
    made(revoke_key, RevokeKeyRequest(key_id=key.key_id))
    made(change_settings, ChangeSettingsRequest.model_validate({"leaseSeconds": 60}))
    made(invite_member, InviteMemberRequest(user_name="eve", role="Reader"))
    made(change_member, ChangeMemberRequest(user_name="eve", active=False))
    made(change_role, ChangeRoleRequest(role="Scribe", permissions=["mcp.use"]))
    made(remove_role, RemoveRoleRequest(role="Scribe"))
    credential = made(create_ingest_credential, CreateIngestCredentialRequest(name="builds", dataset="logs"))
    made(revoke_ingest_credential, RevokeIngestCredentialRequest(credential_id=credential.credential_id))
    kept = stores.identity.keys("acme", "ada") + stores.identity.ingest_credentials("acme")
    shown = [key.key, credential.credential]
    return shown + [each.rpartition("_")[2] for each in shown] + [each.secret_sha256 for each in kept]


@pytest.mark.promise("changes-are-listed")
def test_every_change_is_listed_with_who_made_it_from_what_and_to_what(
    ada: Caller, stores: Ports, clock: HandClock
) -> None:
    change_everything(ada, stores, clock)
    events = listed(ada, stores)
    assert {event["action"] for event in events} == DOCUMENTED
    assert [event["user_name"] for event in events] == [None] + ["ada"] * 9
    assert [event["ts"] for event in events] == [events[0]["ts"] + second * 1_000_000 for second in range(10)]
    seen = {event["action"]: (event["before"], event["after"]) for event in events}
    assert seen["create_workspace"] == (None, {**EVE, "user_name": "ada", "role": "Admin"})
    assert seen["invite_member"] == (None, EVE)
    assert seen["change_member"] == (EVE, {**EVE, "active": False})
    assert seen["change_role"] == (None, SCRIBE)
    assert seen["remove_role"] == (SCRIBE, None)
    before, after = seen["change_settings"]
    assert (before["leaseSeconds"], after) == (600, {**before, "leaseSeconds": 60})
    for made, revoked, name in (
        ("create_key", "revoke_key", "k"),
        ("create_ingest_credential", "revoke_ingest_credential", "builds"),
    ):
        nothing, new = seen[made]
        assert (nothing, new["name"], new["revoked"]) == (None, name, False)
        assert seen[revoked] == (new, {**new, "revoked": True})


@pytest.mark.promise("changes-are-listed")
def test_no_secret_and_no_hash_of_one_is_in_the_list(ada: Caller, stores: Ports, clock: HandClock) -> None:
    secrets = change_everything(ada, stores, clock)
    assert len(set(secrets)) == 6
    text = json.dumps(listed(ada, stores))
    assert [secret for secret in secrets if secret in text] == []


@pytest.mark.promise("changes-are-listed")
def test_what_the_command_line_changes_is_listed_as_nobodys(stores: Ports) -> None:
    admin = owner(stores)
    person = replace(admin, token_sha256="a person's")
    key = create_key(CreateKeyRequest(name="of the command line"), admin, stores)
    revoke_key(RevokeKeyRequest(key_id=key.key_id), admin, stores)
    admin_of("local", "second", stores)
    invite_member(InviteMemberRequest(user_name="command line", role="Admin"), person, stores)
    events = {(event["action"], event["user_name"]): event for event in listed(person, stores)}
    assert set(events) == {
        ("create_workspace", None),
        ("create_key", None),
        ("revoke_key", None),
        ("invite_member", None),
        ("invite_member", "admin"),
    }
    assert events["create_key", None]["after"]["user_name"] == "admin"
    assert listed(person, stores, user_name="command line") == []


@pytest.mark.parametrize("text", ["admin: Admin", "[1]", "7", "{"])
def test_what_an_earlier_version_recorded_in_words_is_shown_as_it_was(ada: Caller, stores: Ports, text: str) -> None:
    audit = Audit("acme", stores.clock.now_us(), "ada", "change_settings", text, '{"a": 1}')
    stores.identity.change_settings("acme", Settings(), Settings(lease_seconds=60), None, audit)
    event = listed(ada, stores)[-1]
    assert (event["before"], event["after"]) == ({"text": text}, {"a": 1})


def test_one_persons_changes_are_found_by_name(ada: Caller, stores: Ports, clock: HandClock) -> None:
    change_everything(ada, stores, clock)
    assert listed(ada, stores, user_name="ada", limit=4) == listed(ada, stores)[1:]
    assert listed(ada, stores, user_name="eve") == []


@pytest.mark.parametrize("limit", [1, 3, 9, 10])
def test_pages_go_on_where_the_one_before_ended(ada: Caller, stores: Ports, clock: HandClock, limit: int) -> None:
    change_everything(ada, stores, clock)
    assert listed(ada, stores, limit=limit) == listed(ada, stores, limit=100)


@pytest.mark.promise("changes-are-listed")
def test_a_cursor_leads_into_no_other_workspace(ada: Caller, stores: Ports, clock: HandClock) -> None:
    zoe = replace(admin_of("beta", "zoe", stores), token_sha256="a person's")
    change_everything(ada, stores, clock)
    _, adas = asked(list_audit_events, ada, stores, limit=1)
    _, zoes = asked(list_audit_events, zoe, stores, cursor=adas["next_cursor"])
    assert [event["after"]["user_name"] for event in zoes["events"]] == ["zoe"]
    assert zoes["events"] == listed(zoe, stores)


@pytest.mark.parametrize(
    "cursor", ["x", "eyJ9", written_cursor((1, "x" * 32)), written_cursor((1, "a" * 33)), written_cursor((10**16, "1"))]
)
def test_what_is_no_cursor_is_refused(ada: Caller, stores: Ports, cursor: str) -> None:
    status, answer = asked(list_audit_events, ada, stores, cursor=cursor)
    assert (status, "cursor: should be" in answer["error"]) == (400, True)


@pytest.mark.parametrize("limit", [0, 101])
def test_a_limit_that_is_out_of_bounds_is_refused(ada: Caller, stores: Ports, limit: int) -> None:
    assert asked(list_audit_events, ada, stores, limit=limit)[0] == 400


def test_what_was_refused_or_done_already_is_no_change(ada: Caller, stores: Ports) -> None:
    made = create_key(CreateKeyRequest(name="k"), ada, stores)
    first = revoke_key(RevokeKeyRequest(key_id=made.key_id), ada, stores)
    before = listed(ada, stores)
    with pytest.raises(NotFound):
        revoke_key(RevokeKeyRequest(key_id=made.key_id), replace(caller_named("eve"), workspace="acme"), stores)
    assert revoke_key(RevokeKeyRequest(key_id=made.key_id), ada, stores) == first
    assert listed(ada, stores) == before
