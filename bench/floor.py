"""The floor of a claim: the least that a handler can do for one, behind the same server and thread pool.

It reads JSON, makes one durable row in the product's own table, through the product's own SqliteDatabase (whose
writes gather, so at 16 agents no bare connection is as fast), waits 1 ms, reads the last row back and writes
JSON. It asks for no key, checks nothing, and writes no log.
"""

import argparse
import json
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any

from bench.load import HOST
from ctrlb.adapters.sqlite_database import SqliteDatabase
from ctrlb.adapters.sqlite_relay import RELAY_SCHEMA
from ctrlb.edge import local
from ctrlb.edge.http import Event, Handler, Response
from ctrlb.edge.routes import Router

WAIT_MS = 1
BACKLOG = 512
_APPEND = """
INSERT INTO relay_rows
    (workspace, dataset, run_id, key, number, kind, resource, user, agent, ts_us, lease_until_us, request_id)
VALUES ('local', 'agent_sessions', 'run', ?, 0, 'HOLD', ?, 'admin', ?, 0, 0, '')
"""
_LAST = """
SELECT agent, lease_until_us FROM relay_rows
WHERE workspace = 'local' AND dataset = 'agent_sessions' AND run_id = 'run' AND key = ? AND number IS NOT NULL
ORDER BY number DESC LIMIT 1
"""


def claim_handler(database: SqliteDatabase) -> Handler:
    """A handler that appends a row, waits and reads it back."""

    def handler(event: Event, context: Any) -> Response:
        fields = json.loads(event["body"])
        resource, agent = fields["resource"], fields["agent"]

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(_APPEND, (resource, resource, agent))

        database.write(job)
        time.sleep(WAIT_MS / 1_000)
        holder, lease_until_us = database.select(_LAST, (resource,))[0]
        answer = {"held": holder == agent, "resource": resource, "lease_until": lease_until_us}
        return _response(answer)

    return handler


def _ready(event: Event, context: Any) -> Response:
    return _response({"ok": True})


def _response(answer: dict[str, Any]) -> Response:
    body = json.dumps(answer, separators=(",", ":"))
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}


class _BareRouter(Router):
    """Every POST is a claim, everything else asks whether the server is there."""

    def __init__(self, claim: Handler) -> None:
        super().__init__([], Path())
        self._claim = claim

    def find(self, method: str, raw_path: str) -> tuple[Handler, dict[str, str]]:
        return (self._claim if method == "POST" else _ready), {}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    database = SqliteDatabase(options.data / "floor.db", RELAY_SCHEMA)
    listener = socket.create_server((HOST, options.port), backlog=BACKLOG)
    try:
        local.serve(listener, _BareRouter(claim_handler(database)), lambda: None)
    except KeyboardInterrupt:
        database.close()


if __name__ == "__main__":
    main()
