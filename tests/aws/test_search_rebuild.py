"""A search index made anew on a real node from a table on an emulator, while uploads go on."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters import search_filling, search_rebuild
from ctrlb.adapters.aws_client import StoreRefused
from ctrlb.adapters.dynamodb_items import item
from ctrlb.adapters.opensearch import json_bytes
from ctrlb.adapters.opensearch_indices import DatasetIndices, OpenSearchIndices
from ctrlb.adapters.opensearch_writer import OpenSearchWriter
from ctrlb.adapters.search_rebuild import OpenSearchRebuild
from ctrlb.adapters.system import SystemClock
from ctrlb.domain.errors import NotFound, Unavailable
from ctrlb.domain.rows import Dataset
from ctrlb.domain.search_documents import Document, document_id, index_alias
from ctrlb.domain.streams import DONE, Outcome
from tests.aws.lambda_pump import Rules
from tests.aws.search_gate import Gate, Request, answers, half_answers, open_gate, passed
from tests.aws.stores import client, made_bucket, table_name
from tests.aws.streamed import PATIENT_S, Indexed, deployed
from tests.contract.session_rows import NOW_US, said
from tests.opensearch.node import OpenSearchNode
from tests.template import ROOT

pytestmark = pytest.mark.emulator

KILL_TIMEOUT_S = 60


@pytest.fixture
def gate(opensearch_node: OpenSearchNode) -> Iterator[Gate]:
    with open_gate(opensearch_node.url) as gate:
        yield gate


@pytest.fixture
def indexed(
    on_emulator: None, opensearch_node: OpenSearchNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Indexed:
    """A dataset with a few rows, some of which the index has lost, and one that it should not have."""
    handler = deployed("index_rows", tmp_path, monkeypatch, SEARCH_URL=opensearch_node.url)
    indexed = Indexed(tmp_path, opensearch_node.url, handler, Rules(batch_size=20))
    indexed.write([said("one", seq, f"words {seq}") for seq in range(40)], NOW_US)
    indexed.write([said("two", 0, "words of bob")], NOW_US, user="bob")
    indexed.follow()
    for seq in range(10):
        lost = {"delete": {"_id": _id(indexed, seq), "version": NOW_US + 1, "version_type": "external"}}
        assert indexed.service.ask("POST", f"/{index_alias(indexed.dataset)}/_bulk", _lines(lost)).status == 200
    assert len(indexed.found("words")) == 31
    return indexed


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few rows are many pages, and each is noted."""
    monkeypatch.setattr(search_filling, "PAGE_ITEMS", 3)
    monkeypatch.setattr(search_filling, "NOTE_EVERY_S", 0.0)


class Writer(OpenSearchWriter):
    """Before each writing into the new index something else happens."""

    before: Callable[[], None]

    def index_next(self, documents: list[Document]) -> list[Outcome]:  # type: ignore[override]
        self.before()
        return super().index_next(documents)


def rebuild_of(
    indexed: Indexed, url: str | None = None, before: Callable[[], None] = lambda: None
) -> OpenSearchRebuild:
    service = indexed.service if url is None else type(indexed.service)(url, timeout_s=PATIENT_S)
    writer = Writer(service)
    writer.before = before
    fetch = made_bucket(indexed.folder).get
    return OpenSearchRebuild(indexed.table, fetch, OpenSearchIndices(service), writer, SystemClock())


def rebuild(indexed: Indexed, url: str | None = None, before: Callable[[], None] = lambda: None) -> list[str]:
    """What the rebuild tells."""
    told: list[str] = []
    rebuild_of(indexed, url, before).run(indexed.dataset, told.append)
    return told


def names(indexed: Indexed) -> dict[str, list[str]]:
    """The aliases of each of the dataset's indices."""
    found = indexed.service.ask("GET", f"/{index_alias(indexed.dataset)}-*", filter_path="*.aliases").content
    return {
        name[-2:]: [alias[len(index_alias(indexed.dataset)) :] for alias in of["aliases"]] for name, of in found.items()
    }


def test_the_new_index_holds_what_the_table_does_and_takes_the_old_ones_place(indexed: Indexed) -> None:
    told = rebuild(indexed)
    assert sorted(indexed.found("words")) == sorted([f"words {seq}" for seq in range(40)] + ["words of bob"])
    assert names(indexed) == {"v2": [""]}
    alias = index_alias(indexed.dataset)
    assert told[-3:] == [
        f"{alias}-v2 has 41 rows, 41 of them read from the table",
        f"{alias}-v2 is searched from now on",
        f"removed {alias}-v1",
    ]
    rebuild(indexed)
    assert names(indexed) == {"v3": [""]}


def test_another_dataset_of_the_table_is_left_alone(indexed: Indexed) -> None:
    other = Indexed(indexed.folder, indexed.node_url, indexed.handler, Rules())
    other.write([said("one", 0, "other words")], NOW_US)
    indexed.follow()
    rebuild(indexed)
    assert other.found("words") == ["other words"]
    assert "other words" not in indexed.found("words")
    assert names(other) == {"v1": [""]}


