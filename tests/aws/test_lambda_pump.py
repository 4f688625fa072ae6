"""The pump keeps AWS's rules, whatever the function behind it does."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aws.lambda_pump import Discarded, LambdaPump, Record, Rules, mapped, place_of

NOW_S = 1_793_000_000.0


def records(count: int, made_s: float = NOW_S) -> list[Record]:
    return [
        {"dynamodb": {"SequenceNumber": f"{place:03}", "ApproximateCreationDateTime": made_s, "Keys": {}}}
        for place in range(count)
    ]


def places(event: Mapping[str, Any]) -> list[str]:
    return [place_of(record) for record in event["Records"]]


def pump(function: Any, **rules: Any) -> LambdaPump:
    return LambdaPump(function, Rules(**rules), now_s=lambda: NOW_S)


def test_a_batch_comes_again_from_its_lowest_failure_on() -> None:
    answers = iter([["003", "002"], ["002"], []])
    pumped = pump(lambda event, _: {"batchItemFailures": [{"itemIdentifier": each} for each in next(answers)]})
    pumped.deliver(records(5))
    assert pumped.invocations == [["000", "001", "002", "003", "004"], ["002", "003", "004"], ["002", "003", "004"]]


def test_a_function_that_fails_on_one_record_is_given_the_others_without_it() -> None:
    def function(event: Mapping[str, Any], _: Any) -> None:
        if "002" in places(event):
            raise ValueError

    pumped = pump(function, max_retries=2)
    pumped.deliver(records(5))
    assert pumped.discarded == [Discarded(("002",), "RetryAttemptsExhausted")]
    assert pumped.invocations[-1] == ["003", "004"]


def test_an_answer_that_names_no_record_of_the_batch_is_a_failure_of_all() -> None:
    pumped = pump(lambda event, _: {"batchItemFailures": [{"itemIdentifier": ""}]}, max_retries=0, bisect=False)
    pumped.deliver(records(2))
    assert pumped.discarded == [Discarded(("000", "001"), "RetryAttemptsExhausted")]


def test_a_record_that_is_too_old_is_given_up() -> None:
    pumped = pump(lambda event, _: None, max_age_s=60)
    pumped.deliver(records(1, NOW_S - 61) + records(2, NOW_S - 59))
    assert pumped.discarded == [Discarded(("000",), "RecordAgeExceeded")]
    assert pumped.invocations == [["000", "001"]]


@pytest.mark.parametrize(
    ("mapping", "sk", "image", "delivered"),
    [
        ("IndexRowsOfSessions", "row#0000000000000001#0000000000", {"block_type": {"S": "text"}}, True),
        ("IndexRowsOfSessions", "row#0000000000000001#0000000000", None, True),
        ("IndexRowsOfSessions", "head", {"belongs_to": {"S": "ann"}}, False),
        ("ProjectRunsOfSessions", "row#0000000000000001#0000000000", {"run_id": {"S": "nightly"}}, True),
        ("ProjectRunsOfSessions", "row#0000000000000001#0000000000", {"block_type": {"S": "text"}}, False),
        ("ProjectRunsOfSessions", "row#0000000000000001#0000000000", None, False),
        ("ProjectRunsOfSessions", "head", {"belongs_to": {"S": "ann"}}, False),
        ("ProjectRunsOfRelay", "claim#00#0000000000", {"kind": {"S": "HOLD"}}, True),
        ("ProjectRunsOfRelay", "event#0001#x", {"kind": {"S": "NOTE"}}, True),
        ("ProjectRunsOfRelay", "head", {"events": {"N": "1"}}, False),
        ("ProjectRunsOfRelay", "agent#00#", {"user": {"S": "ann"}}, False),
        ("ProjectRunsOfRelay", "key#1:k", {"user": {"S": "ann"}}, False),
    ],
)
def test_the_filters_of_the_template_deliver_the_rows_that_a_function_is_for(
    mapping: str, sk: str, image: dict[str, Any] | None, delivered: bool
) -> None:
    _, wanted = mapped(mapping)
    change = {"Keys": {"pk": {"S": "p"}, "sk": {"S": sk}}, **({} if image is None else {"NewImage": image})}
    assert wanted({"eventName": "INSERT", "dynamodb": change}) == delivered


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.integers(1, 7), st.booleans(), st.lists(st.sampled_from(["fails", "first", "middle", "fine"]), max_size=30))
def test_every_record_is_over_once_and_in_order_whatever_fails(size: int, bisect: bool, fates: list[str]) -> None:
    fates = list(fates)
    over: list[str] = []

    def function(event: Mapping[str, Any], _: Any) -> dict[str, Any]:
        given, fate = places(event), fates.pop() if fates else "fine"
        if fate == "fails":
            raise RuntimeError
        done = {"first": 0, "middle": len(given) // 2, "fine": len(given)}[fate]
        over.extend(given[:done])
        return {"batchItemFailures": [{"itemIdentifier": each} for each in given[done:]]}

    pumped = pump(function, batch_size=size, bisect=bisect)
    pumped.deliver(records(12))
    assert over == [place_of(record) for record in records(12)]
    assert not pumped.discarded
