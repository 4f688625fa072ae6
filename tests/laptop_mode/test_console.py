"""The console that the sign-in link opens."""

import httpx2
import pytest

from tests.laptop import Laptop


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/console/", "text/html"), ("/console/console.js", "text/javascript"), ("/console/console.css", "text/css")],
)
def test_the_console_is_served_and_may_load_nothing_from_elsewhere(laptop: Laptop, path: str, kind: str) -> None:
    response = httpx2.get(f"{laptop.url}{path}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(kind)
    assert "default-src 'self'" in response.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/console/../template.yaml", "/console/%2e%2e/template.yaml", "/console/other.js"])
def test_no_other_file_is_served(laptop: Laptop, path: str) -> None:
    answer = httpx2.get(f"{laptop.url}{path}")
    assert answer.status_code == 404
    assert answer.json().keys() == {"error"}


def test_a_browser_at_the_root_is_led_to_the_console_and_a_program_is_not(laptop: Laptop) -> None:
    browser = httpx2.get(laptop.url, headers={"Accept": "text/html,*/*"}, follow_redirects=False)
    assert (browser.status_code, browser.headers["location"]) == (307, "/console/")
    assert httpx2.get(laptop.url).status_code == 404
