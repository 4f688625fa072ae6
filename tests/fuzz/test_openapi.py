"""The OpenAPI document is true: whatever is sent, no 5xx, and no status or shape that it does not name.

Nor, whoever asks without the leave to read all, anything of somebody else's.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ctrlb.domain.access import ROLES as BUILT_IN
from ctrlb.domain.access import Caller
from ctrlb.keys import create_key
from ctrlb.laptop import WORKSPACE
from ctrlb.models import CreateKeyRequest
from ctrlb.openapi import document
from ctrlb.operations import OPERATIONS as TABLE
from ctrlb.ports import Ports
from ctrlb.wiring import embedded
from tests.conftest import add_member
from tests.laptop import Laptop

EXAMPLES = 60
FEWER_EXAMPLES = 30
# Not that all a schema allows is accepted: that an id is printable, for one, no schema can say.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]

FOR_PERSONS = {row.name for row in TABLE if row.persons_only and row.name != "sign_out"}

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]

SCHEMA = schemathesis.openapi.from_dict(document())
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)]


def id_of(operation: Operation) -> str:
    """The operation's name."""
    return str(operation.definition.raw["operationId"])


EACH_OPERATION = pytest.mark.parametrize("operation", OPERATIONS, ids=id_of)


ROLES = ("Admin", "Member", "Reader")
MARK = "nobodyelsesword"
"""What stands in the rows of somebody whose rows only an Admin sees."""
KNOWN = {"dataset": "agent_sessions", "session_id": "theirs", "run_id": "theirs"}
TELLING = {"term": MARK, "command": MARK, "seq": 1, "seq_from": 0, "seq_to": 9}
"""What to ask for their rows with."""


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A server with the rows of somebody who is not called from here: a session, in a run."""
    server = Laptop(tmp_path_factory.mktemp("fuzz"))
    with embedded(server.folder) as stores:
        theirs = key_of(stores, "somebody", "Member")
    call = {"session_id": KNOWN["session_id"], "seq": 1, "block_type": "tool_use", "run_id": KNOWN["run_id"]}
    rows = [{**call, "command": f"echo {MARK}", "tool_use_id": "1"}, {**call, "seq": 2, "body": MARK}]
    url = f"{server.url}/ai/sessions/{KNOWN['dataset']}/records"
    assert httpx2.post(url, json=rows, headers={"Authorization": f"Bearer {theirs}"}).status_code == 202
    yield server
    server.stop()


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server whose settings may change, and the token of a person, who may do there what is refused to a key."""
    server = Laptop(tmp_path_factory.mktemp("persons"))
    answer = httpx2.post(f"{server.url}/ai/sign-in", json={"code": server.sign_in_code}).json()
    yield server.url, str(answer["token"])
    server.stop()


@pytest.fixture(scope="module")
def keys(laptop: Laptop) -> dict[str, str]:
    """A key of each role."""
    with embedded(laptop.folder) as stores:
        return {role: key_of(stores, f"a {role}", role) for role in ROLES}


def key_of(stores: Ports, user: str, role: str) -> str:
    """The key of a new person."""
    add_member(stores, user, role, workspace=WORKSPACE)
    caller = Caller(WORKSPACE, user, BUILT_IN[role], stores.identity.settings(WORKSPACE))
    return create_key(CreateKeyRequest(name="k"), caller, stores).key


def send_all(operation: Operation, url: str, credential: str, look: Callable[[str], None], examples: int) -> None:
    """Send requests of which half keep the document's schemas and half break them, half of them for what is there."""
    broken = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy() | broken, known=st.booleans())
    def send(case: schemathesis.Case[Any], known: bool) -> None:
        if known:
            case.path_parameters.update((name, KNOWN[name]) for name in case.path_parameters if name in KNOWN)
            if isinstance(case.query, dict):
                case.query.update((name, TELLING[name]) for name in case.query if name in TELLING)
        response = case.call(base_url=url, headers={"Authorization": f"Bearer {credential}"})
        case.validate_response(response, checks=CHECKS)
        look(response.text)

    send()


def of_somebody_else(answer: str) -> None:
    assert MARK not in answer


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
@EACH_OPERATION
def test_every_answer_to_a_key_is_one_that_the_document_names_and_holds_no_row_of_anothers(
    operation: Operation, role: str, laptop: Laptop, keys: dict[str, str]
) -> None:
    look = (lambda answer: None) if role == "Admin" else of_somebody_else
    send_all(operation, laptop.url, keys[role], look, EXAMPLES if role == "Admin" else FEWER_EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("operation", [each for each in OPERATIONS if id_of(each) in FOR_PERSONS], ids=id_of)
def test_every_answer_to_a_person_is_one_that_the_document_names(operation: Operation, token: tuple[str, str]) -> None:
    send_all(operation, *token, lambda answer: None, EXAMPLES)


@pytest.mark.slow
def test_the_fuzzing_asks_for_what_is_not_to_be_seen(laptop: Laptop, keys: dict[str, str]) -> None:
    """Else no answer could hold it: an Admin is shown what the others are not."""
    found = {}
    for role in ROLES:
        address = f"{laptop.url}/ai/sessions/{KNOWN['dataset']}/{KNOWN['session_id']}/records?seq_from=0&seq_to=9"
        found[role] = MARK in httpx2.get(address, headers={"Authorization": f"Bearer {keys[role]}"}).text
    assert found == {"Admin": True, "Member": False, "Reader": False}


@pytest.mark.slow
def test_the_fuzzing_reaches_every_operation() -> None:
    assert len(OPERATIONS) == sum(len(methods) for methods in document()["paths"].values())
