"""Letters in a queue, on moto."""

import json
from typing import Any

import pytest
from botocore.stub import Stubber

from ctrlb.adapters.aws_client import StoreRefused, connect
from ctrlb.adapters.sqs_dead_letters import SQS_CONFIG, SqsDeadLetters
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.streams import DeadLetter


@pytest.fixture
def client(on_moto: None) -> Any:
    return connect("sqs", SQS_CONFIG)


def letter(place: int) -> DeadLetter:
    # Ids may hold what a queue does not take as it is.
    return DeadLetter("index_rows", str(place), {"pk": f"session#{place}:\ufffe é", "sk": "row#0"}, "400 refused")


def test_every_letter_is_kept_whatever_is_in_its_key(client: Any) -> None:
    url = client.create_queue(QueueName="letters")["QueueUrl"]
    SqsDeadLetters(url, lambda: client).put([letter(place) for place in range(23)])
    kept: list[Any] = []
    while found := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        kept += [json.loads(each["Body"]) for each in found]
    assert sorted(int(each["place"]) for each in kept) == list(range(23))
    assert {each["key"]["pk"] for each in kept} == {letter(place).key["pk"] for place in range(23)}


def test_without_letters_no_queue_is_needed() -> None:
    SqsDeadLetters("nowhere", lambda: pytest.fail("connected")).put([])


def test_a_letter_that_the_queue_does_not_take_is_told(client: Any) -> None:
    with Stubber(client) as queue:
        failed = {"Id": "0", "SenderFault": False, "Code": "InternalError"}
        queue.add_response("send_message_batch", {"Successful": [], "Failed": [failed]})
        with pytest.raises(Unavailable):
            SqsDeadLetters("https://queue.example", lambda: client).put([letter(0)])


def test_a_queue_that_is_not_there_is_a_fault_of_the_deployment(client: Any) -> None:
    with pytest.raises(StoreRefused, match="send_message_batch"):
        SqsDeadLetters("https://sqs.eu-central-1.amazonaws.com/1/none", lambda: client).put([letter(0)])
