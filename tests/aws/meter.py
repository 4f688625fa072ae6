"""What a call of the SDK costs, read off the SDK's own seam: store calls, DynamoDB's units, bytes on the wire.

The units are worked out by DynamoDB's published rules, because emulators do not: a write costs a unit for each KiB of
the item, and the same for its part in each index that it is in; a read a unit for each 4 KiB that it looks at, half of
that when it need not be consistent; in a transaction everything is double.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctrlb.adapters.dynamodb_items import READ_UNIT_BYTES, Item, size_of, write_units
from tests.template import RESOURCES

TABLES = {
    name.lower(): each["Properties"] for name, each in RESOURCES.items() if each["Type"] == "AWS::DynamoDB::Table"
}


@dataclass
class Cost:
    """What some calls cost together."""

    calls: Counter[str] = field(default_factory=Counter)
    read_units: float = 0.0
    write_units: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Meter:
    """Adds up what a client's calls cost, from `start` on."""

    def __init__(self, client: Any) -> None:
        self.cost = Cost()
        self._client = client
        self._lock = threading.Lock()
        self._asked = threading.local()
        events = client.meta.events
        events.register("provide-client-params", self._note_parameters)
        events.register_first("before-send", self._note_sent)
        events.register("after-call", self._note_answer)

    def start(self) -> None:
        """Forget what was added up."""
        self.cost = Cost()

    def _note_parameters(self, params: dict[str, Any], **_: Any) -> None:
        self._asked.parameters = params

    def _note_sent(self, request: Any, **_: Any) -> None:
        if not getattr(self._asked, "aside", False):
            with self._lock:
                self.cost.sent_bytes += len(request.body or b"")

    def _note_answer(self, http_response: Any, parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
        if getattr(self._asked, "aside", False):
            return
        read, written = self._units(model.name, self._asked.parameters, parsed)
        with self._lock:
            self.cost.calls[model.name] += 1
            self.cost.received_bytes += len(http_response.content)
            self.cost.read_units += read
            self.cost.write_units += written

    def _units(self, operation: str, asked: dict[str, Any], answer: Mapping[str, Any]) -> tuple[float, int]:
        if operation == "PutItem" and "Error" in answer:
            return 0, write_units(size_of(asked["Item"]))  # a condition that fails costs, too, but no index is written
        if operation == "PutItem":
            return 0, _written(asked["TableName"], asked["Item"])
        if operation == "UpdateItem":
            return 0, 1  # of small rows that are in no index
        if operation == "BatchWriteItem":
            ((table, requests),) = asked["RequestItems"].items()
            return 0, sum(_written(table, request["PutRequest"]["Item"]) for request in requests)
        if operation == "TransactWriteItems":
            puts = [action["Put"] for action in asked["TransactItems"] if "Put" in action]
            updates = len(asked["TransactItems"]) - len(puts)
            return 0, 2 * (updates + sum(_written(put["TableName"], put["Item"]) for put in puts))
        if operation == "GetItem":
            return _read([answer["Item"]] if "Item" in answer else [], asked), 0
        if operation == "Query":
            return _read(self._looked_at(asked, answer), asked), 0
        return 0, 0

    def _looked_at(self, asked: dict[str, Any], answer: Mapping[str, Any]) -> list[Item]:
        """The items that a query read, those too that it only counted or dropped."""
        if "Select" not in asked and "FilterExpression" not in asked:
            items: list[Item] = answer["Items"]
            return items
        whole = {name: value for name, value in asked.items() if name not in ("Select", "FilterExpression")}
        named = f"{asked['KeyConditionExpression']} ".replace(")", " ").replace(",", " ").split()
        values = {name: value for name, value in whole["ExpressionAttributeValues"].items() if name in named}
        self._asked.aside = True
        found: list[Item] = self._client.query(**whole | {"ExpressionAttributeValues": values})["Items"]
        self._asked.aside = False
        return found


def _read(items: list[Item], asked: Mapping[str, Any]) -> float:
    units = max(1, -(-sum(map(size_of, items)) // READ_UNIT_BYTES))
    return units if asked.get("ConsistentRead") else units / 2


def _written(table: str, item: Item) -> int:
    """What the item costs to write, as a new one, with its part in each index."""
    return write_units(size_of(item)) + sum(
        write_units(size_of(part)) for part in _index_parts(TABLES[table.partition("-")[0]], item)
    )


def _index_parts(table: Mapping[str, Any], item: Item) -> list[Item]:
    parts = []
    for index in table.get("LocalSecondaryIndexes", []) + table.get("GlobalSecondaryIndexes", []):
        if all(key["AttributeName"] in item for key in index["KeySchema"]):
            projection = index["Projection"]
            kept = {*projection.get("NonKeyAttributes", []), "pk", "sk"}
            kept |= {key["AttributeName"] for key in index["KeySchema"]}
            whole = projection["ProjectionType"] == "ALL"
            parts.append({name: value for name, value in item.items() if whole or name in kept})
    return parts
