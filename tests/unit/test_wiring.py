"""Which stores are chosen, and what a function imports for them: each waits only for what it uses."""

import os
import subprocess
import sys

import pytest

from ctrlb.adapters.search_off import SearchOff
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset
from tests.template import ROOT

DATASET = Dataset("acme", "agent_sessions")

AWS = {
    "RELAY_TABLE": "relay",
    "SESSIONS_TABLE": "sessions",
    "BODIES_BUCKET": "bodies",
    "AWS_DEFAULT_REGION": "eu-central-1",
}


def modules_after(code: str, **variables: str) -> set[str]:
    """The modules that are imported once the code has run in a process of its own."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CTRLB_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        cwd=ROOT,
        env={**bare, "PYTHONPATH": os.pathsep.join(["shared", "."]), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_laptop_mode_imports_nothing_of_aws(tmp_path: os.PathLike[str]) -> None:
    loaded = modules_after("import functions.claim", CTRLB_DATA=str(tmp_path))
    assert "ctrlb.adapters.sqlite_relay" in loaded
    assert not {"botocore.client", "boto3", "ctrlb.adapters.aws_stores"} & loaded


@pytest.mark.parametrize("operation", ["claim", "check", "peers", "upload_records", "search_sessions", "list_runs"])
def test_a_function_has_its_client_before_the_first_request_and_no_store_that_it_may_not_need(operation: str) -> None:
    loaded = modules_after(f"import functions.{operation}", **AWS)
    assert "botocore.client" in loaded
    stores = {"sqlite3", "boto3", "ctrlb.adapters.s3_bodies", "ctrlb.adapters.opensearch", "mcp"}
    assert not stores & loaded


@pytest.mark.parametrize("operation", ["get_sign_in", "health", "openapi", "refuse_unknown"])
def test_a_function_that_asks_no_store_does_not_wait_for_one(operation: str) -> None:
    assert "botocore.client" not in modules_after(f"import functions.{operation}", **AWS)


def test_a_page_of_the_console_waits_for_no_store_and_no_models() -> None:
    event = '{"rawPath": "/console/", "headers": {}, "requestContext": {"http": {"method": "GET"}}}'
    code = f"from functions.serve_console import handler\nassert handler({event}, None)['statusCode'] == 200"
    loaded = modules_after(code, **AWS)
    assert not {"botocore", "boto3", "pydantic", "aws_lambda_powertools", "jwt", "urllib3", "mcp"} & loaded


@pytest.mark.parametrize(
    ("store", "module"),
    [
        ("relay.append", "dynamodb_relay"),
        ("runs.agents", "dynamodb_runs"),
        ("sessions.write", "dynamodb_sessions"),
        ("identity.key", "dynamodb_identity"),
        ("index.search", "search_off"),
    ],
)
def test_a_store_is_imported_when_it_is_used(store: str, module: str) -> None:
    loaded = modules_after(f"from ctrlb.wiring import ports\nports().{store}", **AWS)
    adapters = {name.removeprefix("ctrlb.adapters.") for name in loaded if name.startswith("ctrlb.adapters.")}
    others = {"dynamodb_relay", "dynamodb_runs", "dynamodb_sessions", "dynamodb_identity", "search_off", "opensearch"}
    needed = {module, "dynamodb_relay"} if module == "dynamodb_runs" else {module}
    assert module in adapters
    assert not (others - needed) & adapters


def test_search_goes_to_the_index_that_is_named() -> None:
    code = "from ctrlb.wiring import ports\nports().index.search"
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    loaded = modules_after(code, SEARCH_URL="https://search.example", **AWS, **credentials)
    assert "ctrlb.adapters.opensearch_sessions" in loaded


def test_without_a_store_a_function_does_not_start() -> None:
    with pytest.raises(AssertionError, match="no store is configured: RELAY_TABLE names the table in AWS"):
        modules_after("import functions.claim")


def test_search_that_is_off_says_so_and_asks_for_no_quick_retry() -> None:
    with pytest.raises(Unavailable, match="search is off in this deployment") as off:
        SearchOff().search(DATASET, "term", user=None)
    assert off.value.retry_after_s >= 60
    with pytest.raises(Unavailable):
        SearchOff().commands(DATASET, "make", user=None, offset=0, limit=1)


@pytest.mark.parametrize(
    ("function", "used", "unused"),
    [
        ("index_rows", {"opensearch_writer"}, {"dynamodb_table", "dynamodb_relay", "opensearch_sessions"}),
        ("project_runs", {"dynamodb_projections"}, {"opensearch", "opensearch_writer", "search_rebuild"}),
    ],
)
def test_a_function_behind_a_stream_imports_what_it_writes_to_before_the_first_batch(
    function: str, used: set[str], unused: set[str]
) -> None:
    named = {"DEAD_LETTER_QUEUE": "queue", "SEARCH_URL": "https://search.example"}
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    loaded = modules_after(f"import functions.{function}", **named, **AWS, **credentials)
    adapters = {name.removeprefix("ctrlb.adapters.") for name in loaded if name.startswith("ctrlb.adapters.")}
    assert used <= adapters
    assert not unused & adapters
    assert not {"sqlite3", "boto3", "mcp"} & loaded


ISSUER = {"OIDC_ISSUER": "https://id.example.com", "OIDC_AUDIENCE": "client", "OIDC_WORKSPACE": "acme"}


def test_what_checks_the_tokens_of_an_issuer_is_imported_once_one_comes() -> None:
    code = "import functions.claim\nfrom ctrlb.wiring import ports\nassert ports().issuer"
    loaded = modules_after(code, **AWS, **ISSUER)
    assert not {"jwt", "cryptography"} & loaded


def test_for_whom_tokens_are_may_be_said_by_the_gateway_in_aws_and_nowhere_else(tmp_path: os.PathLike[str]) -> None:
    code = "from ctrlb.wiring import ports\nassert ports().issuer.client_id == ''"
    nameless = ISSUER | {"OIDC_AUDIENCE": ""}
    modules_after(code, **AWS, **nameless)
    with pytest.raises(AssertionError, match="OIDC_ISSUER needs OIDC_AUDIENCE"):
        modules_after(code, CTRLB_DATA=str(tmp_path), **nameless)


def test_no_issuer_is_trusted_that_nobody_named() -> None:
    modules_after("from ctrlb.wiring import ports\nassert ports().issuer is None", **AWS)
