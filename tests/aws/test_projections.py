"""What is projected of a run, on moto: counted once however it is delivered, and not from the start each time."""

from dataclasses import replace
from pathlib import Path

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from ctrlb.adapters import dynamodb_projections
from ctrlb.adapters.aws_client import DYNAMODB_CONFIG, connect
from ctrlb.adapters.dynamodb_keys import at, run_pk
from ctrlb.adapters.dynamodb_projections import DynamodbProjections, session_fact
from ctrlb.adapters.dynamodb_relay import event_item
from ctrlb.adapters.dynamodb_runs import DynamodbRuns
from ctrlb.adapters.dynamodb_session_items import stored_row
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.runs_follower import RUN_FULL, RunsFollower
from ctrlb.domain.projections import Fact, RelayFact, project
from ctrlb.domain.rows import Run, SessionRow
from ctrlb.domain.streams import DONE, Change
from tests.aws.conftest import Deployed
from tests.aws.network import Network, fails
from tests.aws.stores import made_table, table_name
from tests.contract.relay_rows import DATASET, NOW_US, RUN, note

MINUTE_US = 60_000_000
EDIT = SessionRow(ts_us=NOW_US, session_id="s", seq=1, run_id=RUN.run_id, block_type="tool_use", paths='["a.py"]')


@pytest.fixture
def projections(deployed: Deployed, tmp_path: Path) -> DynamodbProjections:
    return DynamodbProjections(made_table("RelayTable", tmp_path))


@pytest.fixture
def runs(deployed: Deployed, tmp_path: Path) -> DynamodbRuns:
    return DynamodbRuns(made_table("RelayTable", tmp_path))


def posted(deployed: Deployed, minute: int) -> RelayFact:
    event = note("hello", ts_us=NOW_US + minute * MINUTE_US)
    deployed.relay.add_events(RUN, event)
    return RelayFact(RUN, event, str(event.ts_us))


def uploaded(row: SessionRow, written_us: int) -> Fact:
    def no_object(key: str) -> bytes:
        raise AssertionError(key)

    return session_fact(stored_row(DATASET, "ann", row, written_us).item, no_object)


def test_events_are_counted_exactly_while_old_ones_are_not_counted_again(
    deployed: Deployed,
    projections: DynamodbProjections,
    runs: DynamodbRuns,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dynamodb_projections, "COUNTED_ANEW", 5)
    facts = []
    for minute in range(40):
        facts.append(posted(deployed, minute))
        if minute % 3 == 0:
            projections.add(project(facts[-2:]))
            summary = runs.run(RUN, NOW_US, None)
            assert summary is not None
            assert summary.events == minute + 1
    posted(deployed, 38)  # a server whose clock is behind
    projections.add(project(facts))
    summary = runs.run(RUN, NOW_US, None)
    assert summary is not None
    assert summary.events == 41


def test_adding_what_is_known_writes_nothing(deployed: Deployed, tmp_path: Path) -> None:
    client = connect("dynamodb", DYNAMODB_CONFIG)
    network = Network(client)
    projections = DynamodbProjections(Table(client, table_name("RelayTable", tmp_path)))
    facts = project([posted(deployed, 0), posted(deployed, 1)])
    projections.add(facts)
    assert network.sent.count("PutItem") == 2  # the agent's activity, and the head of the run
    network.sent.clear()
    projections.add(facts)
    assert sorted(network.sent) == ["GetItem", "GetItem", "Query"]


@pytest.mark.parametrize("late", [False, True], ids=["in order", "the older one later"])
def test_edits_that_a_later_version_took_back_are_gone(
    projections: DynamodbProjections, runs: DynamodbRuns, late: bool
) -> None:
    first, later = (
        uploaded(EDIT, 1),
        uploaded(SessionRow(NOW_US + 9, "s", 1, run_id=RUN.run_id, block_type="tool_use"), 2),
    )
    projections.add(project([first]))
    assert [edit.path for edit in runs.edits(RUN, 9)] == ["a.py"]
    projections.add(project([later]))
    if late:
        projections.add(project([first]))
    assert runs.edits(RUN, 9) == []


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_a_failed_call_made_no_edit_in_whatever_order_its_rows_are_delivered(
    projections: DynamodbProjections, runs: DynamodbRuns, order: tuple[int, ...]
) -> None:
    """The result is there in two versions, of which the later one says that the call failed."""
    call = replace(EDIT, tool_use_id="call")
    result = SessionRow(NOW_US, "s", 2, run_id=RUN.run_id, block_type="tool_result", tool_use_id="call")
    facts = [uploaded(call, 1), uploaded(result, 1), uploaded(replace(result, is_error=True), 2)]
    for which in (*order, *order):
        projections.add(project([facts[which]]))
    assert runs.edits(RUN, 9) == []


def test_batches_that_change_a_run_at_once_are_all_in_it(
    deployed: Deployed, projections: DynamodbProjections, runs: DynamodbRuns, tmp_path: Path
) -> None:
    """The functions of the two streams meet: between a read and the write after it, the other one writes."""
    client = connect("dynamodb", DYNAMODB_CONFIG)
    network = Network(client)
    meetings = iter(range(1, 4))

    def meet(event_name: str, request: AWSPreparedRequest) -> None:
        if event_name.endswith("PutItem") and (minute := next(meetings, None)):
            projections.add(project([uploaded(replace(EDIT, ts_us=NOW_US + minute * MINUTE_US, agent="a"), NOW_US)]))

    network.always = meet
    DynamodbProjections(Table(client, table_name("RelayTable", tmp_path))).add(project([posted(deployed, 0)]))
    assert next(meetings, None) is None
    summary = runs.run(RUN, NOW_US, None)
    assert summary is not None
    assert (summary.started_us, summary.last_us, summary.events) == (NOW_US, NOW_US + 3 * MINUTE_US, 1)


def test_a_run_that_takes_no_more_rows_does_not_hold_those_that_do(
    deployed: Deployed, runs: DynamodbRuns, tmp_path: Path
) -> None:
    client = connect("dynamodb", DYNAMODB_CONFIG)
    network = Network(client)
    follower = RunsFollower(DynamodbProjections(Table(client, table_name("RelayTable", tmp_path))), lambda key: b"")
    full = Run(DATASET, "full")
    changes = []
    for place, run in enumerate((full, RUN, full)):
        event = note("hello", ts_us=NOW_US + place)
        image = event_item(run, event, at(event.ts_us, event.ts_us, str(place)))
        changes.append(Change(str(place), {"pk": run_pk(run), "sk": image["sk"]["S"]}, NOW_US, image))

    def of_one_run(event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
        is_full = event_name.endswith("PutItem") and run_pk(full) in str(request.body)
        return fails(400, "ItemCollectionSizeLimitExceededException")(event_name, request) if is_full else None

    network.always = of_one_run
    assert follower.take(changes) == [RUN_FULL, DONE, RUN_FULL]
    assert runs.run(RUN, NOW_US, None) is not None
