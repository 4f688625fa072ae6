"""What the streams' function does, called by hand: read the streams, project the rows, add the projections.

Deliveries are as bad as a stream may make them: twice, and in any order.
"""

import random
from collections.abc import Iterator
from typing import Any

from ctrlb.adapters.dynamodb_items import Item
from ctrlb.adapters.dynamodb_projections import DynamodbProjections, relay_fact, session_fact
from ctrlb.adapters.dynamodb_runs import DynamodbRuns
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.s3_bodies import S3Bodies
from ctrlb.domain.projections import Fact, project
from ctrlb.domain.rows import AgentActivity, ClaimRow, Dataset, Edit, Run, RunSummary

MAX_BATCH = 7


class Streams:
    """The streams of some tables, each record read once."""

    def __init__(self, client: Any, tables: list[str]) -> None:
        self._client = client
        self._tables = tables
        self._iterators: dict[tuple[str, str], str] = {}

    def images(self) -> Iterator[Item]:
        """The items that were written since the last look."""
        return (record["dynamodb"]["NewImage"] for record in self.records() if "NewImage" in record["dynamodb"])

    def records(self) -> Iterator[dict[str, Any]]:
        """What happened to items since the last look."""
        for table in self._tables:
            for stream in self._client.list_streams(TableName=table)["Streams"]:
                described = self._client.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
                for shard in described["Shards"]:
                    yield from self._of_shard(stream["StreamArn"], shard["ShardId"])

    def _of_shard(self, stream: str, shard: str) -> Iterator[dict[str, Any]]:
        iterator = self._iterators.get((stream, shard))
        if iterator is None:
            begin = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
            iterator = self._client.get_shard_iterator(**begin)["ShardIterator"]
        while iterator:
            answer = self._client.get_records(ShardIterator=iterator)
            yield from answer["Records"]
            iterator = answer.get("NextShardIterator")
            self._iterators[stream, shard] = iterator
            if not answer["Records"]:
                return


class PumpedRuns:
    """The port RunStore, up to date: before each read, what the streams hold is projected."""

    def __init__(self, relay: Table, streams: Streams, bodies: S3Bodies) -> None:
        self._runs = DynamodbRuns(relay)
        self._projections = DynamodbProjections(relay)
        self._streams = streams
        self._bodies = bodies
        self._random = random.Random(0)

    def runs(
        self, dataset: Dataset, now_us: int, before: tuple[int, str] | None, limit: int, user: str | None
    ) -> list[RunSummary]:
        self._pump()
        return self._runs.runs(dataset, now_us, before, limit, user)

    def run(self, run: Run, now_us: int, user: str | None) -> RunSummary | None:
        self._pump()
        return self._runs.run(run, now_us, user)

    def agents(self, run: Run) -> list[AgentActivity]:
        self._pump()
        return self._runs.agents(run)

    def resources(self, run: Run, limit: int) -> tuple[list[ClaimRow], int]:
        self._pump()
        return self._runs.resources(run, limit)

    def edits(self, run: Run, limit: int) -> list[Edit]:
        self._pump()
        return self._runs.edits(run, limit)

    def _pump(self) -> None:
        facts = list(self._facts())
        facts += self._random.sample(facts, len(facts) // 2)
        self._random.shuffle(facts)
        while facts:
            size = self._random.randint(1, MAX_BATCH)
            self._projections.add(project(facts[:size]))
            facts = facts[size:]

    def _facts(self) -> Iterator[Fact]:
        for image in self._streams.images():
            if "kind" in image:
                yield relay_fact(image)
            elif "block_type" in image:
                yield session_fact(image, self._bodies.get)