def test_what_is_uploaded_sent_again_or_removed_meanwhile_is_in_the_new_index_as_it_is_in_the_table(
    indexed: Indexed, small_pages: None
) -> None:
    told: list[str] = []
    turns = iter(range(1_000))
    lock = threading.Lock()

    def meanwhile() -> None:
        with lock:
            turn = next(turns)
            indexed.write([said("three", turn, f"words meanwhile {turn}")], NOW_US)
            if turn < 30:
                indexed.write([said("one", turn, f"words again {turn}")], NOW_US + 2)
            if turn in (7, 11):
                key = item(pk=places.session_pk(indexed.dataset, "one"), sk=places.row_sk(39 - turn, 0))
                client("dynamodb").delete_item(TableName=table_name("SessionsTable", indexed.folder), Key=key)
            if turn % 2:  # the stream is sometimes ahead of the reading, and sometimes behind
                indexed.follow()

    rebuild_of(indexed, before=meanwhile).run(indexed.dataset, told.append)
    indexed.follow()
    assert sorted(indexed.found("words")) == sorted(_bodies(indexed))
    assert names(indexed) == {"v2": [""]}
    assert len(told) > 10


def test_a_rebuild_that_was_ended_goes_on_where_it_was(indexed: Indexed, small_pages: None) -> None:
    written: list[int] = []

    def ends() -> None:
        written.append(1)
        if len(written) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(indexed, before=ends)
    assert names(indexed) == {"v1": [""], "v2": ["-next"]}
    assert len(indexed.found("words")) == 31
    indexed.write([said("one", 0, "words again")], NOW_US + 2)
    indexed.follow()
    told = rebuild(indexed)
    assert "filling" in told[0]
    assert " 0 rows read" not in told[0]
    assert sorted(indexed.found("words")) == sorted(_bodies(indexed))
    assert names(indexed) == {"v2": [""]}


