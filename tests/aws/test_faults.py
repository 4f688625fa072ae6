"""What becomes of a call when AWS is late, busy, down or says no: nothing is promised that was not done."""

import json
import socket
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ReadTimeoutError

from ctrlb.adapters.aws_client import (
    ATTEMPTS,
    CONNECT_TIMEOUT_S,
    DYNAMODB_CONFIG,
    READ_TIMEOUT_S,
    StoreRefused,
    connect,
)
from ctrlb.adapters.dynamodb_sessions import BATCH_TRIES, WRITE_BUDGET_S
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.claims import claim
from ctrlb.domain.errors import Invalid, Unavailable
from ctrlb.models import ClaimRequest
from ctrlb.ports import NumberTaken, Ports
from tests.aws.conftest import Deployed
from tests.aws.network import (
    Fate,
    after,
    answer_lost,
    answers,
    fails,
    hung_up,
    passed,
    request_lost,
    unreachable,
)
from tests.conftest import caller_named
from tests.contract.relay_rows import DATASET, NOW_US, RUN, hold, note
from tests.contract.session_rows import said

APP = "path:src/app.py"
THROTTLED = fails(400, "ThrottlingException")
FULL = fails(400, "ItemCollectionSizeLimitExceededException")
SPARE_S = 30.0
"""What a busy machine may take beside; boto3 by itself waits for a minute, several times."""


def test_a_write_that_is_sent_again_after_its_answer_was_lost_meets_itself(deployed: Deployed) -> None:
    deployed.dynamodb.fates = [answer_lost]
    deployed.relay.append(RUN, hold(APP, 0))
    assert deployed.dynamodb.sent == ["PutItem", "PutItem"]
    assert deployed.relay.last(RUN, APP) == hold(APP, 0)
    with pytest.raises(NumberTaken):
        deployed.relay.append(RUN, hold(APP, 0))  # another call, although its row looks the same


def test_a_write_that_is_sent_again_after_a_rival_wrote_loses_to_it(deployed: Deployed) -> None:
    rival = hold(APP, 0, agent="rival")
    deployed.dynamodb.fates = [after(lambda: deployed.rival.append(RUN, rival), request_lost)]
    with pytest.raises(NumberTaken):
        deployed.relay.append(RUN, hold(APP, 0))
    assert deployed.relay.last(RUN, APP) == rival


def test_an_event_that_is_sent_again_is_one_row(deployed: Deployed) -> None:
    deployed.dynamodb.fates = [answer_lost]
    deployed.relay.add_events(RUN, note("once"))
    assert deployed.relay.newest(RUN, 10) == [note("once")]


def test_a_claim_whose_answers_were_lost_is_not_refused_to_its_own_holder(deployed: Deployed, stores: Ports) -> None:
    ports = replace(stores, relay=deployed.relay)
    request = ClaimRequest(run_id="nightly", agent="a", resource="src/app.py")
    deployed.dynamodb.fates = [answer_lost] * ATTEMPTS
    with pytest.raises(Unavailable):
        claim(request, caller_named("ann"), ports)
    again = claim(request, caller_named("ann"), ports)
    assert (again.held, again.held_by) == (True, None)
    assert claim(request.model_copy(update={"agent": "b"}), caller_named("bob"), ports).held_by == "a"


@pytest.mark.parametrize(
    "fate",
    [
        THROTTLED,
        fails(400, "ProvisionedThroughputExceededException"),
        fails(400, "RequestLimitExceeded"),
        fails(400, "TransactionConflictException"),
        fails(500, "InternalServerError"),
        fails(503, "ServiceUnavailable"),
        answers(502, "<html>Bad Gateway</html>"),
        request_lost,
        answer_lost,
        unreachable,
        hung_up,
    ],
    ids=["throttled", "throughput", "limit", "conflict", "500", "503", "502", "late", "lost", "unreachable", "hung up"],
)
def test_a_store_that_is_busy_late_or_down_is_unavailable(deployed: Deployed, fate: Fate) -> None:
    deployed.dynamodb.always = fate
    for call in (
        lambda: deployed.relay.append(RUN, hold(APP, 0)),
        lambda: deployed.relay.last(RUN, APP),
        lambda: deployed.relay.add_events(RUN, note("hello")),
        lambda: deployed.relay.newest(RUN, 10),
        lambda: deployed.sessions.write(DATASET, "ann", [said("s1", 1, "text")], NOW_US),
        lambda: deployed.sessions.owner(DATASET, "s1"),
    ):
        deployed.dynamodb.sent.clear()
        with pytest.raises(Unavailable) as unavailable:
            call()
        assert unavailable.value.retry_after_s == 1
        assert 1 <= len(deployed.dynamodb.sent) <= ATTEMPTS
    assert max(deployed.pauses_s, default=0.0) <= 1.0


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"])
def test_a_store_that_says_no_is_a_fault_of_ours_and_its_words_stay_out(deployed: Deployed, code: str) -> None:
    deployed.dynamodb.always = fails(400, code, "secret words")
    with pytest.raises(StoreRefused, match=f"^put_item: {code}$"):
        deployed.relay.append(RUN, hold(APP, 0))
    assert deployed.dynamodb.sent == ["PutItem"]


