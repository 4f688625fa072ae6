"""template.yaml is what is deployed, so the project's rules for it are tests."""

from collections.abc import Iterator
from typing import Any

import pytest
from cfnlint.api import lint_file

from ctrlb.operations import OPERATIONS
from tests.template import RESOURCES, ROOT

DOORS = {"serve_mcp": ("ANY", "/mcp"), "refuse_unknown": (None, None)}
"""The functions that serve no single operation, with their routes."""


def _of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == kind}


FUNCTIONS = _of_type("AWS::Serverless::Function")


def _operation(function: str) -> str:
    return str(FUNCTIONS[function]["Handler"]).removesuffix(".handler")


def _routes() -> list[tuple[str, tuple[str | None, str | None]]]:
    """Each route as (operation, (method, path)); $default has neither."""
    events = [(name, event) for name, each in FUNCTIONS.items() for event in each["Events"].values()]
    return [
        (_operation(name), (event["Properties"].get("Method"), event["Properties"].get("Path")))
        for name, event in events
        if event["Type"] == "HttpApi"
    ]


def _statements(function: str) -> Iterator[dict[str, Any]]:
    """What the function's policies allow, the managed ones among them included."""
    for policy in FUNCTIONS[function].get("Policies", []):
        if "Ref" in policy:
            yield from RESOURCES[policy["Ref"]]["Properties"]["PolicyDocument"]["Statement"]
        else:
            yield from policy["Statement"]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


every_function = pytest.mark.parametrize("function", FUNCTIONS)


def test_cfn_lint_finds_nothing() -> None:
    assert lint_file(ROOT / "template.yaml") == []


def test_the_routes_are_those_of_the_operations() -> None:
    expected = {each.name: (each.method, each.path) for each in OPERATIONS if not each.laptop_only}
    assert dict(_routes()) == expected | DOORS


def test_no_two_functions_have_the_same_route() -> None:
    routes = [route for _, route in _routes()]
    assert len(routes) == len(set(routes))


@every_function
def test_a_function_is_named_after_its_operation(function: str) -> None:
    camel_case = "".join(word.capitalize() for word in _operation(function).split("_"))
    assert function == f"{camel_case}Function"


def test_every_handler_module_is_served() -> None:
    modules = {path.stem for path in (ROOT / "functions").glob("*.py")}
    only_on_laptops = {each.name for each in OPERATIONS if each.laptop_only}
    assert modules == {_operation(function) for function in FUNCTIONS} | only_on_laptops


@every_function
def test_a_function_has_a_log_group_of_its_own_that_forgets(function: str) -> None:
    group = FUNCTIONS[function]["LoggingConfig"]["LogGroup"]["Ref"]
    assert group == function.removesuffix("Function") + "Logs"
    assert RESOURCES[group]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@every_function
def test_a_function_may_do_only_what_its_policies_name(function: str) -> None:
    for statement in _statements(function):
        assert not [action for action in _listed(statement["Action"]) if "*" in action]
        # References to the template's own tables and bucket; a "*" would be plain text.
        assert all(isinstance(resource, dict) for resource in _listed(statement["Resource"]))


@every_function
def test_no_function_may_change_what_the_record_of_a_run_says(function: str) -> None:
    for statement in _statements(function):
        actions = _listed(statement["Action"])
        assert "dynamodb:DeleteItem" not in actions
        if "dynamodb:UpdateItem" in actions:
            attributes = statement["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
            assert set(attributes) <= {"pk", "sk", "last_used_us", "revoked_us"}


@pytest.mark.parametrize("table", _of_type("AWS::DynamoDB::Table"))
def test_a_table_can_be_followed_restored_and_outlives_its_stack(table: str) -> None:
    properties = RESOURCES[table]["Properties"]
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert RESOURCES[table]["DeletionPolicy"] == RESOURCES[table]["UpdateReplacePolicy"] == "Retain"
