"""Stores under moto whose client is the one of a deployment, with a network in between that a test can break."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from ctrlb.adapters.aws_client import DYNAMODB_CONFIG, S3_CONFIG, connect
from ctrlb.adapters.dynamodb_relay import DynamodbRelay
from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.s3_bodies import S3Bodies
from ctrlb.adapters.system import SystemRandomness
from tests.aws.network import Network
from tests.aws.stores import bucket_name, made_bucket, made_table, table_name
from tests.conftest import HandClock


@dataclass(frozen=True)
class Deployed:
    """The relay's and the sessions' store, and the networks to DynamoDB and S3."""

    relay: DynamodbRelay
    sessions: DynamodbSessions
    rival: DynamodbRelay
    """The relay's store by another client, which the network does not touch."""
    dynamodb: Network
    s3: Network
    clock: HandClock
    pauses_s: list[float]
    """How long the SDK paused before it sent something again."""


@pytest.fixture
def deployed(on_moto: None, tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    pauses_s: list[float] = []
    relay = made_table("RelayTable", tmp_path)
    made_table("SessionsTable", tmp_path)
    made_bucket(tmp_path)
    client, objects = connect("dynamodb", DYNAMODB_CONFIG), connect("s3", S3_CONFIG)
    monkeypatch.setattr("botocore.endpoint.time.sleep", pauses_s.append)
    return Deployed(
        DynamodbRelay(Table(client, table_name("RelayTable", tmp_path)), clock, SystemRandomness()),
        DynamodbSessions(
            Table(client, table_name("SessionsTable", tmp_path)),
            S3Bodies(bucket_name(tmp_path), lambda: objects),
            clock,
        ),
        DynamodbRelay(relay, clock, SystemRandomness()),
        Network(client),
        Network(objects),
        clock,
        pauses_s,
    )


@pytest.fixture(scope="session")
def noise() -> str:
    """A body that compression does not get into an item."""
    return random.Random(0).randbytes(400_000).hex()
