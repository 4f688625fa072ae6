"""The door of the streams, and what follows them: any batches, in any state of the service, lead to the same end."""

import base64
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb import wiring
from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import Item, item
from ctrlb.adapters.dynamodb_session_items import stored_row
from ctrlb.adapters.search_follower import BUDGET_S, PORTION_CHARS, SearchFollower
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import Document, document_id
from ctrlb.domain.streams import ALREADY, DONE, IGNORED, Change, DeadLetter, Outcome, both, resume_index
from ctrlb.edge.stream import handler_for, read
from tests.aws.lambda_pump import LambdaPump, Rules, lambda_record
from tests.conftest import HandClock

DATASET = Dataset("acme", "agent_sessions")
KEYS = {"pk": {"S": "session#1:a"}, "sk": {"S": "row#0"}}


@pytest.fixture(autouse=True)
def in_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The handler reads the clock of its process's stores."""
    monkeypatch.delenv(wiring.DATA_FOLDER, raising=False)
    monkeypatch.setenv("RELAY_TABLE", "relay")
    wiring.ports.cache_clear()
    wiring._aws_stores.cache_clear()
    yield
    wiring.ports.cache_clear()
    wiring._aws_stores.cache_clear()


@dataclass
class Index:
    """A search service as far as versions go, in one of its moods."""

    moods: random.Random | None = None
    held: dict[str, tuple[int, Mapping[str, Any] | None]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)

    def index(self, documents: Sequence[Document]) -> list[Outcome]:
        """See OpenSearchWriter.index."""
        self.calls.append(len(documents))
        return [self._write(document) for document in documents]

    def _write(self, document: Document) -> Outcome:
        if self.moods and self.moods.random() < 0.2:
            return Outcome("retry", "429 rejected")
        if document.id in self.held and self.held[document.id][0] >= document.version:
            return ALREADY
        self.held[document.id] = (document.version, document.source)
        return DONE

    def bodies(self) -> dict[str, str]:
        """The texts that are found, by the documents' ids."""
        return {name: source["text"] for name, (_, source) in self.held.items() if source is not None}


@dataclass
class Letters:
    """A queue that may be down."""

    kept: list[DeadLetter] = field(default_factory=list)
    down: bool = False

    def put(self, letters: Sequence[DeadLetter]) -> None:
        """See DeadLetters.put."""
        if self.down:
            raise Unavailable("the queue is down")
        self.kept += letters


@dataclass
class Told:
    """A follower of which a test says what it answers."""

    outcomes: list[Outcome]

    def take(self, changes: Sequence[Change]) -> list[Outcome]:
        """See Follower.take."""
        return self.outcomes


def record(place: int, fresh: Item | None, old: Item | None = None) -> dict[str, Any]:
    either = fresh or old or {}
    images = {name: image for name, image in (("NewImage", fresh), ("OldImage", old)) if image is not None}
    keys = {name: either[name] for name in ("pk", "sk")}
    place_and_time = {"SequenceNumber": f"{place:05}", "ApproximateCreationDateTime": 1.0}
    return {"eventSource": "aws:dynamodb", "dynamodb": {**place_and_time, "Keys": keys, **images}}


def stored(seq: int, body: str, written_us: int) -> Item:
    row = SessionRow(ts_us=1, session_id="one", seq=seq, body=body, body_len=len(body))
    return stored_row(DATASET, "ann", row, written_us).item


def no_object(key: str) -> bytes:
    raise AssertionError("nothing here is so long")


def follower(index: Index, clock: HandClock | None = None) -> SearchFollower:
    return SearchFollower(index, no_object, clock or HandClock())


def change(place: int, fresh: Item) -> Change:
    found = read(lambda_record(record(place, fresh)))
    assert isinstance(found, Change)
    return found


def events(count: int) -> dict[str, Any]:
    return {"Records": [lambda_record(record(place, stored(place, "words", 1))) for place in range(count)]}


def failures(answer: Mapping[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_the_answer_names_the_first_change_to_come_again_and_letters_are_kept_of_those_before_it() -> None:
    poison, later = Outcome("poison", "400 refused"), Outcome("retry", "429 busy")
    letters = Letters()
    handler = handler_for("index_rows", Told([DONE, poison, later, poison, DONE]), letters)
    assert failures(handler(events(5), None)) == ["00002"]
    assert [(letter.place, letter.reason) for letter in letters.kept] == [("00001", "400 refused")]


def test_a_letter_that_cannot_be_kept_holds_the_stream() -> None:
    handler = handler_for("index_rows", Told([DONE, Outcome("poison", "400 refused"), DONE]), Letters(down=True))
    assert failures(handler(events(3), None)) == ["00001"]


def test_a_store_that_is_down_has_the_whole_batch_come_again() -> None:
    class Down:
        def take(self, changes: Sequence[Change]) -> list[Outcome]:
            raise Unavailable("the store did not answer in time")

    assert failures(handler_for("project_runs", Down(), Letters())(events(2), None)) == ["00000"]


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "text",
        {},
        {"dynamodb": {"SequenceNumber": "00001"}},
        {"dynamodb": {"SequenceNumber": "00001", "Keys": {"pk": {"N": "1"}}}},
        {"dynamodb": {"SequenceNumber": "00001", "Keys": KEYS, "NewImage": {"body_z": {"B": "no base64"}}}},
        {"dynamodb": {"SequenceNumber": "00001", "Keys": KEYS, "NewImage": {"body_z": {}}}},
        {"dynamodb": {"SequenceNumber": "00001", "Keys": KEYS, "ApproximateCreationDateTime": "yesterday"}},
    ],
)
def test_a_record_that_cannot_be_read_is_set_aside_and_keeps_no_other_back(broken: Any) -> None:
    index, letters = Index(), Letters()
    batch = {"Records": [record(0, stored(0, "first", 1)), broken, record(2, stored(2, "last", 1))]}
    assert failures(handler_for("index_rows", follower(index), letters)(batch, None)) == []
    assert sorted(index.bodies().values()) == ["first", "last"]
    assert [letter.reason.partition(":")[0] for letter in letters.kept] == ["the record cannot be read"]


