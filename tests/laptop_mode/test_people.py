"""People whom an issuer signs in, at a server that was started with its variables."""

from collections.abc import Iterator

import httpx2
import pytest

from ctrlb.__main__ import main
from ctrlb.laptop import WORKSPACE
from ctrlb.ports import Ports
from ctrlb.wiring import embedded
from tests.acceptance.calls import answered, refusal
from tests.issuer import AUDIENCE, LocalIssuer
from tests.laptop import Laptop
from tests.laptop_mode.conftest import add_member, client
from tests.nobody import NOBODY


@pytest.fixture(scope="module")
def issuer() -> Iterator[LocalIssuer]:
    """An issuer on this machine."""
    running = LocalIssuer()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory, issuer: LocalIssuer) -> Iterator[Laptop]:
    """A server that trusts the issuer."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OIDC_ISSUER", issuer.url)
        environment.setenv("OIDC_AUDIENCE", AUDIENCE)
        environment.setenv("OIDC_WORKSPACE", WORKSPACE)
        running = Laptop(tmp_path_factory.mktemp("people"))
    yield running
    running.stop()


@pytest.fixture
def members(laptop: Laptop) -> Iterator[Ports]:
    """The server's stores, with Ada as an Admin and Bob as a Member."""
    with embedded(laptop.folder) as stores:
        if stores.identity.member(WORKSPACE, "ada@example.com") is None:
            add_member(stores, "ada@example.com", "Admin")
            add_member(stores, "bob@example.com")
        yield stores


@pytest.mark.usefixtures("members")
def test_a_person_changes_settings_and_makes_keys_that_act_as_them(laptop: Laptop, issuer: LocalIssuer) -> None:
    with client(laptop, issuer.token()) as ada:
        assert answered(ada.put("/ai/relay/settings", json={"leaseSeconds": 700}))["leaseSeconds"] == 700
        key = answered(ada.post("/ai/keys", json={"name": "mine"}), 201)["key"]
        assert answered(ada.get("/ai/keys"))["keys"][0]["user_name"] == "ada@example.com"
        listed = ada.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert len(listed.json()["result"]["tools"]) == 8
    with client(laptop, key) as keyed:
        answered(keyed.get("/ai/relay/settings"))
        assert keyed.put("/ai/relay/settings", json={"leaseSeconds": 700}).status_code == 403


@pytest.mark.usefixtures("members")
def test_a_person_may_do_what_their_role_allows(laptop: Laptop, issuer: LocalIssuer) -> None:
    with client(laptop, issuer.token(email="bob@example.com")) as bob:
        assert bob.put("/ai/relay/settings", json={"leaseSeconds": 700}).status_code == 403
        answered(bob.get("/ai/relay/settings"))


@pytest.mark.usefixtures("members")
def test_an_admin_removes_a_role_and_sees_who_changed_what(laptop: Laptop, issuer: LocalIssuer) -> None:
    command = ["keys", "create", "--name", "of the command line", "--data", str(laptop.folder)]
    assert main(command) == 0
    with client(laptop, issuer.token()) as ada, client(laptop, issuer.token(email="bob@example.com")) as bob:
        answered(ada.put("/ai/roles/Auditor", json={"permissions": ["mcp.use"]}))
        answered(ada.put("/ai/members/bob@example.com", json={"role": "Auditor"}))
        assert "1 person has the role Auditor" in refusal(ada.delete("/ai/roles/Auditor"), 400)
        answered(ada.put("/ai/members/bob@example.com", json={"role": "Member"}))
        assert answered(ada.delete("/ai/roles/Auditor")) == {"role": "Auditor"}
        assert "there is no role Auditor" in refusal(ada.delete("/ai/roles/Auditor"), 404)
        page = answered(ada.get("/ai/audit", params={"limit": 4, "user_name": "ada@example.com"}))
        assert [event["action"] for event in page["events"]] == [
            "remove_role",
            "change_member",
            "change_member",
            "change_role",
        ]
        before = answered(ada.get("/ai/audit", params={"limit": 1, "cursor": page["next_cursor"]}))["events"]
        assert (before[0]["action"], before[0]["user_name"]) == ("create_key", None)
        assert before[0]["after"]["name"] == "of the command line"
        refusal(bob.get("/ai/audit"), 403)
        refusal(bob.delete("/ai/roles/Auditor"), 403)
    with client(laptop, laptop.key) as keyed:
        for refused in (keyed.get("/ai/audit"), keyed.delete("/ai/roles/Auditor")):
            assert "is for a person" in refusal(refused, 403)