def test_a_run_that_has_all_rows_it_can_have_says_so_to_its_callers(deployed: Deployed) -> None:
    deployed.dynamodb.always = FULL
    with pytest.raises(Invalid, match="go on in another run"):
        deployed.relay.append(RUN, hold(APP, 0))
    with pytest.raises(Invalid, match="go on in another run"):
        deployed.relay.add_events(RUN, note("hello"), note("again"))


def test_a_call_to_a_store_that_never_answers_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        table = Table(connect("dynamodb", DYNAMODB_CONFIG), "relay")
        began_s = time.monotonic()
        with pytest.raises(Unavailable):
            table.get({"pk": {"S": "x"}, "sk": {"S": "x"}})
        assert time.monotonic() - began_s < ATTEMPTS * (CONNECT_TIMEOUT_S + READ_TIMEOUT_S) + SPARE_S


def unprocessed(most: int) -> Fate:
    """DynamoDB writes at most so many items of a batch and names the others."""

    def some(event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
        assert isinstance(request.body, bytes)
        content = json.loads(request.body)
        ((table, requests),) = content["RequestItems"].items()
        left = answers(200, {"UnprocessedItems": {table: requests[most:]} if requests[most:] else {}})
        if most:
            request.body = json.dumps({"RequestItems": {table: requests[:most]}}).encode()
            with pytest.raises(ReadTimeoutError):
                answer_lost(event_name, request)
        return left(event_name, request)

    return some


def test_an_upload_is_answered_once_nothing_is_left_unprocessed(deployed: Deployed) -> None:
    rows = [said("s1", seq, f"text {seq}") for seq in range(25)]
    began_us = deployed.clock.us
    deployed.dynamodb.fates = [passed, passed, unprocessed(10), unprocessed(0), unprocessed(10)]
    deployed.sessions.write(DATASET, "ann", rows, NOW_US)
    assert deployed.dynamodb.sent == ["GetItem", "PutItem", *["BatchWriteItem"] * 4]
    assert deployed.sessions.rows(DATASET, "s1", 0, 99, 99, 99) == rows
    assert 0 < deployed.clock.us - began_us <= (50 + 100 + 200) * 1_000


def test_an_upload_that_stays_unprocessed_is_refused_within_its_time(deployed: Deployed) -> None:
    deployed.dynamodb.fates = [passed, passed]
    deployed.dynamodb.always = unprocessed(0)
    began_us, waited_us = deployed.clock.us, []
    deployed.clock.on_wait = lambda: waited_us.append(deployed.clock.us - began_us)
    with pytest.raises(Unavailable):
        deployed.sessions.write(DATASET, "ann", [said("s1", 1, "text")], NOW_US)
    assert 2 <= len(waited_us) <= BATCH_TRIES
    assert waited_us[-1] <= WRITE_BUDGET_S * 1_000_000
    pauses_us = [later - earlier for earlier, later in pairwise([0, *waited_us])]
    assert all(0 < pause_us <= 50_000 * 2**turn for turn, pause_us in enumerate(pauses_us))


def test_an_upload_of_which_one_batch_fails_is_refused_whole_and_can_be_sent_again(deployed: Deployed) -> None:
    rows = [said("s1", seq, "text") for seq in range(60)]
    deployed.dynamodb.fates = [passed, passed, passed, fails(400, "ValidationException")]
    with pytest.raises(StoreRefused):
        deployed.sessions.write(DATASET, "ann", rows, NOW_US)
    assert deployed.dynamodb.sent.count("BatchWriteItem") == 3  # none is still on its way
    deployed.sessions.write(DATASET, "ann", rows, NOW_US)
    assert deployed.sessions.rows(DATASET, "s1", 0, 99, 99, 99) == rows


def test_an_upload_whose_object_cannot_be_written_writes_no_row(deployed: Deployed, noise: str) -> None:
    deployed.s3.always = fails(503, "SlowDown")
    with pytest.raises(Unavailable):
        deployed.sessions.write(DATASET, "ann", [said("s1", 1, noise), said("s1", 2, "text")], NOW_US)
    assert deployed.sessions.rows(DATASET, "s1", 0, 99, 99, 99) == []


def test_a_row_whose_object_cannot_be_read_is_unavailable(deployed: Deployed, noise: str, tmp_path: Path) -> None:
    deployed.sessions.write(DATASET, "ann", [said("s1", 1, noise)], NOW_US)
    deployed.s3.always = request_lost
    assert deployed.sessions.rows(DATASET, "s1", 0, 9, 9, 4_000)[0].body == noise[:4_000]
    with pytest.raises(Unavailable):
        deployed.sessions.rows(DATASET, "s1", 0, 9, 9, 4_001)
