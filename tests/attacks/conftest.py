"""An issuer of the test's own, and stores that trust it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ctrlb.adapters.oidc_issuer import Oidc, OidcIssuer
from ctrlb.ports import Ports
from tests.conftest import add_member
from tests.issuer import AUDIENCE, LocalIssuer

WORKSPACE = "acme"


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
