"""On every adapter of IdentityStore: keys are listed as stale that are refused as such, and no others."""

from dataclasses import replace

import pytest

from ctrlb.domain.access import Caller
from ctrlb.domain.errors import KeyStale
from ctrlb.domain.key_format import secret_hash
from ctrlb.domain.rows import Audit, Grounds, Member, Role, SignIn
from ctrlb.edge.identity import identify
from ctrlb.keys import create_key, list_keys
from ctrlb.models import CreateKeyRequest, ListKeysRequest
from ctrlb.ports import Ports
from ctrlb.sign_in import SESSION_US, TOKEN_PREFIX
from tests.conftest import HandClock

AUDIT = Audit("acme", 0, "somebody", "test", before="", after="")
ANN = Member("acme", "ann", "Auditor")
AUDITOR = Role("acme", "Auditor", frozenset(("mcp.use",)), changed_us=0)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def stores(all_stores: Ports, clock: HandClock) -> Ports:
    """The stores with Ann, whose role is one of the workspace's own."""
    all_stores.identity.change_member(None, ANN, None, AUDIT)
    all_stores.identity.change_role(None, AUDITOR, Grounds(ANN), AUDIT)
    return replace(all_stores, clock=clock)


def signed_in(stores: Ports) -> Caller:
    """Ann, in a session that begins now."""
    token = TOKEN_PREFIX + stores.random.secret()
    session = SignIn(secret_hash(token), "acme", "ann", stores.clock.now_us() + SESSION_US)
    stores.identity.add_sign_in(session, once=False)
    return identify(f"Bearer {token}", stores)


def new_key(name: str, stores: Ports) -> str:
    return create_key(CreateKeyRequest(name=name), signed_in(stores), stores).key


def stale_ones(stores: Ports) -> set[str]:
    """The names of Ann's keys that her list calls stale."""
    listed = list_keys(ListKeysRequest(), signed_in(stores), stores).keys
    return {key.name for key in listed if key.stale}


def is_refused_as_stale(key: str, stores: Ports) -> bool:
    try:
        identify(f"Bearer {key}", stores)
    except KeyStale:
        return True
    return False


def test_a_key_is_listed_as_stale_exactly_when_it_is_refused_so(stores: Ports, clock: HandClock) -> None:
    keys = {"before all": new_key("before all", stores)}
    clock.move_s(1)
    ann = replace(ANN, changed_us=clock.us)
    stores.identity.change_member(ANN, ann, None, AUDIT)
    keys["as Ann changed"] = new_key("as Ann changed", stores)
    assert stale_ones(stores) == {"before all"}
    clock.move_s(1)
    stores.identity.change_role(AUDITOR, replace(AUDITOR, changed_us=clock.us), Grounds(ann), AUDIT)
    keys["as her role did"] = new_key("as her role did", stores)
    assert stale_ones(stores) == {"before all", "as Ann changed"}
    assert stale_ones(stores) == {name for name, key in keys.items() if is_refused_as_stale(key, stores)}
