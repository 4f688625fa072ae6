"""Objects for what an item of a table cannot hold. The client is made when the first one is needed: few rows do."""

import functools
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ctrlb.adapters.aws_client import S3_CONFIG, StoreRefused, answered, connect, error_code, refused, unavailable


class NoSuchObject(StoreRefused):
    """There is no object with this key. To callers that may not list the bucket, S3 says that they are not allowed."""


class S3Bodies:
    """One bucket. Every method raises Unavailable when S3 does not answer in time, or is busy."""

    def __init__(self, bucket: str, connected: Callable[[], Any] = lambda: connect("s3", S3_CONFIG)) -> None:
        self._bucket = bucket
        self._connected = functools.cache(connected)

    def put(self, key: str, content: bytes) -> None:
        """Write the object, in the place of one with this key."""
        self._call("put_object", Key=key, Body=content)

    def get(self, key: str) -> bytes:
        """The object's content."""
        found = self._call("get_object", Key=key)["Body"]
        try:
            return bytes(found.read())
        except BotoCoreError as error:  # the connection ended, or the content stopped coming
            raise unavailable() from error

    def delete(self, key: str) -> None:
        """Remove the object; one that is not there is no error."""
        self._call("delete_object", Key=key)

    def _call(self, operation: str, **parameters: Any) -> Any:
        call = getattr(self._connected(), operation)
        try:
            return answered(functools.partial(call, Bucket=self._bucket, **parameters))
        except ClientError as error:
            if error_code(error) == "NoSuchKey":
                raise NoSuchObject(f"{operation}: NoSuchKey") from error
            raise refused(operation, error) from error
