"""From an upload to a hit: the sessions table's stream on an emulator, the function, and a real OpenSearch node."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ctrlb.adapters import aws_stores
from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import item
from ctrlb.domain.rows import SessionRow
from tests.aws.lambda_pump import Rules
from tests.aws.search_gate import Fate, Gate, answers, half_answers, hangs, open_gate, too_busy_for
from tests.aws.stores import bucket_name, client, table_name
from tests.aws.streamed import Indexed, dead_letters, deployed
from tests.contract.session_rows import NOW_US, ran, said
from tests.opensearch.node import OpenSearchNode

pytestmark = pytest.mark.emulator

BULK_TIMEOUT_S = 5.0
"""Long for a node on a busy machine, short for a test that waits for it."""
REQUESTS = 3
"""How often one bulk request is sent before it is left for the next delivery."""


@pytest.fixture
def gate(opensearch_node: OpenSearchNode) -> Iterator[Gate]:
    with open_gate(opensearch_node.url) as gate:
        yield gate


@pytest.fixture
def indexed(
    on_emulator: None, opensearch_node: OpenSearchNode, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Indexed:
    monkeypatch.setattr(aws_stores, "BULK_TIMEOUT_S", BULK_TIMEOUT_S)
    handler = deployed("index_rows", tmp_path, monkeypatch, SEARCH_URL=gate.url)
    return Indexed(tmp_path, opensearch_node.url, handler, Rules(batch_size=10))


def log_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """What is in the lines that the function wrote."""
    return [vars(record) for record in caplog.records if getattr(record, "door", "") == "stream"]


def total(lines: list[dict[str, Any]], metric: str) -> int:
    return sum(int(line[metric][0]) for line in lines)


def test_what_is_uploaded_is_found_once_the_stream_has_brought_it(
    indexed: Indexed, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [said("one", seq, f"words of row {seq}") for seq in range(9)]
    indexed.write([*rows, ran("one", 9, "make words")], NOW_US)
    assert indexed.found("words") == []
    indexed.follow()
    assert indexed.found("words") == [f"words of row {seq}" for seq in range(9)] + [""]
    lines = log_lines(caplog)
    # The session's head came with them: it is no row.
    assert (total(lines, "done"), total(lines, "ignored"), total(lines, "retried")) == (10, 1, 0)
    assert all(line["iterator_age"][0] >= 0 and "words" not in str(line) for line in lines)
    assert len(gate.bulks) == len(indexed.pump.invocations)
    assert dead_letters("index_rows", indexed.folder) == []


def test_a_row_that_no_item_holds_is_found_by_its_last_word(indexed: Indexed, noise: str) -> None:
    indexed.write([said("one", 0, f"first {noise} last")], NOW_US)
    indexed.follow()
    [body] = indexed.found("last")
    assert body == f"first {noise} last"


def test_a_row_that_is_sent_again_stands_as_it_was_sent_last(indexed: Indexed) -> None:
    indexed.write([said("one", 0, "a secret word"), said("one", 1, "another word")], NOW_US)
    indexed.write([said("one", 0, "a hidden word")], NOW_US + 1)
    indexed.follow()
    indexed.write([said("one", 1, "an other word")], NOW_US + 2)
    indexed.follow()
    assert indexed.found("word") == ["a hidden word", "an other word"]
    assert indexed.found("secret") == []


def test_a_row_that_is_removed_is_not_found(indexed: Indexed) -> None:
    indexed.write([said("one", 0, "kept words"), said("one", 1, "removed words")], NOW_US)
    indexed.follow()
    key = item(pk=places.session_pk(indexed.dataset, "one"), sk=places.row_sk(1, 0))
    client("dynamodb").delete_item(TableName=table_name("SessionsTable", indexed.folder), Key=key)
    indexed.follow()
    assert indexed.found("words") == ["kept words"]
    indexed.write([said("one", 1, "new words")], NOW_US + 2)
    indexed.follow()
    assert indexed.found("words") == ["kept words", "new words"]


@pytest.mark.parametrize(
    "fates",
    [
        pytest.param([answers(429)] * 2 * REQUESTS, id="429"),
        pytest.param([answers(503)] * REQUESTS, id="503"),
        pytest.param([answers(403)], id="403"),
        pytest.param([hangs, hangs], id="no answer"),
        pytest.param([half_answers, half_answers], id="half an answer"),
        pytest.param([too_busy_for(0), too_busy_for(4)], id="busy for one"),
        pytest.param([answers(503), hangs, too_busy_for(2), half_answers, half_answers], id="one after the other"),
    ],
)
def test_a_service_that_is_busy_late_or_lost_in_between_holds_the_stream_and_loses_nothing(
    indexed: Indexed, gate: Gate, fates: list[Fate]
) -> None:
    indexed.write([said("one", 0, "first words")], NOW_US)
    indexed.follow()  # the index is there
    gate.fates = list(fates)
    indexed.write([said("one", seq, f"words {seq}") for seq in range(1, 16)], NOW_US)
    indexed.follow()
    assert gate.fates == []
    assert indexed.found("words") == ["first words"] + [f"words {seq}" for seq in range(1, 16)]
    assert indexed.pump.discarded == []
    assert dead_letters("index_rows", indexed.folder) == []


def test_a_delivery_goes_on_at_the_row_that_was_not_taken(indexed: Indexed, gate: Gate) -> None:
    indexed.write([said("one", 0, "first words")], NOW_US)
    indexed.follow()
    indexed.pump.invocations.clear()
    gate.fates = [too_busy_for(3)]
    indexed.write([said("one", seq, f"words {seq}") for seq in range(1, 10)], NOW_US)
    indexed.follow()
    first, second = indexed.pump.invocations
    assert second == first[3:]


def test_what_cannot_be_indexed_is_set_aside_and_the_rest_goes_on(
    indexed: Indexed, noise: str, caplog: pytest.LogCaptureFixture
) -> None:
    pk = places.session_pk(indexed.dataset, "one")
    indexed.write([said("one", 0, "first words"), said("one", 1, f"words {noise}")], NOW_US)
    bodies = client("s3").list_objects_v2(Bucket=bucket_name(indexed.folder))["Contents"]
    client("s3").delete_object(Bucket=bucket_name(indexed.folder), Key=bodies[0]["Key"])
    broken = item(pk=pk, sk=places.row_sk(2, 0), block_type="text", body="broken words")
    indexed.table.put(broken)
    refused = item(**_columns(indexed, sk=places.row_sk(3, 2**31), body="refused words"))
    indexed.table.put(refused)
    indexed.write([said("one", 4, "last words")], NOW_US)
    indexed.follow()
    assert indexed.found("words") == ["first words", "last words"]
    letters = dead_letters("index_rows", indexed.folder)
    assert {(each["key"]["sk"], each["reason"]) for each in letters} == {
        (places.row_sk(1, 0), "get_object: NoSuchKey"),
        (places.row_sk(2, 0), "the row cannot be read: TypeError"),
        (places.row_sk(3, 2**31), "400 mapper_parsing_exception"),
    }
    assert {each["key"]["pk"] for each in letters} == {pk}
    lines = log_lines(caplog)
    assert (total(lines, "poison"), total(lines, "done")) == (3, 2)
    assert "words" not in str(letters) + str(lines)


def test_a_function_that_dies_before_its_answer_indexes_again_and_nothing_twice(
    indexed: Indexed, caplog: pytest.LogCaptureFixture
) -> None:
    died: list[object] = []

    def dies_once(event: Mapping[str, Any], context: Any) -> Any:
        answer = indexed.handler(event, context)
        if not died:
            died.append(answer)
            raise RuntimeError("killed")
        return answer

    indexed.pump.function = dies_once
    indexed.write([said("one", seq, f"words {seq}") for seq in range(5)], NOW_US)
    indexed.follow()
    assert indexed.found("words") == [f"words {seq}" for seq in range(5)]
    assert (total(lines := log_lines(caplog), "done"), total(lines, "already")) == (5, 5)


def test_the_queue_is_the_last_thing_that_may_fail(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a queue for what cannot be taken, the stream waits there."""
    url = client("sqs").get_queue_url(QueueName=table_name("index_rows", indexed.folder))["QueueUrl"]
    indexed.write([said("one", 0, "first words")], NOW_US)
    broken = item(pk=places.session_pk(indexed.dataset, "one"), sk=places.row_sk(1, 0), block_type="text")
    indexed.table.put(broken)
    client("sqs").delete_queue(QueueUrl=url)
    indexed.pump.rules = Rules(max_retries=1)
    indexed.follow()
    assert [len(each.places) for each in indexed.pump.discarded] == [1]
    assert indexed.found("words") == ["first words"]


def _columns(indexed: Indexed, sk: str, body: str) -> dict[str, object]:
    row = SessionRow(ts_us=NOW_US, session_id="one", seq=0, body=body, body_len=len(body))
    return {
        "pk": places.session_pk(indexed.dataset, "one"),
        "sk": sk,
        "workspace": indexed.dataset.workspace,
        "dataset": indexed.dataset.name,
        "belongs_to": "ann",
        "written_us": NOW_US,
        "session_id": row.session_id,
        "block_type": row.block_type,
        "ts_us": row.ts_us,
        "body": row.body,
        "body_len": row.body_len,
    }
