"""What the page shows to whom: settings, runs and keys, for people of different roles, and for who has nothing yet."""

import httpx2
import pytest
from playwright.sync_api import expect

from ctrlb.laptop import WORKSPACE
from ctrlb.models import ListRunsRequest
from ctrlb.ports import Ports
from tests.acceptance.calls import answered
from tests.conftest import add_member
from tests.console.conftest import ADA, Console, sign_in
from tests.issuer import LocalIssuer
from tests.laptop import Laptop
from tests.laptop_mode.conftest import add_key

pytestmark = pytest.mark.browser
PAGE = ListRunsRequest.model_fields["limit"].default


def sign_in_as(user: str, role: str, console: Console, issuer: LocalIssuer, stores: Ports) -> None:
    """Add the person, and have the issuer sign them in."""
    add_member(stores, user, role, workspace=WORKSPACE)
    issuer.flow.claims = {"email": user}
    sign_in(console)
    console.is_signed_in(user)


def test_who_may_not_change_settings_reads_them_and_has_nothing_to_save(
    console: Console, issuer: LocalIssuer, stores: Ports
) -> None:
    sign_in_as("rob@example.com", "Reader", console, issuer, stores)
    lease = console.page.get_by_label("Lease, seconds")
    expect(lease).to_be_disabled()
    expect(lease).not_to_have_value("")
    expect(console.page.get_by_role("button", name="Save")).to_be_hidden()
    expect(console.page.get_by_text("Only who has the permission relay.manage may change them")).to_be_visible()


def test_who_may_no_longer_change_settings_is_told_who_may_and_shown_what_is_stored(
    console: Console, issuer: LocalIssuer, stores: Ports
) -> None:
    cleo = "cleo@example.com"
    sign_in_as(cleo, "Admin", console, issuer, stores)
    lease = console.page.get_by_label("Lease, seconds")
    stored = lease.input_value()
    add_member(stores, cleo, "Reader", workspace=WORKSPACE)
    lease.fill("4321")
    console.page.get_by_role("button", name="Save").click()
    console.says("your role does not allow change_settings: it needs relay.manage")
    expect(lease).to_have_value(stored)
    expect(lease).to_be_disabled()
    expect(console.page.get_by_text("Only who has the permission relay.manage may change them")).to_be_visible()


def test_what_was_entered_is_not_put_back_for_somebody_who_may_not_save_it(
    console: Console, issuer: LocalIssuer, stores: Ports
) -> None:
    sign_in(console)
    console.is_signed_in(ADA)
    lease = console.page.get_by_label("Lease, seconds")
    stored = lease.input_value()
    lease.fill("4321")
    console.page.evaluate("token => sessionStorage.setItem('ctrlb-token', token)", issuer.token(exp=1))
    console.page.get_by_role("button", name="Save").click()
    console.says("Your sign-in has ended. What you have entered is kept.")
    add_member(stores, "rob@example.com", "Reader", workspace=WORKSPACE)
    issuer.flow.claims = {"email": "rob@example.com"}
    console.page.get_by_role("button", name="Sign in").click()
    console.is_signed_in("rob@example.com")
    expect(lease).to_have_value(stored)
    assert console.page.locator("#message").inner_text() == ""


def test_a_newcomer_is_told_what_to_do(console: Console, issuer: LocalIssuer, stores: Ports) -> None:
    sign_in_as("new@example.com", "Member", console, issuer, stores)
    expect(console.page.get_by_text("No runs yet: connect an agent")).to_be_visible()
    expect(console.page.get_by_text("No keys yet: make one")).to_be_visible()
    expect(console.page.get_by_role("table")).to_have_count(0)
    console.page.get_by_label("Name").fill("mine")
    console.page.get_by_role("button", name="Make a key").click()
    console.says("The key is made.")
    expect(console.page.get_by_role("table")).to_have_count(1)
    expect(console.page.get_by_text("No keys yet")).to_be_hidden()


def test_runs_beyond_the_first_page_are_shown_when_asked_for(
    console: Console, issuer: LocalIssuer, laptop: Laptop, stores: Ports
) -> None:
    add_member(stores, "max@example.com", "Member", workspace=WORKSPACE)
    names = {f"run-{number}-of-max" for number in range(PAGE + 1)}
    with httpx2.Client(headers={"Authorization": f"Bearer {issuer.token(email='max@example.com')}"}) as http:
        for name in names:
            claims = f"{laptop.url}/ai/relay/agent_sessions/runs/{name}/claims"
            answered(http.post(claims, json={"agent": "a", "resource": "r"}))
    sign_in_as("max@example.com", "Member", console, issuer, stores)
    listed, more = console.page.locator("#runs tr td:first-child"), console.page.get_by_role("button", name="More")
    expect(listed).to_have_count(PAGE)
    more.dblclick()
    expect(listed).to_have_count(PAGE + 1)
    expect(more).to_be_hidden()
    assert set(listed.all_inner_texts()) == names


def test_a_key_that_is_refused_says_why(console: Console, issuer: LocalIssuer, stores: Ports) -> None:
    kim, now_us = "kim@example.com", stores.clock.now_us()
    add_member(stores, kim, "Member", workspace=WORKSPACE)
    add_key(stores, kim, expires_us=now_us - 1)
    add_key(stores, kim, expires_us=now_us + 3_600_000_000)
    sign_in_as(kim, "Reader", console, issuer, stores)
    listed = console.page.locator("#keys tr")
    expect(listed.nth(0)).to_contain_text("expired ")
    expect(listed.nth(1)).to_contain_text("stale: what you may do has changed since it was made")
