"""The console as people use it whom an OpenID Connect issuer signs in."""

import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from ctrlb.laptop import WORKSPACE
from tests.console.conftest import Console, sign_in
from tests.issuer import AUDIENCE, LocalIssuer
from tests.laptop import Laptop

pytestmark = pytest.mark.browser
MARKUP = "<img src=x onerror=alert(1)>"


def of(console: Console, place: str) -> list[str]:
    """The addresses of the issuer's place that the tab went to."""
    return [request.url for request in console.asked if urlsplit(request.url).path == f"/pool/{place}"]


def came_back(console: Console) -> str:
    """The address that the issuer sent the tab back to last."""
    addresses = [urlsplit(str(request.url)) for request in console.asked]
    return [address for address in addresses if address.path == "/console/" and "state=" in address.query][-1].geturl()


def test_a_person_signs_in_and_their_token_stays_in_the_tab(
    console: Console, issuer: LocalIssuer, laptop: Laptop
) -> None:
    sign_in(console)
    console.is_signed_in()
    assert console.page.url == f"{console.url}/console/"
    assert console.token == issuer.flow.tokens[-1]
    assert console.page.evaluate("Object.keys(sessionStorage).sort().join()") == "ctrlb-name,ctrlb-token"
    assert console.page.evaluate("localStorage.length + document.cookie.length") == 0
    assert console.origins == {console.url, issuer.url.removesuffix("/pool")}
    console.page.reload()
    console.is_signed_in("ada@example.com. ")


def test_no_token_is_in_an_address_or_in_the_log(console: Console, issuer: LocalIssuer, laptop: Laptop) -> None:
    sign_in(console)
    console.is_signed_in()
    code = parse_qs(urlsplit(came_back(console)).query)["code"][0]
    console.page.get_by_role("button", name="Sign out").click()
    console.says("Sign in to go on.")
    token = issuer.flow.tokens[-1]
    assert [request.url for request in console.asked if token in request.url] == []
    logged = "".join(path.read_text() for path in laptop.folder.glob("ctrlb.log*"))
    assert '"operation":"get_sign_in"' in logged.replace(" ", "")
    assert [secret for secret in (token, code) if secret in logged] == []


def test_each_sign_in_has_secrets_of_its_own_and_the_proof_is_not_among_what_is_shown(console: Console) -> None:
    sign_in(console)
    console.is_signed_in()
    console.page.evaluate("sessionStorage.clear()")
    sign_in(console)
    console.is_signed_in()
    first, second = (parse_qs(urlsplit(url).query) for url in of(console, "authorization"))
    made = ("state", "nonce", "code_challenge")
    assert len({query[name][0] for query in (first, second) for name in made}) == 6
    [sent, _] = [request for request in console.asked if urlsplit(request.url).path == "/pool/token"]
    assert parse_qs(sent.post_data or "")["code_verifier"][0] not in first["code_challenge"] + first["state"]


def test_what_the_issuer_refuses_is_told_as_text(console: Console, issuer: LocalIssuer) -> None:
    issuer.flow.answer = {"error": "access_denied", "error_description": MARKUP}
    sign_in(console)
    console.says(f"The issuer did not sign you in: access_denied: {MARKUP}.")
    assert console.page.locator("img").count() == 0
    assert console.page.url == f"{console.url}/console/"
    issuer.flow.answer = {}
    console.page.get_by_role("button", name="Sign in").click()
    console.is_signed_in()


@pytest.mark.parametrize("answer", [{"state": "another"}, {"state": ""}, {"iss": "https://evil.example"}])
def test_an_answer_to_somebody_elses_sign_in_is_refused_unread(
    console: Console, issuer: LocalIssuer, answer: dict[str, str]
) -> None:
    issuer.flow.answer = answer
    sign_in(console)
    console.says("This answer is to no sign-in that was begun in this tab.")
    assert of(console, "token") == []
    assert console.token is None


def test_a_link_to_somebody_elses_answer_signs_nobody_in(console: Console) -> None:
    console.open("?code=stolen&state=undefined")
    console.says("This answer is to no sign-in that was begun in this tab.")
    assert of(console, "token") == []


