"""The console: its files, what a browser may do with them, and how people sign in."""

import re
from collections.abc import Iterator

import httpx2
import pytest

from tests.acceptance.calls import refusal
from tests.acceptance.conftest import Deployment

SCRIPTS = ("console.js", "session.js", "sign-in.js", "unsaved.js")
FILES = [
    ("", "text/html"),
    ("console.css", "text/css"),
    ("icon.svg", "image/svg+xml"),
    *((name, "text/javascript") for name in SCRIPTS),
]


@pytest.fixture
def browser(deployment: Deployment) -> Iterator[httpx2.Client]:
    """A client that nobody knows."""
    with httpx2.Client(base_url=deployment.url, headers={"Accept": "text/html,*/*"}, timeout=30) as client:
        yield client


@pytest.mark.parametrize(("name", "kind"), FILES)
def test_the_console_is_served_and_may_load_and_reach_nothing_elsewhere(
    browser: httpx2.Client, name: str, kind: str
) -> None:
    response = browser.get(f"/console/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"] == f"{kind}; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-cache"
    policy = dict(rule.split(" ", 1) for rule in response.headers["content-security-policy"].split("; "))
    of_the_issuer = policy.pop("connect-src").removeprefix("'self'")
    assert re.fullmatch(r"( https?://[\w.:-]+)?", of_the_issuer)
    assert policy == {
        **dict.fromkeys(("default-src", "base-uri", "form-action", "frame-ancestors"), "'none'"),
        **dict.fromkeys(("script-src", "style-src", "img-src"), "'self'"),
    }


def test_the_page_and_its_scripts_name_every_file_that_is_served_and_no_other(browser: httpx2.Client) -> None:
    texts = [browser.get(f"/console/{name}").text for name, _ in FILES]
    named = {name for text in texts for name in re.findall(r'(?:src|href|from) ?=?"(?:\./)?([^"]+)"', text)}
    assert named == {name for name, _ in FILES if name}


@pytest.mark.parametrize("path", ["/console/%2e%2e%5ctemplate.yaml", "/console/other.js", "/console/web/console.js"])
def test_no_other_file_is_served(browser: httpx2.Client, path: str) -> None:
    assert "/openapi.json" in refusal(browser.get(path), 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/console", "/console/", "/console/console.js"])
def test_a_file_is_only_read(browser: httpx2.Client, method: str, path: str) -> None:
    response = browser.request(method, path)
    assert response.headers["allow"] == "GET"
    assert method in refusal(response, 405)


def test_a_browser_is_led_to_the_console_and_a_program_at_the_root_is_not(browser: httpx2.Client) -> None:
    for path in ("/", "/console"):
        led = browser.get(path, follow_redirects=False)
        assert (led.status_code, led.headers["location"]) == (307, "/console/")
    refusal(browser.get("/", headers={"Accept": "*/*"}), 404)


def test_how_people_sign_in_is_told_to_anybody_unless_the_issuer_does_not_answer(browser: httpx2.Client) -> None:
    response = browser.get("/ai/sign-in")
    if response.status_code == 503:
        assert response.json()["code"] == "MCP_AUTH_UNAVAILABLE"
    else:
        assert response.json()["how"] in ("link", "issuer")
