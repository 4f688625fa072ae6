"""The door of the tables' streams: a batch of records becomes changes, and what became of them its answer.

A batch is answered with the first change to resume at (ReportBatchItemFailures), so that a busy store or index holds
the stream, and nothing else does: what cannot be read or taken is set aside as a dead letter and counts as done.
"""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlb.domain.errors import Unavailable
from ctrlb.domain.streams import Change, DeadLetter, Image, Outcome, resume_index
from ctrlb.edge.log import log_batch
from ctrlb.ports import DeadLetters, Follower
from ctrlb.wiring import dead_letters, ports, runs_follower, search_follower

Event: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, list[dict[str, str]]]
Handler: TypeAlias = Callable[[Event, Any], Answer]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is no change of a table as they are written."""

    place: str
    reason: str


def index_rows_handler() -> Handler:
    """The handler that keeps the search index up with the sessions table."""
    return handler_for("index_rows", search_follower(), dead_letters())


def project_runs_handler() -> Handler:
    """The handler that keeps the list of runs up with both tables."""
    return handler_for("project_runs", runs_follower(), dead_letters())


def handler_for(function: str, follower: Follower, letters: DeadLetters) -> Handler:
    """The Lambda handler that has `follower` take what the stream delivers."""

    def handler(event: Event, context: Any) -> Answer:
        started_s = time.perf_counter()
        records = [read(record) for record in event["Records"]]
        outcomes = _taken(follower, records)
        over = resume_index(outcomes)
        # Those after it come again, and are set aside then.
        poison = _dead_letters(function, records[:over], outcomes[:over])
        failure = _set_aside(letters, poison)
        if failure:  # what is neither taken nor set aside comes again
            over = next(place for place, outcome in enumerate(outcomes) if outcome.kind == "poison")
        now_us = ports().clock.now_us()
        written_us = [record.written_us for record in records if isinstance(record, Change) and record.written_us]
        log_batch(
            function,
            getattr(context, "aws_request_id", ""),
            _counts(outcomes[:over], retried=len(records) - over),
            age_us=max(now_us - min(written_us, default=now_us), 0),
            reasons=sorted({outcome.reason for outcome in outcomes if outcome.reason} | failure),
            started_s=started_s,
        )
        return {"batchItemFailures": [{"itemIdentifier": record.place} for record in records[over : over + 1]]}

    return handler


def read(record: Any) -> Change | Unreadable:
    """The change that the record of an event tells of."""
    place = ""
    try:
        change = record["dynamodb"]
        place = str(change["SequenceNumber"])
        return Change(
            place,
            {name: str(value["S"]) for name, value in change["Keys"].items()},
            int(change.get("ApproximateCreationDateTime", 0) * 1_000_000),
            _image(change.get("NewImage")),
            _image(change.get("OldImage")),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Unreadable(place, f"the record cannot be read: {type(error).__name__}")


def _image(image: Any) -> Image | None:
    """The item as the SDK gives it: in an event, bytes are base64."""
    if image is None:
        return None
    return {name: _attribute(value) for name, value in image.items()}


def _attribute(value: dict[str, Any]) -> dict[str, Any]:
    [(kind, content)] = value.items()
    return {"B": base64.b64decode(content, validate=True)} if kind == "B" else value


def _taken(follower: Follower, records: Sequence[Change | Unreadable]) -> list[Outcome]:
    """What became of each record; those that cannot be read keep none of the others from being taken."""
    changes = [record for record in records if isinstance(record, Change)]
    try:
        outcomes = iter(follower.take(changes) if changes else [])
    except Unavailable as failure:
        outcomes = iter([Outcome("retry", failure.message)] * len(changes))
    return [next(outcomes) if isinstance(record, Change) else Outcome("poison", record.reason) for record in records]


def _dead_letters(
    function: str, records: Sequence[Change | Unreadable], outcomes: Sequence[Outcome]
) -> list[DeadLetter]:
    return [
        DeadLetter(function, record.place, record.key if isinstance(record, Change) else {}, outcome.reason)
        for record, outcome in zip(records, outcomes, strict=True)
        if outcome.kind == "poison"
    ]


def _set_aside(letters: DeadLetters, poison: Sequence[DeadLetter]) -> set[str]:
    """Keep the letters. Why they are not kept, if they are not: then nothing of the batch may count as done."""
    try:
        if poison:
            letters.put(poison)
    except Unavailable as failure:
        return {failure.message}
    return set()


def _counts(outcomes: Sequence[Outcome], retried: int) -> dict[str, int]:
    kinds = [outcome.kind for outcome in outcomes]
    return {
        "done": kinds.count("done"),
        "already": kinds.count("already"),
        "ignored": kinds.count("ignored"),
        "poison": kinds.count("poison"),
        "retried": retried,
    }
