"""What each operation asks of AWS, counted at the SDK: no call more than it needs, and the document says the same."""

from collections import Counter

import pytest

from tests.aws import costs
from tests.aws.costs import Counted


@pytest.fixture(scope="module")
def counts() -> dict[str, Counted]:
    with pytest.MonkeyPatch.context() as patch, costs.deployment(patch.setenv) as deployment:
        return {each.name: each for each in costs.counted(deployment)}


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("claim: a new key", {"PutItem": 1, "Query": 1}),
        ("claim: renewed", {"PutItem": 2, "Query": 2}),
        ("claim: refused", {"PutItem": 2, "Query": 1}),
        ("check: 1 path, free", {"Query": 1}),
        ("check: 64 paths, free", {"Query": 64}),
        ("release", {"PutItem": 1, "Query": 1}),
        ("release: nothing held", {"Query": 1}),
        ("post: 200 characters", {"PutItem": 1}),
        ("peers: 40 events", {"Query": 1}),
        ("upload_records: 500 rows, a session that is there", {"GetItem": 1, "BatchWriteItem": 20}),
        ("fetch_records: 50 rows", {"GetItem": 1, "Query": 1}),
        ("a caller who is new here, once in 15 s", {"GetItem": 3, "UpdateItem": 1}),
        ("a caller who called before", {}),
        ("get_settings", {}),
        ("list_audit_events: 50 events", {"Query": 1}),
        ("list_audit_events: 50 events of one person", {"Query": 1}),
        ("remove_role: 2 people", {"GetItem": 3, "Query": 1, "TransactWriteItems": 1}),
    ],
)
def test_an_operation_makes_no_call_more_than_it_needs(
    counts: dict[str, Counted], name: str, calls: dict[str, int]
) -> None:
    assert counts[name].cost.calls == Counter(calls)


def test_the_document_shows_what_is_counted(counts: dict[str, Counted]) -> None:
    assert costs.written_table() == costs.table(counts.values())
