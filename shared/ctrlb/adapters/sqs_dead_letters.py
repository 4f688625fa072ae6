"""Dead letters in an SQS queue, where an alarm sees them."""

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from ctrlb.adapters.aws_client import answered, refused, unavailable
from ctrlb.domain.streams import DeadLetter

BATCH_LETTERS = 10
SQS_CONFIG = Config(connect_timeout=1, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})


class SqsDeadLetters:
    """The port DeadLetters. The client is made with the first letter: mostly there are none."""

    def __init__(self, url: str, connected: Callable[[], Any]) -> None:
        self._url = url
        self._connected = functools.cache(connected)

    def put(self, letters: Sequence[DeadLetter]) -> None:
        """See DeadLetters.put."""
        for start in range(0, len(letters), BATCH_LETTERS):
            self._send(letters[start : start + BATCH_LETTERS])

    def _send(self, letters: Sequence[DeadLetter]) -> None:
        entries = [
            # Plain ASCII: a queue refuses some characters that an id may have.
            {"Id": str(place), "MessageBody": json.dumps(asdict(letter))}
            for place, letter in enumerate(letters)
        ]
        client = self._connected()
        try:
            answer = answered(lambda: client.send_message_batch(QueueUrl=self._url, Entries=entries))
        except ClientError as error:
            raise refused("send_message_batch", error) from error
        if answer.get("Failed"):
            raise unavailable()
