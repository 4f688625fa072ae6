"""What a refused request is told: which field, and what it should be, in words of ours."""

from typing import Any

import pytest

from ctrlb.answers import Fields, validate
from ctrlb.domain.errors import Invalid
from ctrlb.models import faults
from ctrlb.operations import OPERATIONS

AGENT = {"run_id": "r", "agent": "a"}
ROW = {"session_id": "s", "seq": 1}
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("claim", AGENT, "resource is required"),
    ("claim", {**AGENT, "resource": 5}, "resource: should be text"),
    ("claim", {**AGENT, "resource": ""}, "resource: should not be empty"),
    ("claim", {**AGENT, "resource": "x" * 4_097}, "resource: should have at most 4,096 characters"),
    ("check", {**AGENT, "paths": "a.py"}, "paths: should be an array"),
    ("check", {**AGENT, "paths": ["a.py"] * 65}, "paths: should have at most 64 items, not 65"),
    ("check", {**AGENT, "paths": ["a.py", ""]}, "paths[1]: should not be empty"),
    ("peers", {"run_id": "r", "limit": 501}, "limit: should be 500 or less"),
    ("peers", {"run_id": "r", "limit": 0}, "limit: should be 1 or more"),
    ("peers", {"run_id": "r", "limit": "5"}, "limit: should be a whole number"),
    ("release", {**AGENT, "resource": "a.py", "finished": 1}, "finished: should be true or false"),
    ("search_sessions", {"term": "abc", "order": "up"}, "order: should be 'newest' or 'oldest'"),
    ("create_key", {"name": "a\nb"}, "name: should hold printable characters only"),
    ("upload_records", {"records": {}}, "should be an array"),
    ("upload_records", {"records": [ROW, 5]}, "row 1: should be an object"),
    ("upload_records", {"records": [{"session_id": "s"}]}, "row 0: seq is required"),
    ("upload_records", {"records": [{**ROW, "cost_usd": "1"}]}, "row 0: cost_usd: should be a number"),
    ("post", {**AGENT, "text": "\ud800"}, "text: should be text, and holds half of a surrogate pair"),
    ("fetch_records", {"session_id": "s", "seq_from": -1, "seq_to": 1}, "seq_from: should be 0 or more"),
    (
        "upload_records",
        {"records": [{**ROW, "_timestamp": 2**60}]},
        "row 0: _timestamp: should be below 4,102,444,800,000,000",
    ),
]
IN_A_QUERY = [
    ({"limit": "many"}, "limit: should be a whole number"),
    ({"limit": "9" * 5_000}, "limit: should be a whole number of fewer digits"),
    ({"term": "abc", "one_per_session": "perhaps"}, "one_per_session: should be true or false"),
]


def told(name: str, fields: Fields) -> str:
    operation = next(each for each in OPERATIONS if each.name == name)
    with pytest.raises(Invalid) as error:
        validate(operation, fields)
    return error.value.message


@pytest.mark.parametrize(("name", "values", "said"), CASES)
def test_a_fault_is_told_with_its_field_and_what_it_should_be(name: str, values: dict[str, Any], said: str) -> None:
    assert told(name, Fields(values)) == said


@pytest.mark.parametrize(("values", "said"), IN_A_QUERY)
def test_a_fault_in_a_query_is_told_as_in_a_body(values: dict[str, str], said: str) -> None:
    assert told("search_sessions", Fields({"term": "abc", **values}, are_text=True)) == said


def test_every_fault_that_has_words_of_ours_is_met_here(monkeypatch: pytest.MonkeyPatch) -> None:
    met = set()

    class Asked(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            met.add(name)
            return super().__getitem__(name)

    monkeypatch.setattr(faults, "_WORDS", Asked(faults._WORDS))
    for name, values, _ in CASES:
        told(name, Fields(values))
    for values, _ in IN_A_QUERY:
        told("search_sessions", Fields({"term": "abc", **values}, are_text=True))
    assert met == set(faults._WORDS)
