"""From a claim or an upload to the list of runs: both streams on an emulator, the template's filters, the function."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.aws_client import unavailable
from ctrlb.adapters.dynamodb_items import item
from ctrlb.adapters.dynamodb_projections import DynamodbProjections
from ctrlb.adapters.dynamodb_relay import DynamodbRelay
from ctrlb.adapters.dynamodb_runs import DynamodbRuns
from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
from ctrlb.adapters.system import SystemClock, SystemRandomness
from ctrlb.domain.projections import Projection
from ctrlb.domain.rows import Run, SessionRow
from tests.aws.lambda_pump import LambdaPump, Record, Rules, mapped
from tests.aws.pump import Streams
from tests.aws.stores import client, made_bucket, made_table, table_name
from tests.aws.streamed import dead_letters, deployed
from tests.contract.relay_rows import DATASET, NOW_US, RUN, hold, note

pytestmark = pytest.mark.emulator

EDIT = SessionRow(
    ts_us=NOW_US + 9, session_id="s", seq=1, run_id=RUN.run_id, agent="a", block_type="tool_use", paths='["a.py"]'
)
MAPPINGS = {"RelayTable": "ProjectRunsOfRelay", "SessionsTable": "ProjectRunsOfSessions"}


class Projected:
    """A run in both tables, and the function that follows them."""

    def __init__(self, folder: Path, handler: Any) -> None:
        self.folder = folder
        self.table = made_table("RelayTable", folder)
        self.relay = DynamodbRelay(self.table, SystemClock(), SystemRandomness())
        self.sessions = DynamodbSessions(made_table("SessionsTable", folder), made_bucket(folder), SystemClock())
        self.runs = DynamodbRuns(self.table)
        self.handler = handler
        self.streams = {name: Streams(client("dynamodbstreams"), [table_name(name, folder)]) for name in MAPPINGS}
        self.pumps = {name: self._pump(*mapped(mapping)) for name, mapping in MAPPINGS.items()}
        self.delivered: dict[str, list[Record]] = {name: [] for name in MAPPINGS}

    def _pump(self, rules: Rules, wanted: Any) -> LambdaPump:
        return LambdaPump(lambda event, context: self.handler(event, context), rules, wanted=wanted)

    def follow(self) -> None:
        """Deliver what both streams hold."""
        for name, pump in self.pumps.items():
            records = list(self.streams[name].records())
            self.delivered[name] += records
            pump.deliver(records)

    def act(self) -> None:
        """A claim, a note and an edit."""
        self.relay.append(RUN, hold("file:a.py", 0))
        self.relay.add_events(RUN, note("hello"))
        self.sessions.write(DATASET, "ann", [EDIT, SessionRow(ts_us=NOW_US, session_id="other", seq=0)], NOW_US)

    def shown(self) -> Sequence[object]:
        """All that the Runs page shows."""
        return (
            self.runs.runs(DATASET, NOW_US, None, 10, None),
            self.runs.agents(RUN),
            self.runs.resources(RUN, 10),
            self.runs.edits(RUN, 10),
        )

    def invocations(self) -> int:
        return sum(len(pump.invocations) for pump in self.pumps.values())


@pytest.fixture
def projected(on_emulator: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Projected:
    made_table("RelayTable", tmp_path)
    made_table("SessionsTable", tmp_path)
    return Projected(tmp_path, deployed("project_runs", tmp_path, monkeypatch))


def test_a_run_is_listed_once_the_streams_have_brought_its_rows(projected: Projected) -> None:
    projected.act()
    assert projected.runs.runs(DATASET, NOW_US, None, 10, None) == []
    projected.follow()
    [run] = projected.runs.runs(DATASET, NOW_US, None, 10, None)
    assert (run.run_id, run.started_us, run.last_us, run.events) == (RUN.run_id, NOW_US, NOW_US + 9, 2)
    assert [edit.path for edit in projected.runs.edits(RUN, 10)] == ["a.py"]
    assert [row.key for row in projected.runs.resources(RUN, 10)[0]] == ["file:a.py"]


def test_what_the_function_writes_does_not_call_it_again(projected: Projected) -> None:
    projected.act()
    projected.follow()
    called = projected.invocations()
    projected.follow()
    assert projected.invocations() == called
    assert len(projected.delivered["RelayTable"]) > 2  # it did write to the table that it follows


def test_without_its_filters_the_function_ignores_what_it_wrote(projected: Projected) -> None:
    for pump in projected.pumps.values():
        pump.wanted = lambda record: True
    projected.act()
    projected.follow()
    shown = projected.shown()
    projected.follow()
    records = len(projected.delivered["RelayTable"])
    projected.follow()
    assert len(projected.delivered["RelayTable"]) == records
    assert projected.shown() == shown


def test_batches_that_come_again_in_any_order_change_nothing(projected: Projected) -> None:
    projected.act()
    for number in range(1, 12):
        projected.relay.add_events(RUN, note(f"note {number}", ts_us=NOW_US + number))
    projected.follow()
    shown = projected.shown()
    shuffled = random.Random(3)
    for name, pump in projected.pumps.items():
        again = [record for record in projected.delivered[name] if pump.wanted(record)] * 2
        shuffled.shuffle(again)
        pump.rules = Rules(batch_size=4)
        pump.deliver(again)
    assert projected.shown() == shown


def test_a_table_that_is_busy_holds_the_stream_and_loses_nothing(
    projected: Projected, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    add = DynamodbProjections.add

    def busy_at_first(self: DynamodbProjections, found: Mapping[Run, Projection]) -> set[Run]:
        tries.append(1)
        if len(tries) in (1, 3):
            add(self, found)  # all of it, and then the answer is lost
        if len(tries) <= 3:
            raise unavailable()
        return add(self, found)

    monkeypatch.setattr(DynamodbProjections, "add", busy_at_first)
    projected.act()
    projected.follow()
    [run] = projected.runs.runs(DATASET, NOW_US, None, 10, None)
    assert run.events == 2
    assert [pump.discarded for pump in projected.pumps.values()] == [[], []]


def test_a_row_that_cannot_be_read_is_set_aside_and_the_rest_goes_on(projected: Projected) -> None:
    broken = item(pk=places.run_pk(RUN), sk=f"{places.EVENT_PREFIX}1#x", kind="NOTE", text="a secret")
    projected.table.put(broken)
    projected.act()
    projected.follow()
    [letter] = dead_letters("project_runs", projected.folder)
    assert (letter["function"], letter["key"]["sk"]) == ("project_runs", f"{places.EVENT_PREFIX}1#x")
    assert "secret" not in str(letter)
    assert len(projected.runs.runs(DATASET, NOW_US, None, 10, None)) == 1
