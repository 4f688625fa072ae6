"""Environment to adapters: the only place that chooses. Everything above knows the ports alone."""

import atexit
import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctrlb.adapters.system import SystemClock, SystemRandomness
from ctrlb.domain.errors import Invalid
from ctrlb.domain.host_names import read_workspace_hosts
from ctrlb.ports import DeadLetters, Follower, Ports, SearchRebuild

if TYPE_CHECKING:
    from ctrlb.adapters.aws_stores import AwsStores

DATA_FOLDER = "CTRLB_DATA"
"""The variable that names laptop mode's folder."""
WORKSPACE_HOSTS = "WORKSPACE_HOSTS"
"""The variable that says which host names serve one workspace alone: `acme.example.com=acme,beta.example.com=beta`."""
OIDC_ISSUER = "OIDC_ISSUER"
"""The variable that names the issuer of people's tokens; without it none of an issuer is taken."""


@functools.cache
def ports() -> Ports:
    """This process's stores. Those of laptop mode are opened here, those of AWS made when they are used."""
    hosts = workspace_hosts()
    return replace(_stores(), workspace_hosts=hosts)


def _stores() -> Ports:
    folder = os.environ.get(DATA_FOLDER)
    if folder is None:
        return _with_issuer(_aws_stores().ports(), audience_comes_later=True)
    stores = contextlib.ExitStack()
    atexit.register(stores.close)
    return _with_issuer(stores.enter_context(embedded(Path(folder))))


def _with_issuer(stores: Ports, *, audience_comes_later: bool = False) -> Ports:
    if not os.environ.get(OIDC_ISSUER):
        return stores
    from ctrlb.adapters.oidc_issuer import Oidc, OidcIssuer

    oidc = Oidc.named(os.environ, audience_comes_later=audience_comes_later)
    return replace(stores, issuer=OidcIssuer(oidc, stores.clock))


def workspace_hosts() -> Mapping[str, str]:
    """The workspace that an address serves alone, by host name, as the environment says. Raises Invalid."""
    try:
        return read_workspace_hosts(os.environ.get(WORKSPACE_HOSTS, ""))
    except Invalid as fault:
        raise Invalid(f"{WORKSPACE_HOSTS}: {fault}") from None


def open_stores() -> None:
    """Do ahead of the first request what every function that knows its caller would do in it."""
    ports()
    if DATA_FOLDER not in os.environ:
        _aws_stores().open_table()


def search_follower() -> Follower:
    """What keeps the search index up with the sessions table."""
    return _aws_stores().search_follower()


def runs_follower() -> Follower:
    """What keeps the list of runs up with both tables."""
    return _aws_stores().runs_follower()


def dead_letters() -> DeadLetters:
    """Where the streams' functions put what they cannot take."""
    return _aws_stores().dead_letters()


def search_rebuild() -> SearchRebuild | None:
    """What makes search indices anew in the deployment that the environment names; None when it names none."""
    from ctrlb.adapters.aws_stores import OF_REBUILD, AwsStores

    if not any(os.environ.get(name) for name in OF_REBUILD):
        return None
    return AwsStores(os.environ).search_rebuild()


@contextlib.contextmanager
def embedded_search_rebuild(folder: Path) -> Iterator[SearchRebuild]:
    """What makes laptop mode's search index anew. The server must not be running on the folder."""
    from ctrlb.adapters.sqlite_database import SqliteDatabase
    from ctrlb.adapters.sqlite_rebuild import SqliteRebuild
    from ctrlb.adapters.sqlite_sessions import SESSIONS_SCHEMA

    database = SqliteDatabase(folder / "sessions.db", SESSIONS_SCHEMA)
    try:
        yield SqliteRebuild(database)
    finally:
        database.close()


@functools.cache
def _aws_stores() -> "AwsStores":
    from ctrlb.adapters.aws_stores import RELAY_TABLE, AwsStores

    if RELAY_TABLE not in os.environ:
        raise RuntimeError(
            f"no store is configured: {RELAY_TABLE} names the table in AWS, {DATA_FOLDER} the folder of laptop mode"
        )
    return AwsStores(os.environ)


def deployed(relay_table: str) -> Ports:
    """The stores of a deployment in AWS as far as they are in this table: the command line needs no others."""
    from ctrlb.adapters.aws_stores import RELAY_TABLE, AwsStores

    return AwsStores({RELAY_TABLE: relay_table}).ports()


@contextlib.contextmanager
def embedded(folder: Path) -> Iterator[Ports]:
    """The stores of laptop mode, open for a while, in two files: uploads do not keep claims waiting."""
    from ctrlb.adapters.sqlite_database import SqliteDatabase
    from ctrlb.adapters.sqlite_identity import IDENTITY_SCHEMA, SqliteIdentity
    from ctrlb.adapters.sqlite_relay import RELAY_SCHEMA, SqliteRelay
    from ctrlb.adapters.sqlite_runs import SqliteRuns
    from ctrlb.adapters.sqlite_sessions import SESSIONS_SCHEMA, SqliteSessions

    relay_file, sessions_file = folder / "relay.db", folder / "sessions.db"
    relay = SqliteDatabase(relay_file, RELAY_SCHEMA + IDENTITY_SCHEMA)
    sessions_database = SqliteDatabase(sessions_file, SESSIONS_SCHEMA, attach={"relay": relay_file})
    sessions = SqliteSessions(sessions_database)
    try:
        yield Ports(
            relay=SqliteRelay(relay),
            runs=SqliteRuns(sessions_database),
            sessions=sessions,
            index=sessions,
            identity=SqliteIdentity(relay),
            clock=SystemClock(),
            random=SystemRandomness(),
        )
    finally:
        sessions_database.close()
        relay.close()
