"""The console as the laptop's owner uses it, who signs in by a link."""

from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from ctrlb.domain.key_format import secret_hash
from ctrlb.laptop import FIRST_USER, WORKSPACE
from ctrlb.ports import Ports
from ctrlb.sign_in import TOKEN_PREFIX, new_code
from tests.acceptance.calls import answered, refusal
from tests.console.conftest import Console
from tests.laptop import Laptop

pytestmark = pytest.mark.browser
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
SETTINGS = "/ai/relay/settings"


def asked(laptop: Laptop, credential: str, path: str = SETTINGS) -> httpx2.Response:
    return httpx2.get(f"{laptop.url}{path}", headers={"Authorization": f"Bearer {credential}"})


def test_a_link_signs_in_once_and_leaves_no_code_in_the_address(console: Console, link: str) -> None:
    console.open(link)
    console.is_signed_in()
    assert console.page.url == f"{console.url}/console/"
    assert (console.token or "").startswith(TOKEN_PREFIX)
    console.page.reload()
    console.is_signed_in()
    console.page.evaluate("sessionStorage.clear()")
    console.open(link)
    console.says("the code was used or has expired")
    assert console.token is None


def test_a_link_that_somebody_sent_shows_whom_it_signs_in(console: Console, link: str, stores: Ports) -> None:
    console.open(link)
    console.is_signed_in(f"{FIRST_USER}. ")
    console.open(f"#code={new_code(WORKSPACE, 'ada@example.com', stores)}")
    console.is_signed_in("ada@example.com. ")
    console.page.reload()
    console.is_signed_in("ada@example.com. ")


def test_without_an_issuer_the_page_says_where_a_link_is(browser: Browser, tmp_path: Path) -> None:
    laptop, context = Laptop(tmp_path / "alone"), browser.new_context()
    try:
        console = Console(context.new_page(), laptop.url)
        console.open()
        console.says("Open the sign-in link that the server printed")
        expect(console.page.get_by_role("button", name="Sign in")).to_be_hidden()
    finally:
        context.close()
        laptop.stop()


def test_a_key_is_made_used_and_revoked(console: Console, link: str, laptop: Laptop) -> None:
    console.open(link)
    console.page.get_by_label("Name").fill("build scripts")
    console.page.get_by_label("Expires after").select_option("30 days")
    console.page.get_by_role("button", name="Make a key").click()
    console.says("The key is made.")
    key = console.page.locator("#made code").inner_text()
    assert answered(asked(laptop, key))["enforce"] == "advisory"
    listed = console.page.locator("#keys tr", has_text="build scripts")
    listed.get_by_role("button", name="Revoke").click()
    console.says("is refused from now on.")
    expect(listed).to_contain_text("revoked")
    assert asked(laptop, key).json()["code"] == "MCP_KEY_REVOKED"


def test_settings_are_saved_and_a_wrong_one_is_refused_in_words(console: Console, link: str, laptop: Laptop) -> None:
    console.open(link)
    console.page.get_by_label("Silent after, seconds").fill("240")
    console.page.get_by_role("button", name="Save").click()
    console.says("The settings are saved.")
    assert answered(asked(laptop, laptop.key))["silentAfterSeconds"] == 240
    console.page.locator("#settings").evaluate("form => form.noValidate = true")
    console.page.get_by_label("Silent after, seconds").fill("1")
    console.page.get_by_role("button", name="Save").click()
    console.says("silentAfterSeconds: should be 10 or more")


def test_what_others_named_stays_text(console: Console, link: str, laptop: Laptop) -> None:
    run = MARKUP.replace("/", "")  # no id holds a slash
    claims = f"{laptop.url}/ai/relay/agent_sessions/runs/{run}/claims"
    keyed = {"Authorization": f"Bearer {laptop.key}"}
    answered(httpx2.post(claims, json={"agent": run, "resource": MARKUP}, headers=keyed))
    console.open(link)
    console.page.get_by_label("Name").fill(MARKUP)
    console.page.get_by_role("button", name="Make a key").click()
    console.says("The key is made.")
    expect(console.page.locator("#runs")).to_contain_text(run)
    expect(console.page.locator("#keys")).to_contain_text(MARKUP)
    assert console.page.locator("main img, main script").count() == 0


def test_signing_out_ends_the_session_and_shows_nothing_more(console: Console, link: str, laptop: Laptop) -> None:
    console.open(link)
    console.is_signed_in()
    token = console.token or ""
    console.page.get_by_role("button", name="Sign out").click()
    expect(console.page.locator("main")).to_be_hidden()
    console.says("Sign in to go on.")
    assert console.token is None
    refusal(asked(laptop, token), 401)


def test_what_was_entered_outlives_the_session(console: Console, link: str, stores: Ports) -> None:
    console.open(link)
    console.is_signed_in()
    stores.identity.remove_sign_in(secret_hash(console.token or ""))
    console.page.get_by_label("Wait of a claim, milliseconds").fill("77")
    console.page.get_by_role("button", name="Save").click()
    console.says("Your sign-in has ended. What you have entered is kept.")
    console.page.get_by_label("Name").fill("entered even later")
    console.open(f"#code={new_code(WORKSPACE, FIRST_USER, stores)}")  # the same page: only what follows the # changes
    console.says("What you had entered is here again. It is not saved yet.")
    expect(console.page.get_by_label("Wait of a claim, milliseconds")).to_have_value("77")
    expect(console.page.get_by_label("Name")).to_have_value("entered even later")


@pytest.mark.parametrize(
    "change",
    [
        "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('no', 'SecurityError') }})",
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }",
    ],
    ids=["blocked", "full"],
)
def test_where_no_token_can_be_kept_the_page_says_so_and_the_code_stays_good(
    browser: Browser, console: Console, link: str, change: str
) -> None:
    context = browser.new_context()
    try:
        context.add_init_script(change)
        barred = Console(context.new_page(), console.url)
        barred.page.on("pageerror", lambda error: console.faults.append(str(error)))
        barred.open(link)
        barred.says("The browser does not let this page keep a sign-in")
    finally:
        context.close()
    console.open(link)
    console.is_signed_in()
