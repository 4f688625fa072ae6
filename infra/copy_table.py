"""Write the items of one DynamoDB table into another: the second half of a restore, whose first half is AWS's.

    python infra/copy_table.py --from <restored table> --to <the stack's table> [--pk-prefix 'run#4:acme,']

Items that are there already are overwritten, others stay. The streams see all that changes, so the search index and the
list of runs follow by themselves. It may be ended and begun again.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from botocore.config import Config
from botocore.session import get_session

BATCH_ITEMS = 25
TRIES = 10
TELL_EVERY = 10_000
PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 10})


def main(arguments: list[str] | None = None) -> int:
    """Copy what the options name. Returns the process's exit status."""
    parser = argparse.ArgumentParser(description="Write the items of one DynamoDB table into another.")
    parser.add_argument("--from", dest="source", required=True, help="the table to read")
    parser.add_argument("--to", dest="target", required=True, help="the table to write to")
    parser.add_argument("--pk-prefix", default="", help="only items whose pk begins with it")
    options = parser.parse_args(arguments)
    client = get_session().create_client("dynamodb", config=PATIENT)
    copied = 0
    for page in _pages(client, options.source, options.pk_prefix):
        for start in range(0, len(page), BATCH_ITEMS):
            write(client, options.target, page[start : start + BATCH_ITEMS])
        if copied // TELL_EVERY != (copied + len(page)) // TELL_EVERY:
            print(f"{copied + len(page):,} items", file=sys.stderr, flush=True)
        copied += len(page)
    print(f"copied {copied:,} items from {options.source} to {options.target}")
    return 0


def write(client: Any, table: str, items: list[dict[str, Any]]) -> None:
    """Write the items, sending again what is left unprocessed. Raises RuntimeError when that does not end."""
    requests = {table: [{"PutRequest": {"Item": item}} for item in items]}
    for turn in range(TRIES):
        requests = client.batch_write_item(RequestItems=requests)["UnprocessedItems"]
        if not requests:
            return
        time.sleep(min(0.1 * 2**turn, 5))
    raise RuntimeError(f"{table} is too busy; run the same again later")


def _pages(client: Any, table: str, prefix: str) -> Iterator[list[dict[str, Any]]]:
    wanted: dict[str, Any] = {}
    if prefix:
        wanted["FilterExpression"] = "begins_with(pk, :prefix)"
        wanted["ExpressionAttributeValues"] = {":prefix": {"S": prefix}}
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True, **wanted):
        yield page["Items"]


if __name__ == "__main__":
    sys.exit(main())