@pytest.mark.usefixtures("members")
def test_who_leaves_is_refused_with_their_keys_which_stay_refused_when_they_come_back(
    laptop: Laptop, issuer: LocalIssuer
) -> None:
    carol = {"user_name": "carol@example.com", "role": "Admin"}
    with client(laptop, issuer.token()) as ada, client(laptop, issuer.token(email=carol["user_name"])) as person:
        answered(ada.post("/ai/members", json=carol), 201)
        made = answered(person.post("/ai/keys", json={"name": "mine"}), 201)
        credential = {"name": "builds", "dataset": "logs"}
        answered(person.post("/ai/ingest-credentials", json=credential), 201)
        with client(laptop, made["key"]) as keyed:
            answered(keyed.get("/ai/relay/settings"))
            answered(ada.put(f"/ai/members/{carol['user_name']}", json={"active": False}))
            assert keyed.get("/ai/relay/settings").json()["code"] == "MCP_KEY_STALE"
            assert person.get("/ai/relay/settings").status_code == 401
            answered(ada.put(f"/ai/members/{carol['user_name']}", json={"active": True}))
            assert keyed.get("/ai/relay/settings").json()["code"] == "MCP_KEY_STALE"
            answered(person.get("/ai/relay/settings"))
        [kept] = answered(ada.get("/ai/ingest-credentials"))["credentials"]
        assert (kept["user_name"], kept["revoked"]) == (carol["user_name"], None)
        events = answered(ada.get("/ai/audit"))["events"]
        [whose] = [each for each in events if (each["after"] or {}).get("key_id") == made["key_id"]]
        assert (whose["action"], whose["user_name"]) == ("create_key", carol["user_name"])


@pytest.mark.usefixtures("members")
def test_a_token_that_is_refused_is_401_alike_at_every_door(laptop: Laptop, issuer: LocalIssuer) -> None:
    told = set()
    for token in (issuer.token(email="eve@example.com"), issuer.token(aud="another"), issuer.token()[:-8] + "AAAAAAAA"):
        with client(laptop, token) as stranger:
            for response in (stranger.get("/ai/relay/settings"), stranger.post("/mcp", json={})):
                assert response.status_code == 401
                assert response.headers["WWW-Authenticate"] == "Bearer"
                told.add(response.text)
    assert len(told) == 1


@pytest.mark.promise("code-unavailable")
def test_while_the_issuer_is_down_tokens_are_503_and_keys_go_on(laptop: Laptop, issuer: LocalIssuer) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OIDC_ISSUER", f"{NOBODY}/nobody-listens")
        environment.setenv("OIDC_AUDIENCE", AUDIENCE)
        environment.setenv("OIDC_WORKSPACE", WORKSPACE)
        alone = Laptop(laptop.folder.with_name("alone"))
    try:
        refused = httpx2.get(f"{alone.url}/ai/relay/settings", headers={"Authorization": f"Bearer {issuer.token()}"})
        assert refused.status_code == 503
        assert refused.json()["code"] == "MCP_AUTH_UNAVAILABLE"
        assert int(refused.headers["Retry-After"]) >= 1
        with client(alone, alone.key) as keyed:
            answered(keyed.get("/ai/relay/settings"))
    finally:
        alone.stop()
