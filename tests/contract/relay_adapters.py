"""The adapters of RelayStore, by a name that another process can be given."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_relay import RELAY_SCHEMA, SqliteRelay
from ctrlb.ports import RelayStore
from tests.aws.stores import dynamodb_relay

Opening: TypeAlias = Callable[[Path], contextlib.AbstractContextManager[RelayStore]]


@contextlib.contextmanager
def sqlite_relay(folder: Path) -> Iterator[RelayStore]:
    """A store in the folder's file, closed as a server closes it."""
    database = SqliteDatabase(folder / "relay.db", RELAY_SCHEMA)
    try:
        yield SqliteRelay(database)
    finally:
        database.close()


RELAY_ADAPTERS: dict[str, Opening] = {"sqlite": sqlite_relay, "dynamodb": dynamodb_relay, "moto": dynamodb_relay}
