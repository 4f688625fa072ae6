"""The functions behind the streams as they are deployed, between an emulator of AWS and a search service."""

import json
import runpy
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctrlb import wiring
from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
from ctrlb.adapters.opensearch import OpenSearch
from ctrlb.adapters.opensearch_sessions import OpenSearchSessions
from ctrlb.adapters.system import SystemClock
from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.domain.search_documents import index_alias
from ctrlb.domain.words import parse_term
from tests.aws.lambda_pump import LambdaPump, Rules
from tests.aws.pump import Streams
from tests.aws.stores import bucket_name, client, made_bucket, made_table, table_name
from tests.template import ROOT

PATIENT_S = 60.0


def deployed(function: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **variables: str) -> Any:
    """The function's handler in the folder's tables and bucket, as its module makes it, with a queue of its own."""
    queue = client("sqs").create_queue(QueueName=table_name(function, folder))["QueueUrl"]
    named = {
        "RELAY_TABLE": table_name("RelayTable", folder),
        "SESSIONS_TABLE": table_name("SessionsTable", folder),
        "BODIES_BUCKET": bucket_name(folder),
        "DEAD_LETTER_QUEUE": queue,
        **variables,
    }
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    wiring.ports.cache_clear()
    wiring._aws_stores.cache_clear()
    return runpy.run_path(str(ROOT / "functions" / f"{function}.py"))["handler"]


def dead_letters(function: str, folder: Path) -> list[dict[str, Any]]:
    """What the function's queue holds."""
    queue = client("sqs").get_queue_url(QueueName=table_name(function, folder))["QueueUrl"]
    letters = []
    while found := client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        letters += [json.loads(each["Body"]) for each in found]
    return letters


@dataclass
class Indexed:
    """A dataset that is uploaded to a table, and searched where the table's stream has brought it."""

    folder: Path
    node_url: str
    handler: Any
    rules: Rules
    dataset: Dataset = field(default_factory=lambda: Dataset(f"acme-{uuid.uuid4()}", "agent_sessions"))

    def __post_init__(self) -> None:
        self.table = made_table("SessionsTable", self.folder)
        self.store = DynamodbSessions(self.table, made_bucket(self.folder), SystemClock())
        self.streams = Streams(client("dynamodbstreams"), [table_name("SessionsTable", self.folder)])
        self.service = OpenSearch(self.node_url, timeout_s=PATIENT_S)
        self.index = OpenSearchSessions(self.service)
        self.pump = LambdaPump(self.invoked, self.rules)

    def invoked(self, event: Mapping[str, Any], context: Any) -> Any:
        """What the function answers."""
        return self.handler(event, context)

    def write(self, rows: Sequence[SessionRow], written_us: int, user: str = "ann") -> None:
        """Upload the rows."""
        self.store.write(self.dataset, user, rows, written_us)

    def follow(self) -> None:
        """Deliver what the stream holds."""
        self.pump.deliver(self.streams.records())

    def found(self, term: str) -> list[str]:
        """The bodies that search finds, oldest first."""
        assert self.service.ask("POST", f"/{index_alias(self.dataset)}/_refresh").status in (200, 404)
        found = self.index.search(
            self.dataset,
            parse_term(term),
            user=None,
            session_id=None,
            tool=None,
            order="oldest",
            one_per_session=False,
            offset=0,
            limit=1_000,
        )
        assert found.total == len(found.rows)
        return [row.body for row in found.rows]