def test_the_command_killed_in_the_middle_goes_on_and_ends(
    indexed: Indexed, gate: Gate, emulator: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.write([said("many", seq, f"words {seq}") for seq in range(500)], NOW_US)
    held, go_on = threading.Event(), threading.Event()

    def hold(request: object) -> None:
        held.set()
        go_on.wait(KILL_TIMEOUT_S)

    command = [sys.executable, "-m", "ctrlb", "index", "rebuild"]
    command += ["--dataset", indexed.dataset.name, "--workspace", indexed.dataset.workspace]
    environment = {**os.environ, "SEARCH_URL": gate.url, "PYTHONPATH": "shared"}
    gate.fates = [hold] * 100
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert held.wait(KILL_TIMEOUT_S)
        process.send_signal(signal.SIGKILL)
        process.wait()
    gate.fates = []
    go_on.set()
    assert names(indexed) == {"v1": [""], "v2": ["-next"]}
    indexed.follow()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "541 of them read from the table" in done.stderr
    assert len(indexed.found("words")) == 541
    assert names(indexed) == {"v2": [""]}


@pytest.mark.parametrize(
    ("started", "number"),
    [
        pytest.param("before", 0, id="asked before"),
        pytest.param("during", 0, id="for the old index"),
        pytest.param("during", 1, id="for the new index"),
    ],
)
def test_a_request_of_the_stream_that_is_late_loses_nothing(
    indexed: Indexed, gate: Gate, started: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asked for the indices before the rebuild, or during it, and writes when the rebuild is over."""
    handler = deployed("index_rows", indexed.folder, monkeypatch, SEARCH_URL=gate.url)
    monkeypatch.setattr(indexed, "handler", handler)
    held, go_on = threading.Event(), threading.Event()

    def late(request: Request) -> None:
        held.set()
        go_on.wait(KILL_TIMEOUT_S)
        passed(request)

    gate.fates = [*([passed] * number), late]
    indexed.write([said("one", 5, "words again")], NOW_US + 2)
    stream = threading.Thread(target=indexed.follow)

    lock = threading.Lock()

    def start() -> None:
        with lock:
            if not held.is_set():
                stream.start()
                assert held.wait(KILL_TIMEOUT_S)

    if started == "before":
        start()
    rebuild(indexed, before=start)
    go_on.set()
    stream.join()
    assert sorted(indexed.found("words")) == sorted(_bodies(indexed))
    assert "words again" in indexed.found("words")
    assert indexed.pump.discarded == []
    assert names(indexed) == {"v2": [""]}


def test_a_dataset_that_nobody_uploaded_to_is_refused_by_name(indexed: Indexed) -> None:
    with pytest.raises(NotFound, match="nothing was uploaded to a dataset agent_session of a workspace acme"):
        rebuild_of(indexed).run(Dataset("acme", "agent_session"), print)
    assert indexed.service.ask("GET", f"/{index_alias(Dataset('acme', 'agent_session'))}-*").content == {}


def test_a_busy_service_is_waited_for(indexed: Indexed, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_filling, "FIRST_PAUSE_MS", 10)
    gate.fates = [answers(429)] * 4 + [half_answers] * 2 + [answers(503)] * 6
    rebuild(indexed, gate.url)
    assert len(indexed.found("words")) == 41


def test_a_service_that_stays_busy_is_given_up_and_nothing_was_exchanged(
    indexed: Indexed, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_filling, "FIRST_PAUSE_MS", 10)
    monkeypatch.setattr(search_filling, "TRIES", 3)
    gate.fates = [answers(503)] * 1_000
    with pytest.raises(Unavailable, match="run it again, and it goes on where it was"):
        rebuild(indexed, gate.url)
    assert names(indexed) == {"v1": [""], "v2": ["-next"]}


def test_an_index_that_lacks_rows_does_not_take_the_old_ones_place(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(search_rebuild, "COUNT_BUDGET_S", 0.0)
        broken.setattr(Writer, "index_next", lambda _, documents: [DONE] * len(documents))
        with pytest.raises(Unavailable, match="has 0 rows, and 41 were read"):
            rebuild(indexed)
    assert names(indexed) == {"v1": [""], "v2": ["-next"]}
    assert " 0 rows read" in rebuild(indexed)[0]
    assert len(indexed.found("words")) == 41


def test_a_rebuild_that_was_ended_before_the_old_index_was_removed_removes_it(indexed: Indexed) -> None:
    indices = OpenSearchIndices(indexed.service)
    indices.make_next(indexed.dataset, indices.of(indexed.dataset))
    indices.replace(indexed.dataset, indices.of(indexed.dataset))
    assert names(indexed) == {"v1": ["-replaced"], "v2": [""]}
    [told] = rebuild(indexed)
    assert "removed" in told
    assert names(indexed) == {"v2": [""]}


def test_the_searched_index_is_not_removed_unless_the_new_one_took_its_place(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(OpenSearchIndices, "replace", lambda *_: None)
        with pytest.raises(Unavailable, match="v2 was not taken"):
            rebuild(indexed)
    assert names(indexed) == {"v1": [""], "v2": ["-next"]}
    rebuild(indexed)
    assert names(indexed) == {"v2": [""]}


def test_an_exchange_whose_answer_was_lost_was_done(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = OpenSearchIndices.replace

    def twice(self: OpenSearchIndices, dataset: Dataset, found: DatasetIndices) -> None:
        replace(self, dataset, found)
        replace(self, dataset, found)

    monkeypatch.setattr(OpenSearchIndices, "replace", twice)
    rebuild(indexed)
    assert names(indexed) == {"v2": [""]}


def test_what_is_left_of_something_that_was_given_up_is_removed(indexed: Indexed) -> None:
    for name in (f"{index_alias(indexed.dataset)}-v2", f"{index_alias(indexed.dataset)}-next"):
        assert indexed.service.ask("PUT", f"/{name}").status == 200
    rebuild(indexed)
    assert names(indexed) == {"v3": [""]}
    assert len(indexed.found("words")) == 41


def test_a_dataset_without_an_index_gets_one(indexed: Indexed) -> None:
    indexed.service.ask("DELETE", f"/{index_alias(indexed.dataset)}-v1")
    rebuild(indexed)
    assert len(indexed.found("words")) == 41
    assert len(names(indexed)) == 1


def test_rows_that_cannot_be_in_an_index_are_told_and_counted(indexed: Indexed) -> None:
    pk = places.session_pk(indexed.dataset, "one")
    named = {"workspace": indexed.dataset.workspace, "dataset": indexed.dataset.name}
    indexed.table.put(item(pk=pk, sk=places.row_sk(50, 0), body="broken words", **named))
    told = rebuild(indexed)
    assert f"refused {pk} {places.row_sk(50, 0)}: the row cannot be read: TypeError" in told
    assert len(indexed.found("words")) == 41
    assert "broken" not in str(told)


def test_objects_that_may_not_be_read_end_the_rebuild(indexed: Indexed, noise: str) -> None:
    def denied(key: str) -> bytes:
        raise StoreRefused("get_object: AccessDenied")

    indexed.write([said("big", 0, f"words {noise}")], NOW_US)
    denying = OpenSearchRebuild(
        indexed.table, denied, OpenSearchIndices(indexed.service), OpenSearchWriter(indexed.service), SystemClock()
    )
    with pytest.raises(Unavailable, match="AccessDenied: what an item cannot hold cannot be read"):
        denying.run(indexed.dataset, print)
    assert names(indexed) == {"v1": [""], "v2": ["-next"]}


def _bodies(indexed: Indexed) -> list[str]:
    """The bodies that the table holds."""
    rows = [
        each for one in ("one", "two", "three") for each in indexed.store.rows(indexed.dataset, one, 0, 999, 999, 99)
    ]
    return [row.body for row in rows]


def _id(indexed: Indexed, seq: int) -> str:
    return document_id(indexed.dataset, ("one", seq, 0))


def _lines(action: object) -> bytes:
    return json_bytes(action) + b"\n"
