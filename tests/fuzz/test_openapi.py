"""The OpenAPI document is true: whatever is sent, no 5xx, and no status or shape that it does not name."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ctrlb.openapi import document
from ctrlb.operations import OPERATIONS as TABLE
from tests.laptop import Laptop

EXAMPLES = 60
# Not that all a schema allows is accepted: that an id is printable, for one, no schema can say.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]

FOR_PERSONS = {row.name for row in TABLE if row.persons_only and row.name != "sign_out"}

SCHEMA = schemathesis.openapi.from_dict(document())
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)]


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    server = Laptop(tmp_path_factory.mktemp("fuzz"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def token(laptop: Laptop) -> str:
    """A person's, who may do what is refused to a key."""
    answer = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code}).json()
    return str(answer["token"])


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_one_that_the_document_names(
    operation: APIOperation[Any, Any, Any, Any], laptop: Laptop
) -> None:
    """Half of the requests keep the document's schemas, half break them."""
    credential = token if operation.definition.raw["operationId"] in FOR_PERSONS else laptop.key
    broken = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy() | broken)
    def send(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(base_url=laptop.url, headers={"Authorization": f"Bearer {credential}"}, checks=CHECKS)

    send()


@pytest.mark.slow
def test_the_fuzzing_reaches_every_operation() -> None:
    assert len(OPERATIONS) == sum(len(methods) for methods in document()["paths"].values())