def test_bytes_come_as_base64_and_times_as_seconds() -> None:
    image = {"body_z": {"B": base64.b64encode(b"\x00\xff").decode()}, "seq": {"N": "1"}}
    place_and_time = {"SequenceNumber": "7", "ApproximateCreationDateTime": 1.5}
    assert read({"dynamodb": {**place_and_time, "Keys": KEYS, "NewImage": image}}) == Change(
        "7", {"pk": "session#1:a", "sk": "row#0"}, 1_500_000, {"body_z": {"B": b"\x00\xff"}, "seq": {"N": "1"}}
    )


def test_what_is_no_row_is_ignored() -> None:
    head = item(pk=places.session_pk(DATASET, "one"), sk=places.HEAD, belongs_to="ann")
    index = Index()
    assert follower(index).take([change(0, head)]) == [IGNORED]
    assert index.held == {}


def test_a_batch_of_long_rows_is_written_in_portions_and_what_is_late_waits() -> None:
    clock, index = HandClock(), Index()
    changes = [change(seq, stored(seq, f"{seq}" * (PORTION_CHARS // 2), 1)) for seq in range(6)]
    original = index.index

    def slow(documents: Sequence[Document]) -> list[Outcome]:
        clock.move_s(0.6 * BUDGET_S)
        return original(documents)

    index.index = slow  # type: ignore[method-assign]
    outcomes = follower(index, clock).take(changes)
    assert index.calls == [2, 2]
    assert [outcome.kind for outcome in outcomes] == ["done"] * 4 + ["retry"] * 2


def test_behind_a_document_to_be_sent_again_no_portion_is_sent() -> None:
    index = Index()
    index.index = lambda documents: [Outcome("retry", "429")] * len(documents)  # type: ignore[method-assign]
    changes = [change(seq, stored(seq, "a" * PORTION_CHARS, 1)) for seq in range(3)]
    outcomes = follower(index).take(changes)
    assert [outcome.reason for outcome in outcomes] == ["429", "left for the next batch", "left for the next batch"]


WRITES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["put", "put", "put", "remove"])), max_size=25)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(WRITES, st.integers(1, 8), st.integers(0, 1_000), st.booleans())
def test_whatever_is_delivered_twice_late_or_in_between_the_index_is_as_the_table(
    writes: list[tuple[int, str]], size: int, seed: int, dies: bool
) -> None:
    """Each item's changes in order; batches of any size, a busy service, and a function that dies after its work."""
    table: dict[int, Item] = {}
    records = []
    for at, (seq, what) in enumerate(writes):
        old = table.pop(seq, None)
        if what == "put":
            table[seq] = stored(seq, f"body {at}", 10 * (at + 1))
        if old or what == "put":
            records.append(record(at, table.get(seq), old))
    moods = random.Random(seed)
    index = Index(moods)
    handler = handler_for("index_rows", follower(index), Letters())

    def function(event: Mapping[str, Any], context: Any) -> Any:
        answer = handler(event, context)
        if dies and moods.random() < 0.3:
            raise RuntimeError("killed")
        return answer

    pump = LambdaPump(function, Rules(batch_size=size), now_s=lambda: 1.0)
    pump.deliver(records)
    # A lease that moves hands the last records of a shard to another worker, from an older place.
    pump.deliver(records[len(records) // 2 :])
    expected = {document_id(DATASET, ("one", seq, 0)): image["body"]["S"] for seq, image in table.items()}
    assert index.bodies() == expected


def test_of_two_indices_a_document_is_done_when_both_are() -> None:
    busy, poison = Outcome("retry", "429"), Outcome("poison", "400")
    assert both(DONE, DONE) == DONE
    assert both(DONE, ALREADY) == both(ALREADY, DONE) == ALREADY
    assert both(DONE, busy) == both(busy, poison) == both(poison, busy) == busy
    assert both(poison, DONE) == both(ALREADY, poison) == poison


def test_a_batch_without_anything_to_come_again_is_over() -> None:
    assert resume_index([DONE, ALREADY, IGNORED, Outcome("poison")]) == 4
    assert resume_index([]) == 0
