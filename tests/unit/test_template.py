"""template.yaml is what is deployed, so the project's rules for it are tests."""

import json
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Any

import pytest
from cfnlint.api import lint_file

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters import oidc_issuer
from ctrlb.domain.rows import Dataset, Run
from ctrlb.edge.identity import CLIENT_VARIABLE
from ctrlb.edge.limits import REQUESTS_PER_S
from ctrlb.operations import OPERATIONS
from ctrlb.wiring import OIDC_ISSUER
from tests.template import RESOURCES, ROOT, TEMPLATE

DOORS = [
    ("serve_mcp", ("ANY", "/mcp")),
    *(("serve_console", ("ANY", path)) for path in ("/", "/console", "/console/", "/console/{file}")),
    ("refuse_unknown", (None, None)),
]
"""The functions that serve no single operation, with their routes."""


def _of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == kind}


FUNCTIONS = _of_type("AWS::Serverless::Function")
ALARMS = _of_type("AWS::CloudWatch::Alarm")


def _operation(function: str) -> str:
    return str(FUNCTIONS[function]["Handler"]).removesuffix(".handler")


def _routes() -> list[tuple[str, tuple[str | None, str | None]]]:
    """Each route as (operation, (method, path)); $default has neither."""
    events = [(name, event) for name, each in FUNCTIONS.items() for event in each.get("Events", {}).values()]
    return [
        (_operation(name), (event["Properties"].get("Method"), event["Properties"].get("Path")))
        for name, event in events
        if event["Type"] == "HttpApi"
    ]


