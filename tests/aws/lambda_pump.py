"""A stream of a table and the function behind it, joined by AWS's rules for such an event source.

What the emulator does not do: a batch that fails is delivered again until it succeeds, is too old, or has been tried
too often; then a word about it goes to the failure destination, and the shard goes on. A batch whose function fails is
parted in two. One that is answered with failures comes again from the first of them on (ReportBatchItemFailures).
Within a shard, nothing overtakes.
"""

import base64
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.template import RESOURCES

Record: TypeAlias = dict[str, Any]
Function: TypeAlias = Callable[[Mapping[str, Any], Any], Any]

MAX_INVOCATIONS = 2_000
"""A pump that needs more would never end."""


@dataclass(frozen=True)
class Rules:
    """The properties of an event source mapping."""

    batch_size: int = 100
    max_retries: int | None = None
    """None: until the record is too old."""
    max_age_s: float = 82_800
    bisect: bool = True


@dataclass(frozen=True)
class Discarded:
    """What the failure destination is told: where the records are, not what is in them."""

    places: tuple[str, ...]
    cause: str


@dataclass
class LambdaPump:
    """Delivers the records of one shard to the function."""

    function: Function
    rules: Rules = Rules()
    now_s: Callable[[], float] = time.time
    wanted: Callable[[Record], bool] = lambda record: True
    """The filter: what it leaves out is over without the function."""
    invocations: list[list[str]] = field(default_factory=list)
    """The sequence numbers that each invocation was given."""
    discarded: list[Discarded] = field(default_factory=list)

    def deliver(self, records: Iterable[Record]) -> None:
        """Deliver the records, in their order, until all are over."""
        waiting = [record for record in records if self.wanted(record)]
        size = self.rules.batch_size
        for start in range(0, len(waiting), size):
            self._deliver(waiting[start : start + size])

    def _deliver(self, batch: Sequence[Record]) -> None:
        work: list[tuple[Sequence[Record], int]] = [(batch, 0)]
        while work:
            records, tries = work.pop()
            records = self._young_enough(records)
            if not records:
                continue
            done = self._invoke(records)
            left = records[done or 0 :]
            if not left:
                continue
            if done is None and self.rules.bisect and len(left) > 1:
                # Parting a batch is no retry.
                middle = len(left) // 2
                work += [(left[middle:], tries), (left[:middle], tries)]
            elif self.rules.max_retries is not None and tries >= self.rules.max_retries:
                self._discard(left, "RetryAttemptsExhausted")
            else:
                work.append((left, tries + 1))

    def _invoke(self, records: Sequence[Record]) -> int | None:
        """How many records are over, from the first; None when the function failed as a whole."""
        places = [place_of(record) for record in records]
        self.invocations.append(places)
        assert len(self.invocations) <= MAX_INVOCATIONS, "the stream does not move on"
        event = json.loads(json.dumps({"Records": [lambda_record(record) for record in records]}))
        try:
            answer = self.function(event, None)
        except Exception:  # whatever it is, it is a failure of the function
            return None
        failed = [each.get("itemIdentifier") for each in (answer or {}).get("batchItemFailures") or []]
        if not set(failed) <= set(places):
            return None
        return min((places.index(place) for place in failed), default=len(records))

    def _young_enough(self, records: Sequence[Record]) -> Sequence[Record]:
        oldest_s = self.now_s() - self.rules.max_age_s
        old = [record for record in records if _made_s(record) < oldest_s]
        if old:
            self._discard(old, "RecordAgeExceeded")
        return [record for record in records if _made_s(record) >= oldest_s]

    def _discard(self, records: Sequence[Record], cause: str) -> None:
        self.discarded.append(Discarded(tuple(place_of(record) for record in records), cause))


def mapped(name: str) -> tuple[Rules, Callable[[Record], bool]]:
    """The rules and the filter of an event source mapping of template.yaml."""
    properties = RESOURCES[name]["Properties"]
    patterns = [json.loads(each["Pattern"]) for each in properties["FilterCriteria"]["Filters"]]
    rules = Rules(
        properties["BatchSize"],
        properties.get("MaximumRetryAttempts"),
        properties["MaximumRecordAgeInSeconds"],
        properties["BisectBatchOnFunctionError"],
    )
    return rules, lambda record: any(matches(pattern, record) for pattern in patterns)


def matches(pattern: Mapping[str, Any], found: Any) -> bool:
    """Whether the record has what the pattern of a filter asks for, by the rules that ours use."""
    return all(
        matches(each, _part(found, name))
        if isinstance(each, dict)
        else any(_allows(rule, found, name) for rule in each)
        for name, each in pattern.items()
    )


def _allows(rule: Any, found: Any, name: str) -> bool:
    value = _part(found, name)
    if not isinstance(rule, dict):
        return bool(value == rule)
    [(kind, wanted)] = rule.items()
    if kind == "exists":
        return bool((value is not None) == wanted)
    assert kind == "prefix", f"the pump does not know the rule {kind}"
    return isinstance(value, str) and value.startswith(wanted)


def _part(found: Any, name: str) -> Any:
    return found.get(name) if isinstance(found, dict) else None


def place_of(record: Record) -> str:
    """The record's sequence number."""
    return str(record["dynamodb"]["SequenceNumber"])


def lambda_record(record: Record) -> Record:
    """The record of GetRecords as an event has it: bytes are base64, and times seconds since the epoch."""
    change = dict(record["dynamodb"])
    change["ApproximateCreationDateTime"] = _made_s(record)
    for image in ("NewImage", "OldImage"):
        if image in change:
            change[image] = {name: _in_json(value) for name, value in change[image].items()}
    return {**record, "dynamodb": change}


def _in_json(value: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: base64.b64encode(each).decode() if kind == "B" else each for kind, each in value.items()}


def _made_s(record: Record) -> float:
    made = record["dynamodb"]["ApproximateCreationDateTime"]
    return float(made if isinstance(made, int | float) else made.timestamp())
