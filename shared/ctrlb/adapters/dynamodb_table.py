"""A DynamoDB table by its low-level client: the few calls that the adapters make, and what their errors mean."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from botocore.exceptions import ClientError

from ctrlb.adapters.aws_client import PASSING, RETRY_AFTER_S, StoreRefused, answered, error_code, refused, unavailable
from ctrlb.adapters.dynamodb_items import Item, attribute
from ctrlb.domain.errors import Unavailable

MAX_PAGES = 64
"""Of at most 1 MB each: a query that would read on answers 503 rather than for ever."""


Values: TypeAlias = Mapping[str, object]
"""What the placeholders of an expression stand for, by their names without the colon."""
Check: TypeAlias = tuple[Item, str, Values | None]
"""A condition on an item beside those that are written: its key, the condition, and what it compares with."""


class ConditionFailed(Exception):
    """The condition of a write did not hold; nothing was written."""

    def __init__(self, found: Item) -> None:
        """`found` is the item that is there, empty when it was not told."""
        super().__init__("the condition of a write did not hold")
        self.found = found


class CollectionFull(StoreRefused):
    """The items of one pk have 10 GB, the most in a table with a local index: none is added, those of others can be."""


class Table:
    """One table. Every method raises Unavailable when DynamoDB does not answer in time, or is busy."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    def put(self, item: Item, condition: str | None = None, values: Values | None = None) -> None:
        """Write the item, where one is named only if the condition holds. Raises ConditionFailed."""
        self._call("put_item", **self._put(item, condition, values))

    def put_all(self, items: Sequence[Item], condition: str, values: Values | None = None) -> None:
        """Write all items, at most 100, each on the condition, or none. Raises ConditionFailed."""
        if len(items) == 1:
            self.put(items[0], condition, values)
        else:
            self.transact([{"Put": self._put(item, condition, values)} for item in items])

    def put_with(
        self,
        item: Item,
        condition: str,
        values: Values | None,
        beside: Sequence[Item],
        only_if: Sequence[Check] = (),
    ) -> None:
        """Write the item if all conditions hold, and those `beside` it, or none of them. Raises ConditionFailed."""
        self.transact(
            [
                {"Put": self._put(item, condition, values)},
                *({"Put": self._put(each, None, None)} for each in beside),
                *({"ConditionCheck": self._check(*check)} for check in only_if),
            ]
        )

    def remove_with(self, removed: Sequence[Check], beside: Sequence[Item], only_if: Sequence[Check] = ()) -> None:
        """Remove the items if all conditions hold, and write those `beside`, or neither. Raises ConditionFailed."""
        self.transact(
            [
                *({"Delete": self._check(*each)} for each in removed),
                *({"Put": self._put(each, None, None)} for each in beside),
                *({"ConditionCheck": self._check(*check)} for check in only_if),
            ]
        )

    def update_with(
        self, key: Item, update: str, condition: str, values: Values, beside: Item, only_if: Sequence[Check] = ()
    ) -> None:
        """Change the key's item if all conditions hold, and write `beside` with it, or neither."""
        change = {"Key": key, "UpdateExpression": update, "ConditionExpression": condition}
        self.transact(
            [
                {"Update": {"TableName": self.name, **change, "ExpressionAttributeValues": _placeholders(values)}},
                {"Put": self._put(beside, None, None)},
                *({"ConditionCheck": self._check(*check)} for check in only_if),
            ]
        )

    def transact(self, actions: Sequence[dict[str, Any]]) -> None:
        """Do all of it or nothing. Raises ConditionFailed."""
        self._call("transact_write_items", TransactItems=actions)

    def update(self, key: Item, update: str, condition: str, values: Values) -> None:
        """Change the key's item if the condition holds. Raises ConditionFailed."""
        self._call(
            "update_item",
            TableName=self.name,
            Key=key,
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeValues=_placeholders(values),
        )

    def take(self, key: Item) -> Item | None:
        """Delete the key's item and return it: of any number of callers, one gets it."""
        found = self._call("delete_item", TableName=self.name, Key=key, ReturnValues="ALL_OLD")
        return found.get("Attributes") or None

    def put_batch(self, items: Sequence[Item]) -> list[Item]:
        """Write the items, at most 25; return those that are not written."""
        requests = [{"PutRequest": {"Item": item}} for item in items]
        left = self._call("batch_write_item", RequestItems={self.name: requests})["UnprocessedItems"]
        return [request["PutRequest"]["Item"] for request in left.get(self.name, [])]

    def get(self, key: Item) -> Item | None:
        """The item, with every write that has returned."""
        found: Item | None = self._call("get_item", TableName=self.name, Key=key, ConsistentRead=True).get("Item")
        return found

    def query(
        self,
        condition: str,
        values: Values,
        *,
        limit: int | None = None,
        backwards: bool = False,
        index: str | None = None,
        consistent: bool = True,
        having: str | None = None,
    ) -> Iterator[Item]:
        """The items by their keys, at most `limit`. It reads on only past 1 MB, or for those that `having` drops."""
        parameters = self._query(condition, values, index, consistent, having)
        for page in self._pages(parameters, limit if having is None else None, ScanIndexForward=not backwards):
            for item in page["Items"]:
                yield item
                limit = None if limit is None else limit - 1
                if limit == 0:
                    return

    def count(
        self,
        condition: str,
        values: Values,
        *,
        index: str | None = None,
        consistent: bool = True,
        having: str | None = None,
    ) -> int:
        """How many items there are."""
        parameters = self._query(condition, values, index, consistent, having)
        return sum(page["Count"] for page in self._pages(parameters, None, Select="COUNT"))

    def scan_page(
        self, having: str, values: Values, *, part: int, parts: int, after: Item | None, limit: int
    ) -> tuple[list[Item], Item | None]:
        """Some items of one of the table's `parts`: of the next `limit` items or 1 MB, those that `having` keeps.

        With every write that has returned. The second value is what to go on `after`; None at the part's end.
        """
        parameters: dict[str, Any] = {} if after is None else {"ExclusiveStartKey": after}
        page = self._call(
            "scan",
            TableName=self.name,
            ConsistentRead=True,
            FilterExpression=having,
            ExpressionAttributeValues=_placeholders(values),
            Segment=part,
            TotalSegments=parts,
            Limit=limit,
            **parameters,
        )
        return page["Items"], page.get("LastEvaluatedKey")

    def _query(
        self, condition: str, values: Values, index: str | None, consistent: bool, having: str | None
    ) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": _placeholders(values),
            "ConsistentRead": consistent,
        }
        if "#at" in condition:
            parameters["ExpressionAttributeNames"] = {"#at": "at"}  # a reserved word
        if index is not None:
            parameters["IndexName"] = index
        if having is not None:
            parameters["FilterExpression"] = having
        return parameters

    def _pages(self, parameters: dict[str, Any], limit: int | None, **more: Any) -> Iterator[dict[str, Any]]:
        for _ in range(MAX_PAGES):
            page = self._call("query", **parameters, **more, **({} if limit is None else {"Limit": limit}))
            yield page
            if "LastEvaluatedKey" not in page:
                return
            parameters = {**parameters, "ExclusiveStartKey": page["LastEvaluatedKey"]}
        raise Unavailable(f"there is more to read than {MAX_PAGES} MB; ask for less", RETRY_AFTER_S)

    def _put(self, item: Item, condition: str | None, values: Values | None) -> dict[str, Any]:
        parameters: dict[str, Any] = {"TableName": self.name, "Item": item}
        if condition is not None:
            parameters["ConditionExpression"] = condition
            parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if values is not None:
            parameters["ExpressionAttributeValues"] = _placeholders(values)
        return parameters

    def _check(self, key: Item, condition: str, values: Values | None) -> dict[str, Any]:
        check: dict[str, Any] = {"TableName": self.name, "Key": key, "ConditionExpression": condition}
        return check if values is None else check | {"ExpressionAttributeValues": _placeholders(values)}

    def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        call = functools.partial(getattr(self._client, operation), **parameters)
        try:
            return dict(answered(call))
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                found: Any = error.response.get("Item", {})
                raise ConditionFailed(found) from error
            if error_code(error) == "ItemCollectionSizeLimitExceededException":
                raise CollectionFull(f"{operation}: the collection is full") from error
            if error_code(error) == "TransactionCanceledException":
                raise _cancelled(operation, error) from error
            raise refused(operation, error) from error


def _placeholders(values: Values) -> Item:
    return {f":{name}": attribute(value) for name, value in values.items()}


def _cancelled(operation: str, error: ClientError) -> Exception:
    """Why a transaction was not done: the first condition that failed, or else that the store was busy."""
    reasons: Any = error.response.get("CancellationReasons", [])
    for reason in reasons:
        if reason.get("Code") == "ConditionalCheckFailed":
            return ConditionFailed(reason.get("Item", {}))
    if any(reason.get("Code") in PASSING for reason in reasons):
        return unavailable()
    return refused(operation, error)
