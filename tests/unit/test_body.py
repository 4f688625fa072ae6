"""What reading a body costs: nothing where none is asked for, and no more than its size where one is."""

import base64
import gzip
import json
import os
import time
from typing import Any

import pytest

from ctrlb.domain.errors import Invalid, TooLarge
from ctrlb.edge import http
from ctrlb.service import health

MIB = 1024 * 1024
EMPTY = gzip.compress(b"", 1)


def event(body: bytes) -> dict[str, Any]:
    return {
        "headers": {"content-encoding": "gzip"},
        "requestContext": {"http": {"method": "GET", "path": "/health", "sourceIp": ""}},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


def test_a_body_is_not_read_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ports", lambda: None)
    assert http.handler_for(health)(event(b"no gzip"), None)["statusCode"] == 200


def test_members_of_a_gzip_body_are_joined() -> None:
    parts = [os.urandom(70_000), b"", json.dumps({"a": 1}).encode(), b"x" * 300_000]
    assert http.read_body(event(b"".join(map(gzip.compress, parts)))) == b"".join(parts)


def test_many_members_before_a_long_one_cost_no_more_than_their_bytes() -> None:
    """Each was once taken off by a copy of all that follows: 10 MB, a thousand times."""
    body = EMPTY * (http.MAX_GZIP_MEMBERS - 1) + b"rest" * (2 * MIB)
    asked = event(body)
    started_s = time.process_time()
    with pytest.raises(Invalid):
        http.read_body(asked)
    took_s = time.process_time() - started_s
    started_s = time.process_time()
    for _ in range(http.MAX_GZIP_MEMBERS // 4):
        bytes(bytearray(body))
    assert took_s < time.process_time() - started_s


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (EMPTY * (http.MAX_GZIP_MEMBERS + 1), Invalid),
        (b"", Invalid),
        (gzip.compress(os.urandom(100_000))[:-1], Invalid),
        (gzip.compress(b"x") + b"junk", Invalid),
        (gzip.compress(b"x" * (4 * MIB)) + gzip.compress(b"y"), TooLarge),
        (gzip.compress(b"x" * (40 * MIB)), TooLarge),
    ],
    ids=["too many", "nothing", "cut off", "junk behind", "a byte too much", "a bomb"],
)
def test_a_gzip_body_that_cannot_be_taken_is_refused(body: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        http.read_body(event(body))


def test_four_mebibytes_are_taken_packed() -> None:
    body = os.urandom(4 * MIB)
    assert http.read_body(event(gzip.compress(body))) == body
