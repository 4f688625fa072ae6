"""The contract's "Errors": one shape for all, and the key in its header only."""

import re

import httpx2
import pytest

from tests.acceptance.calls import RUNS, SESSIONS, refusal
from tests.acceptance.conftest import Deployment

OPEN_PATHS = {"/health", "/openapi.json"}
CALLS = [
    ("POST", f"{SESSIONS}/records"),
    ("GET", f"{SESSIONS}/search?term=word"),
    ("GET", f"{SESSIONS}/commands?command=make"),
    ("GET", f"{SESSIONS}/some-session/records?seq_from=0&seq_to=1"),
    ("GET", f"{SESSIONS}/some-session/next?seq=0"),
    ("POST", f"{RUNS}/some-run/posts"),
    ("GET", f"{RUNS}/some-run/peers"),
    ("POST", f"{RUNS}/some-run/claims"),
    ("DELETE", f"{RUNS}/some-run/claims"),
    ("POST", f"{RUNS}/some-run/check"),
    ("GET", RUNS),
    ("GET", f"{RUNS}/some-run"),
    ("GET", "/ai/relay/settings"),
    ("PUT", "/ai/relay/settings"),
]


@pytest.mark.promise("error-401", "key-in-header", "error-shape")
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_call_without_a_key_is_refused_even_with_one_in_its_query(
    deployment: Deployment, method: str, path: str
) -> None:
    with httpx2.Client(base_url=deployment.url, timeout=60) as stranger:
        for query in ("", "key", "api_key", "access_token", "authorization"):
            url = path if not query else f"{path}{'&' if '?' in path else '?'}{query}={deployment.key}"
            response = stranger.request(method, url)
            assert "Authorization" in refusal(response, 401)
            assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.promise("error-401", "code-invalid")
@pytest.mark.parametrize("value", ["", "Bearer", "Basic abc", "bearer"])
def test_a_header_that_carries_no_key_is_as_none(deployment: Deployment, value: str) -> None:
    with httpx2.Client(base_url=deployment.url, headers={"Authorization": value}, timeout=60) as client:
        refusal(client.get("/ai/relay/settings"), 401)


@pytest.mark.promise("code-invalid", "error-shape")
def test_a_key_that_is_wrong_anywhere_is_refused_with_a_code(deployment: Deployment) -> None:
    key = deployment.key
    last = "a" if key[-1] != "a" else "b"
    unknown = "ctrlb_local_AAAAAAAAAAAA_" + "B" * 43 + "CCCCCC"
    for wrong in (key[:-1] + last, key[:-1], key + "a", key.upper(), unknown, "ctrlb_", "sk-123", "x" * 5_000, "ключ"):
        headers = {b"Authorization": f"Bearer {wrong}".encode()}
        with httpx2.Client(base_url=deployment.url, headers=headers, timeout=60) as client:
            response = client.get("/ai/relay/settings")
        assert response.status_code == 401
        assert set(response.json()) == {"error", "code"}
        assert response.json()["code"] == "MCP_INVALID_KEY"
        assert key not in response.text


@pytest.mark.promise("key-in-header")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_of_the_header_is_read_without_case(deployment: Deployment, scheme: str) -> None:
    with httpx2.Client(
        base_url=deployment.url, headers={"Authorization": f"{scheme} {deployment.key}"}, timeout=60
    ) as client:
        assert client.get("/ai/relay/settings").status_code == 200


@pytest.mark.promise("error-shape")
@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", f"{SESSIONS}/records", "POST"),
        ("GET", f"{SESSIONS}/records", "POST"),
        ("POST", f"{SESSIONS}/search", "GET"),
        ("DELETE", f"{SESSIONS}/commands", "GET"),
        ("POST", f"{SESSIONS}/some-session/records", "GET"),
        ("POST", f"{SESSIONS}/some-session/next", "GET"),
        ("GET", f"{RUNS}/some-run/posts", "POST"),
        ("PUT", f"{RUNS}/some-run/peers", "GET"),
        ("GET", f"{RUNS}/some-run/claims", "DELETE, POST"),
        ("PATCH", f"{RUNS}/some-run/claims", "DELETE, POST"),
        ("OPTIONS", f"{RUNS}/some-run/check", "POST"),
        ("POST", RUNS, "GET"),
        ("DELETE", f"{RUNS}/some-run", "GET"),
        ("POST", "/ai/relay/settings", "GET, PUT"),
        ("POST", "/health", "GET"),
        ("DELETE", "/openapi.json", "GET"),
        ("GET", "/mcp", "POST"),
        ("DELETE", "/mcp", "POST"),
    ],
)
def test_another_method_is_refused_and_the_right_ones_are_named(
    http: httpx2.Client, method: str, path: str, allow: str
) -> None:
    response = http.request(method, path)
    assert method in refusal(response, 405)
    assert response.headers["allow"] == allow


@pytest.mark.promise("error-shape")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/ai",
        "/ai/",
        "/nothing",
        "/health/",
        "/HEALTH",
        f"{SESSIONS}/records/",
        f"{SESSIONS}/a/b/records",
        f"{SESSIONS}//records",
        f"{RUNS}/",
        f"{RUNS}/some-run/",
        f"{RUNS}/some-run/nothing",
        "/ai/relay//runs",
        "//ai/relay/settings",
        "/ai/relay/settings/x",
        "/.env",
        "/ai/../health",
    ],
)
def test_a_path_that_is_not_served_is_not_found(http: httpx2.Client, path: str) -> None:
    assert "/openapi.json" in refusal(http.get(path.replace("..", "%2e%2e")), 404)


def test_the_service_says_that_it_is_well(deployment: Deployment) -> None:
    with httpx2.Client(base_url=deployment.url, timeout=60) as stranger:
        answer = stranger.get("/health")
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", answer.json()["version"])


def test_the_openapi_document_describes_every_route_of_the_contract(deployment: Deployment) -> None:
    with httpx2.Client(base_url=deployment.url, timeout=60) as stranger:
        document = stranger.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1.")
    described = {
        (method.upper(), re.sub(r"{\w+}", "{}", path)) for path, item in document["paths"].items() for method in item
    }
    asked = set()
    for method, path in CALLS:
        plain = path.partition("?")[0].replace("agent_sessions", "{}")
        asked.add((method, plain.replace("some-session", "{}").replace("some-run", "{}")))
    assert asked <= described
    for path, item in document["paths"].items():
        for described_operation in item.values():
            assert (described_operation["security"] == []) == (path in {*OPEN_PATHS, "/ai/sign-in"})
