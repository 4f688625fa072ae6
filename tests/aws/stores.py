"""The tables and the bucket of template.yaml, made on an emulator of AWS, and the adapters on them."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from botocore.config import Config
from botocore.exceptions import ClientError

from ctrlb.adapters.aws_client import connect, error_code
from ctrlb.adapters.dynamodb_relay import DynamodbRelay
from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.s3_bodies import S3Bodies
from ctrlb.adapters.system import SystemClock, SystemRandomness
from tests.aws.emulator import REGION
from tests.template import RESOURCES

PATIENT = Config(connect_timeout=5, read_timeout=30, max_pool_connections=32, retries={"total_max_attempts": 1})
"""For what is not about time: a busy machine must not fail a test."""
_MADE = ("AttributeDefinitions", "KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes", "BillingMode")


def made_table(resource: str, folder: Path) -> Table:
    """The template's table of this name, made for the folder unless it is there."""
    client = connect("dynamodb", PATIENT)
    name = f"{resource}-{_suffix(folder)}"
    properties = RESOURCES[resource]["Properties"]
    stream = {"StreamEnabled": True, **properties["StreamSpecification"]}
    try:
        client.create_table(
            TableName=name, StreamSpecification=stream, **{key: properties[key] for key in _MADE if key in properties}
        )
    except ClientError as error:
        if error_code(error) != "ResourceInUseException":
            raise
    return Table(client, name)


@contextlib.contextmanager
def dynamodb_relay(folder: Path) -> Iterator[DynamodbRelay]:
    """The relay's store in the folder's table."""
    yield DynamodbRelay(made_table("RelayTable", folder), SystemClock(), SystemRandomness())


@contextlib.contextmanager
def dynamodb_sessions(folder: Path) -> Iterator[DynamodbSessions]:
    """The sessions' store in the folder's table and bucket."""
    yield DynamodbSessions(made_table("SessionsTable", folder), made_bucket(folder), SystemClock())


def made_bucket(folder: Path) -> S3Bodies:
    """The bodies' bucket, made for the folder unless it is there."""
    client = connect("s3", PATIENT)
    name = f"bodies-{_suffix(folder)}"
    try:
        client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    except ClientError as error:
        if error_code(error) != "BucketAlreadyOwnedByYou":
            raise
    return S3Bodies(name, lambda: client)


def _suffix(folder: Path) -> str:
    return hashlib.sha256(str(folder).encode()).hexdigest()[:16]
