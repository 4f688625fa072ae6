"""A real browser, a server whose people an issuer signs in, and what the browser asked for."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from ctrlb.laptop import FIRST_USER, WORKSPACE
from ctrlb.ports import Ports
from ctrlb.sign_in import new_code
from ctrlb.wiring import embedded
from tests.conftest import add_member
from tests.issuer import AUDIENCE, LocalIssuer
from tests.laptop import Laptop

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ADA = "ada@example.com"
WAIT_MS = 60_000
"""For anything to be seen, as long as any machine needs."""


@dataclass
class Console:
    """The console in a tab of its own, with all that the tab asked for, and what went wrong in it."""

    page: Page
    url: str
    asked: list[Request] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def open(self, rest: str = "") -> None:
        """Go to the console's page."""
        self.page.goto(f"{self.url}/console/{rest}")

    def says(self, text: str) -> None:
        """Wait until the page tells its person so."""
        expect(self.page.locator("#message")).to_contain_text(text)

    def is_signed_in(self, name: str = "") -> None:
        """Wait until it shows what only people see, and who they are."""
        expect(self.page.locator("#who")).to_contain_text(f"Signed in as {name}")
        expect(self.page.locator("main")).to_be_visible()

    @property
    def token(self) -> str | None:
        """The token that the tab keeps."""
        kept: str | None = self.page.evaluate("sessionStorage.getItem('ctrlb-token')")
        return kept

    @property
    def origins(self) -> set[str]:
        """Where requests of the tab went."""
        return {"{0.scheme}://{0.netloc}".format(urlsplit(request.url)) for request in self.asked}


def sign_in(console: Console) -> None:
    """Have the issuer sign somebody in."""
    console.open()
    console.says("Sign in to go on.")
    console.page.get_by_role("button", name="Sign in").click()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window. Its sandbox does not work for root, who runs tests in containers."""
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.fail(
            f"there is no {PROGRAMS[0]} here: install it (Debian: apt install chromium), or name it: CHROMIUM=…"
        )
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def issuer() -> Iterator[LocalIssuer]:
    """An issuer on this machine."""
    running = LocalIssuer()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory, issuer: LocalIssuer) -> Iterator[Laptop]:
    """A server that trusts the issuer."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OIDC_ISSUER", issuer.url)
        environment.setenv("OIDC_AUDIENCE", AUDIENCE)
        environment.setenv("OIDC_WORKSPACE", WORKSPACE)
        running = Laptop(tmp_path_factory.mktemp("console"))
    issuer.flow.redirect_uris = {f"{running.url}/console/"}
    yield running
    running.stop()


@pytest.fixture(scope="session")
def stores(laptop: Laptop) -> Iterator[Ports]:
    """The server's stores, with Ada, whom the issuer knows, as an Admin."""
    with embedded(laptop.folder) as stores:
        add_member(stores, ADA, "Admin", workspace=WORKSPACE)
        yield stores


@pytest.fixture(autouse=True)
def agreeable(issuer: LocalIssuer) -> Iterator[None]:
    """The issuer signs Ada in again, whatever the test had it do."""
    yield
    issuer.flow.claims, issuer.flow.answer = {}, {}


@pytest.fixture
def console(browser: Browser, laptop: Laptop, stores: Ports) -> Iterator[Console]:
    """A tab that nobody has signed in with yet. Whatever is done in it, it asks nobody else and no script fails."""
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    console = Console(context.new_page(), laptop.url)
    context.on("request", lambda request: console.asked.append(request))
    console.page.on("pageerror", lambda error: console.faults.append(str(error)))
    console.page.on("dialog", lambda dialog: console.faults.append(f"dialog: {dialog.message}"))
    yield console
    context.close()
    assert console.faults == []


@pytest.fixture
def link(stores: Ports) -> str:
    """What a new sign-in link of the laptop's owner adds to the console's address."""
    return f"#code={new_code(WORKSPACE, FIRST_USER, stores)}"
