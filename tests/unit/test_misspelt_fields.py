"""A field that nobody knows is ignored, but not one that is plainly a misspelt other."""

from typing import Any

import pytest

from ctrlb.answers import Fields, validate
from ctrlb.audit import list_audit_events
from ctrlb.claims import claim, release
from ctrlb.domain.errors import Invalid
from ctrlb.keys import create_key
from ctrlb.operations import operation_of
from ctrlb.sessions import fetch_records
from ctrlb.settings import change_settings

RELEASE: dict[str, Any] = {"run_id": "r", "agent": "a", "resource": "a.py"}


def test_a_misspelt_field_is_refused_by_its_name() -> None:
    with pytest.raises(Invalid, match=r"^finish: there is no such field; finished is meant$"):
        validate(operation_of(release), Fields({**RELEASE, "finish": False}))
    with pytest.raises(Invalid, match="leaseSeconds is meant"):
        validate(operation_of(change_settings), Fields({"lease_seconds": 700}))


@pytest.mark.parametrize(
    ("operation", "given", "meant"),
    [
        (create_key, {"name": "k", "expires": 30}, "expires_days"),
        (change_settings, {"lease": 700}, "leaseSeconds"),
        (change_settings, {"silentAfter": 60}, "silentAfterSeconds"),
        (list_audit_events, {"user": "ann"}, "user_name"),
    ],
)
def test_the_first_words_of_a_field_are_refused(operation: Any, given: dict[str, Any], meant: str) -> None:
    with pytest.raises(Invalid, match=f"there is no such field; {meant} is meant"):
        validate(operation_of(operation), Fields(given))


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        (create_key, {"name": "k", "exp": 30}),
        (create_key, {"name": "k", "expires": 30, "expires_days": 30}),
        (create_key, {"name": "k", "expir": 30}),
        (fetch_records, {"session_id": "s", "seq_from": 1, "seq_to": 2, "session": "t"}),
    ],
)
def test_what_is_no_field_s_first_word_or_beside_it_is_ignored(operation: Any, given: dict[str, Any]) -> None:
    validate(operation_of(operation), Fields(given))


@pytest.mark.parametrize("extra", [{"finish": False, "finished": False}, {"note": "x"}, {"é" * 9: 1}, {"x" * 41: 1}])
def test_any_other_unknown_field_is_ignored(extra: dict[str, Any]) -> None:
    validate(operation_of(release), Fields({**RELEASE, **extra}))


def test_a_hundred_thousand_unknown_fields_are_not_compared_one_by_one() -> None:
    many = {f"resourc{number}": number for number in range(100_000)}
    with pytest.raises(Invalid, match="resource is meant"):
        validate(operation_of(claim), Fields({"run_id": "r", "agent": "a", **many}))
