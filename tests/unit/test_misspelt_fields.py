"""A field that nobody knows is ignored, but not one that is plainly a misspelt other."""

from typing import Any

import pytest

from ctrlb.answers import Fields, validate
from ctrlb.claims import claim, release
from ctrlb.domain.errors import Invalid
from ctrlb.operations import operation_of
from ctrlb.settings import change_settings

RELEASE: dict[str, Any] = {"run_id": "r", "agent": "a", "resource": "a.py"}


def test_a_misspelt_field_is_refused_by_its_name() -> None:
    with pytest.raises(Invalid, match=r"^finish: there is no such field; finished is meant$"):
        validate(operation_of(release), Fields({**RELEASE, "finish": False}))
    with pytest.raises(Invalid, match="leaseSeconds is meant"):
        validate(operation_of(change_settings), Fields({"lease_seconds": 700}))


@pytest.mark.parametrize("extra", [{"finish": False, "finished": False}, {"note": "x"}, {"é" * 9: 1}, {"x" * 41: 1}])
def test_any_other_unknown_field_is_ignored(extra: dict[str, Any]) -> None:
    validate(operation_of(release), Fields({**RELEASE, **extra}))


def test_a_hundred_thousand_unknown_fields_are_not_compared_one_by_one() -> None:
    many = {f"resourc{number}": number for number in range(100_000)}
    with pytest.raises(Invalid, match="resource is meant"):
        validate(operation_of(claim), Fields({"run_id": "r", "agent": "a", **many}))
