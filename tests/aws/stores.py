"""The tables and the bucket of template.yaml, made on an emulator of AWS, and the adapters on them."""

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from ctrlb.adapters.aws_client import connect, error_code
from ctrlb.adapters.dynamodb_identity import DynamodbIdentity
from ctrlb.adapters.dynamodb_relay import DynamodbRelay
from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.s3_bodies import S3Bodies
from ctrlb.adapters.search_off import SearchOff
from ctrlb.adapters.system import SystemClock, SystemRandomness
from ctrlb.ports import Ports
from tests.aws.emulator import REGION
from tests.aws.pump import PumpedRuns, Streams
from tests.template import RESOURCES

PATIENT = Config(
    connect_timeout=5,
    read_timeout=30,
    max_pool_connections=32,
    retries={"total_max_attempts": 1},
    account_id_endpoint_mode="disabled",  # moto does not know those addresses
)
"""For what is not about time: a busy machine must not fail a test."""
_MADE = ("AttributeDefinitions", "KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes", "BillingMode")


def client(service: str) -> Any:
    """A patient client of the emulator that the environment names, made once: making one takes long."""
    return _client(service, os.environ.get("AWS_ENDPOINT_URL"))


@functools.cache
def _client(service: str, url: str | None) -> Any:
    return connect(service, PATIENT)


def table_name(resource: str, folder: Path) -> str:
    """What the template's table is called for the folder."""
    return f"{resource.lower()}-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"


def bucket_name(folder: Path) -> str:
    """What the bodies' bucket is called for the folder."""
    return table_name("bodies", folder)


def made_table(resource: str, folder: Path) -> Table:
    """The template's table of this name, made for the folder unless it is there."""
    properties = RESOURCES[resource]["Properties"]
    stream = {"StreamEnabled": True, **properties["StreamSpecification"]}
    parts = {key: properties[key] for key in _MADE if key in properties}
    with _unless_there("ResourceInUseException"):
        client("dynamodb").create_table(TableName=table_name(resource, folder), StreamSpecification=stream, **parts)
    return Table(client("dynamodb"), table_name(resource, folder))


def made_bucket(folder: Path) -> S3Bodies:
    """The bodies' bucket, made for the folder unless it is there."""
    name = bucket_name(folder)
    with _unless_there("BucketAlreadyOwnedByYou"):
        client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    return S3Bodies(name, lambda: client("s3"))


@contextlib.contextmanager
def dynamodb_relay(folder: Path) -> Iterator[DynamodbRelay]:
    """The relay's store in the folder's table."""
    yield DynamodbRelay(made_table("RelayTable", folder), SystemClock(), SystemRandomness())


@contextlib.contextmanager
def dynamodb_sessions(folder: Path) -> Iterator[DynamodbSessions]:
    """The sessions' store in the folder's table and bucket."""
    yield DynamodbSessions(made_table("SessionsTable", folder), made_bucket(folder), SystemClock())


@contextlib.contextmanager
def aws_stores(folder: Path) -> Iterator[Ports]:
    """All stores but search, in the folder's tables and bucket. Streams are followed before each read of runs."""
    clock, random = SystemClock(), SystemRandomness()
    relay, sessions, bodies = made_table("RelayTable", folder), made_table("SessionsTable", folder), made_bucket(folder)
    streams = Streams(
        client("dynamodbstreams"), [table_name("RelayTable", folder), table_name("SessionsTable", folder)]
    )
    yield Ports(
        relay=DynamodbRelay(relay, clock, random),
        runs=PumpedRuns(relay, streams, bodies),
        sessions=DynamodbSessions(sessions, bodies, clock),
        index=SearchOff(),
        identity=DynamodbIdentity(relay, random),
        clock=clock,
        random=random,
    )


@contextlib.contextmanager
def _unless_there(code: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error_code(error) != code:
            raise