def _chosen(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The value, or what a condition chooses between; nothing where it chooses to leave the place empty."""
    if "If" in value:
        for choice in value["If"][1:]:
            yield from _chosen(choice)
    elif value != {"Ref": "AWS::NoValue"}:
        yield value


def _statements(function: str) -> Iterator[dict[str, Any]]:
    """What the function's policies allow, the managed ones among them included."""
    for policy in FUNCTIONS[function].get("Policies", []):
        for chosen in _chosen(policy):
            document = RESOURCES[chosen["Ref"]]["Properties"]["PolicyDocument"] if "Ref" in chosen else chosen
            for statement in document["Statement"]:
                yield from _chosen(statement)


def _named(value: Any, kind: str) -> set[str]:
    """The resources that the value refers to by `kind`, at any depth."""
    if isinstance(value, dict):
        here = {value[kind]} if isinstance(value.get(kind), str) else set()
        return here | {each for inner in value.values() for each in _named(inner, kind)}
    return {each for inner in value for each in _named(inner, kind)} if isinstance(value, list) else set()


def _awaited(value: Any) -> set[str]:
    """The resources that have to be there before one that is described so."""
    attributes = {each.partition(".")[0] for each in _named(value, "GetAtt")}
    inside = {name for each in _named(value, "Sub") for name in re.findall(r"\${(\w+)", each)}
    return (_named(value, "Ref") | attributes | inside) & RESOURCES.keys()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


every_function = pytest.mark.parametrize("function", FUNCTIONS)


def test_cfn_lint_finds_nothing() -> None:
    assert lint_file(ROOT / "template.yaml") == []


def test_the_routes_are_those_of_the_operations() -> None:
    expected = [(each.name, (each.method, each.path)) for each in OPERATIONS if not each.laptop_only]
    assert sorted(_routes(), key=str) == sorted(expected + DOORS, key=str)


def test_no_two_functions_have_the_same_route() -> None:
    routes = [route for _, route in _routes()]
    assert len(routes) == len(set(routes))


def test_no_resource_waits_for_one_that_waits_for_it() -> None:
    """An API is made of its functions' addresses; its stage, which has the variables, comes after it."""
    waits = {name: _awaited(each) for name, each in RESOURCES.items()}
    for name, function in FUNCTIONS.items():
        waits[name] = _awaited({**TEMPLATE["Globals"]["Function"], **function, "Events": None})
    api = {name: value for name, value in RESOURCES["Api"]["Properties"].items() if name != "StageVariables"}
    waits["Api"] = _awaited(api) | {name for name, each in FUNCTIONS.items() if each.get("Events")}
    TopologicalSorter(waits).prepare()


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
def test_what_a_function_may_do_with_the_relay_table_ends_at_a_kind_of_key(function: str) -> None:
    """Runs, identities and sign-ins share the table; the keys of what an index lists are its own."""
    for statement in _statements(function):
        on_table = [each for each in _listed(statement["Resource"]) if each == {"GetAtt": "RelayTable.Arn"}]
        if on_table:
            prefixes = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
            assert set(prefixes) <= {"run#*", "workspace#*", "sign-in#*"}


def test_the_kinds_of_keys_that_policies_name_are_those_of_the_table() -> None:
    run = Run(Dataset("acme", "agent_sessions"), "nightly")
    assert places.run_pk(run).startswith("run#")
    assert places.workspace_pk("acme").startswith("workspace#")
    assert places.sign_in_pk("0" * 64).startswith("sign-in#")


@every_function
def test_a_function_that_may_ask_the_search_service_is_one_that_does(function: str) -> None:
    asks = any("es:ESHttpPost" in _listed(statement["Action"]) for statement in _statements(function))
    assert asks == (_operation(function) in {"search_sessions", "find_command", "serve_mcp", "index_rows"})


FOLLOWERS = _of_type("AWS::Lambda::EventSourceMapping")
"""What calls a function for the rows that a table's stream brings."""

every_follower = pytest.mark.parametrize("follower", FOLLOWERS)


def test_functions_without_a_route_follow_streams() -> None:
    following = {each["FunctionName"]["Ref"] for each in FOLLOWERS.values()}
    assert following == {name for name, each in FUNCTIONS.items() if not each.get("Events")}


@every_follower
def test_what_follows_a_stream_loses_nothing_and_blocks_nothing(follower: str) -> None:
    """It is told where to resume, halves a batch that crashes, and puts what is too old into a queue with an alarm."""
    properties = FOLLOWERS[follower]
    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert properties["BisectBatchOnFunctionError"] is True
    assert properties["StartingPosition"] == "TRIM_HORIZON"
    assert 0 < properties["MaximumRecordAgeInSeconds"] < 24 * 3600  # how long a stream keeps its records
    function = properties["FunctionName"]["Ref"]
    queue = function.removesuffix("Function") + "Failures"
    assert properties["DestinationConfig"]["OnFailure"]["Destination"] == {"GetAtt": f"{queue}.Arn"}
    assert FUNCTIONS[function]["Environment"]["Variables"]["DEAD_LETTER_QUEUE"] == {"Ref": queue}
    assert {"GetAtt": f"{queue}.Arn"} in [each["Resource"] for each in _statements(function)]
    ages = [alarm for alarm in ALARMS.values() if alarm.get("MetricName") == "IteratorAge"]
    assert function in _named(ages, "Ref")


@every_follower
def test_what_follows_a_stream_is_called_for_rows_by_their_keys(follower: str) -> None:
    [criteria] = FOLLOWERS[follower]["FilterCriteria"]["Filters"]
    wanted = json.loads(criteria["Pattern"])["dynamodb"]["Keys"]["sk"]["S"]
    written = {places.ROW_PREFIX, places.CLAIM_PREFIX, places.EVENT_PREFIX}
    assert {each["prefix"] for each in wanted} <= written


@every_function
def test_no_function_may_change_what_the_record_of_a_run_says(function: str) -> None:
    for statement in _statements(function):
        actions = _listed(statement["Action"])
        if "dynamodb:DeleteItem" in actions:
            assert _operation(function) == "remove_role"
            assert statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] == ["workspace#*"]
        if "dynamodb:UpdateItem" in actions:
            attributes = statement["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
            assert set(attributes) <= {"pk", "sk", "last_used_us", "revoked_us"}


@pytest.mark.parametrize("table", _of_type("AWS::DynamoDB::Table"))
def test_a_table_can_be_followed_restored_and_outlives_its_stack(table: str) -> None:
    properties = RESOURCES[table]["Properties"]
    images = "NEW_AND_OLD_IMAGES" if table == "SessionsTable" else "NEW_IMAGE"
    assert properties["StreamSpecification"] == {"StreamViewType": images}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert RESOURCES[table]["DeletionPolicy"] == RESOURCES[table]["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize("queue", _of_type("AWS::SQS::Queue"))
def test_a_queue_is_encrypted_keeps_long_and_has_an_alarm(queue: str) -> None:
    properties = RESOURCES[queue]["Properties"]
    assert properties["SqsManagedSseEnabled"] is True
    assert properties["MessageRetentionPeriod"] == 14 * 24 * 3600
    watched = [alarm for alarm in ALARMS.values() if f"{queue}.QueueName" in _named(alarm.get("Dimensions"), "GetAtt")]
    assert [alarm["MetricName"] for alarm in watched] == ["ApproximateNumberOfMessagesVisible"]


@every_function
def test_the_errors_of_a_function_have_one_alarm(function: str) -> None:
    watching = [
        name
        for name, alarm in ALARMS.items()
        if function in _named(alarm, "Ref") and alarm.get("MetricName", "Errors") == "Errors"
    ]
    assert len(watching) == 1


@pytest.mark.parametrize("alarm", _of_type("AWS::CloudWatch::Alarm"))
def test_an_alarm_says_what_is_wrong_and_tells_the_topic_twice(alarm: str) -> None:
    properties = ALARMS[alarm]
    assert alarm.endswith("Alarm")
    assert properties["AlarmDescription"]
    assert properties["AlarmActions"] == properties["OKActions"] == [{"Ref": "Notices"}]


def test_an_alarm_counts_every_metric_that_it_names() -> None:
    for alarm in ALARMS.values():
        [errors, *counted] = alarm.get("Metrics", [{"Id": "errors", "Expression": ""}])
        assert errors["Expression"] == " + ".join(metric["Id"] for metric in counted)
        assert len(counted) < 10  # an alarm has at most ten


def test_functions_that_start_from_a_snapshot_are_those_that_agents_wait_for() -> None:
    published = {_operation(name) for name, each in FUNCTIONS.items() if "AutoPublishAlias" in each}
    assert published == {"claim", "check", "serve_mcp"}
    for each in FUNCTIONS.values():
        published_so = ("AutoPublishAlias", "AutoPublishAliasAllProperties", "SnapStart", "VersionDeletionPolicy")
        assert len({name in each for name in published_so}) == 1


def test_the_defaults_are_the_cheaper_processor_and_a_python_that_snapstart_serves() -> None:
    parameters = TEMPLATE["Parameters"]
    assert parameters["Architecture"]["Default"] == "arm64"
    assert parameters["Runtime"]["Default"] in {"python3.12", "python3.13", "python3.14"}


def test_what_a_parameter_is_for_is_said() -> None:
    assert [name for name, each in TEMPLATE["Parameters"].items() if not each.get("Description")] == []


def test_people_sign_in_with_a_pool_of_the_stack_or_with_an_issuer_that_is_named() -> None:
    variables = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]
    stage = RESOURCES["Api"]["Properties"]["StageVariables"]
    for named, of_the_pool in ((variables["OIDC_ISSUER"], "Sub"), (stage[CLIENT_VARIABLE], "Ref")):
        condition, pool, another = named["If"]
        assert (condition, set(pool), set(another)) == ("WithUserPool", {of_the_pool}, {"Ref"})
    read = {OIDC_ISSUER, oidc_issuer.OIDC_CLAIM, oidc_issuer.OIDC_WORKSPACE}
    assert {name for name in variables if name.startswith("OIDC_")} == read
    assert set(stage) == {oidc_issuer.OIDC_AUDIENCE}
    assert REQUESTS_PER_S in variables


def test_people_come_back_to_the_consoles_own_address_unless_more_are_named() -> None:
    (client,) = _of_type("AWS::Cognito::UserPoolClient").values()
    own = TEMPLATE["Outputs"]["ConsoleUrl"]["Value"]
    assert client["CallbackURLs"] == client["LogoutURLs"]
    assert client["CallbackURLs"][0] == own
    assert client["CallbackURLs"][1]["If"][2] == {"Ref": "AWS::NoValue"}


def test_nobody_signs_up_by_themselves_and_no_secret_is_in_a_page() -> None:
    (pool,) = _of_type("AWS::Cognito::UserPool").values()
    (client,) = _of_type("AWS::Cognito::UserPoolClient").values()
    assert pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    assert pool["UserAttributeUpdateSettings"] == {"AttributesRequireVerificationBeforeUpdate": ["email"]}
    assert client["AllowedOAuthFlows"] == ["code"]
    assert client["GenerateSecret"] is False
    assert "ALLOW_USER_PASSWORD_AUTH" not in client["ExplicitAuthFlows"]
    assert client["PreventUserExistenceErrors"] == "ENABLED"
