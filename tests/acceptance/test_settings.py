"""The contract's settings, as far as a key can reach them."""

import httpx2
import pytest

from tests.acceptance.calls import answered, refusal

PATH = "/ai/relay/settings"
DEFAULTS = {
    "enforce": "advisory",
    "leaseSeconds": 600,
    "waitMs": 20,
    "silentAfterSeconds": 120,
    "sessionsDataset": "agent_sessions",
    "writeTools": True,
}


@pytest.mark.promise("settings-read-by-key", "settings-defaults")
def test_a_key_reads_the_settings(http: httpx2.Client) -> None:
    assert answered(http.get(PATH)) == DEFAULTS


@pytest.mark.promise("settings-not-by-key", "error-403")
@pytest.mark.parametrize("change", [{"enforce": "off"}, {"leaseSeconds": 60}, {}, {"enforce": "nonsense"}, [], "off"])
def test_a_key_changes_no_setting_whatever_its_role(http: httpx2.Client, change: object) -> None:
    assert "a key is refused, whatever its role" in refusal(http.put(PATH, json=change), 403)
    assert answered(http.get(PATH)) == DEFAULTS


@pytest.mark.promise("settings-not-by-key")
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/ai/keys"), ("GET", "/ai/keys"), ("DELETE", "/ai/keys/AAAAAAAAAAAA")]
)
def test_a_key_makes_reads_and_ends_no_keys(http: httpx2.Client, method: str, path: str) -> None:
    body = {"name": "another"} if method == "POST" else None
    assert "a key is refused" in refusal(http.request(method, path, json=body), 403)
