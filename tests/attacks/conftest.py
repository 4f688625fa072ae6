"""An issuer of the test's own, and stores that trust it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ctrlb.adapters.oidc_issuer import Oidc, OidcIssuer
from ctrlb.domain.rows import Audit, Member
from ctrlb.ports import Ports
from tests.issuer import AUDIENCE, LocalIssuer

WORKSPACE = "acme"


def add_member(stores: Ports, user: str, role: str = "Member", *, active: bool = True, workspace: str = "acme") -> None:
    """Add the person, or change their role or status."""
    audit = Audit(workspace, stores.clock.now_us(), "test", "change_member", before="", after=user)
    before = stores.identity.member(workspace, user)
    after = Member(workspace, user, role, active, changed_us=stores.clock.now_us() if before else 0)
    stores.identity.change_member(before, after, None, audit)


def trusting(stores: Ports, issuer: LocalIssuer, claim: str = "email") -> Ports:
    """The stores, with the issuer's people let in."""
    oidc = Oidc(issuer.url, AUDIENCE, claim, WORKSPACE)
    return replace(stores, issuer=OidcIssuer(oidc, stores.clock))


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    """An issuer on this machine."""
    running = LocalIssuer()
    yield running
    running.stop()


@pytest.fixture
def people(stores: Ports, issuer: LocalIssuer) -> Ports:
    """Stores that trust the issuer, with Ada as a member of the workspace."""
    add_member(stores, "ada@example.com")
    return trusting(stores, issuer)