def test_an_answer_that_comes_again_is_refused_here_and_its_code_there(console: Console, issuer: LocalIssuer) -> None:
    sign_in(console)
    console.is_signed_in()
    answer = came_back(console)
    console.page.evaluate("sessionStorage.clear()")
    console.page.goto(answer)
    console.says("This answer is to no sign-in that was begun in this tab.")
    issuer.flow.answer = {"code": parse_qs(urlsplit(answer).query)["code"][0]}
    console.page.get_by_role("button", name="Sign in").click()
    console.says("The issuer gave no token: invalid_grant: the code was used, or is another's.")
    assert console.token is None


@pytest.mark.parametrize("answer", [None, [], {"id_token": None}, {"id_token": "a.bnVsbA.c"}])
def test_an_answer_without_a_token_is_told_in_words(
    console: Console, issuer: LocalIssuer, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer.flow, "exchange", lambda sent: (200, answer))
    sign_in(console)
    console.says("Sign in again")
    assert console.token is None


@pytest.mark.parametrize("nonce", ["another", None])
def test_a_token_of_another_sign_in_is_not_kept(console: Console, issuer: LocalIssuer, nonce: str | None) -> None:
    issuer.flow.claims = {"nonce": nonce}
    sign_in(console)
    console.says("The issuer's token belongs to another sign-in.")
    assert console.token is None


def test_when_the_token_expires_the_person_signs_in_again_and_loses_nothing(
    console: Console, issuer: LocalIssuer
) -> None:
    sign_in(console)
    console.is_signed_in()
    expired = issuer.token(exp=int(time.time()) - 3_600)
    console.page.evaluate("token => sessionStorage.setItem('ctrlb-token', token)", expired)
    console.page.get_by_label("Lease, seconds").fill("1234")
    console.page.get_by_role("button", name="Save").click()
    console.says("Your sign-in has ended. What you have entered is kept. Sign in to go on.")
    assert console.token is None
    console.page.get_by_role("button", name="Sign in").click()
    console.says("What you had entered is here again. It is not saved yet.")
    expect(console.page.get_by_label("Lease, seconds")).to_have_value("1234")
    console.page.get_by_role("button", name="Save").click()
    console.says("The settings are saved.")
    console.page.reload()
    expect(console.page.get_by_label("Lease, seconds")).to_have_value("1234")
    assert console.page.locator("#message").inner_text() == ""


def test_whom_the_issuer_knows_and_nobody_here_is_told_to_ask_an_admin(console: Console, issuer: LocalIssuer) -> None:
    issuer.flow.claims = {"email": "eve@example.com"}
    sign_in(console)
    console.says("The issuer signed you in as eve@example.com, who is no active member here: ask an Admin to add you.")
    expect(console.page.locator("main")).to_be_hidden()
    assert console.token is None
    ends = issuer.flow.ends
    console.page.get_by_role("button", name="Sign out").click()
    console.says("Sign in to go on.")
    assert issuer.flow.ends == ends + 1


def test_signing_out_forgets_the_token_and_ends_the_issuers_session(console: Console, issuer: LocalIssuer) -> None:
    sign_in(console)
    console.is_signed_in()
    ends = issuer.flow.ends
    console.page.get_by_role("button", name="Sign out").click()
    console.says("Sign in to go on.")
    expect(console.page.locator("main")).to_be_hidden()
    assert issuer.flow.ends == ends + 1
    assert console.page.evaluate("sessionStorage.length") == 0


def test_the_page_can_run_nothing_and_reach_nobody_else(console: Console) -> None:
    """The policy that comes with it, as the browser keeps it."""
    console.open()
    console.says("Sign in to go on.")
    reached = "fetch('http://127.0.0.1:9/').then(() => 'reached', () => 'blocked')"
    assert console.page.evaluate(reached) == "blocked"
    console.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    assert console.page.evaluate("window.ran") is None
    assert console.origins == {console.url}


def test_while_the_issuer_is_down_the_page_says_so(browser: Browser, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OIDC_ISSUER", "http://127.0.0.1:9/nobody-listens")
        environment.setenv("OIDC_AUDIENCE", AUDIENCE)
        environment.setenv("OIDC_WORKSPACE", WORKSPACE)
        alone = Laptop(tmp_path / "alone")
    context = browser.new_context()
    try:
        console = Console(context.new_page(), alone.url)
        console.open()
        console.says("the issuer does not answer right now")
        console.page.get_by_role("button", name="Sign in").click()
        console.says("the issuer does not answer right now")
    finally:
        context.close()
        alone.stop()
