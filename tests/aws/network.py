"""What can become of a request between the SDK and AWS, made to happen at the SDK's own seam, under moto."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from moto.core.models import botocore_stubber

Fate: TypeAlias = Callable[[str, AWSPreparedRequest], AWSResponse | None]
"""Given the event and the request: an answer, an error raised, or None to let the request through."""


class Network:
    """Between a client and moto: notes what is sent, and has a fate for each of the next requests."""

    def __init__(self, client: Any) -> None:
        self.sent: list[str] = []
        """The operations, in the order in which they were sent, each time that they were."""
        self.fates: list[Fate] = []
        self.always: Fate = passed
        """What becomes of requests that have no fate of their own."""
        client.meta.events.register_first("before-send", self._before_send)

    def _before_send(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        self.sent.append(event_name.rpartition(".")[2])
        fate = self.fates.pop(0) if self.fates else self.always
        return fate(event_name, request)


def passed(_: str, __: AWSPreparedRequest) -> None:
    """The request arrives, and so does its answer."""


def request_lost(_: str, request: AWSPreparedRequest) -> None:
    """The request does not arrive."""
    raise ReadTimeoutError(endpoint_url=request.url)


def answer_lost(event_name: str, request: AWSPreparedRequest) -> None:
    """The request arrives and is done, but its answer does not."""
    botocore_stubber(event_name, request)
    raise ReadTimeoutError(endpoint_url=request.url)


def unreachable(_: str, request: AWSPreparedRequest) -> None:
    """There is nobody at the address."""
    raise EndpointConnectionError(endpoint_url=request.url)


def hung_up(_: str, request: AWSPreparedRequest) -> None:
    """The connection ends before the answer."""
    raise ConnectionClosedError(endpoint_url=request.url)


def after(do: Callable[[], None], fate: Fate) -> Fate:
    """Something happens first."""

    def both(event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
        do()
        return fate(event_name, request)

    return both


def answers(status: int, content: Mapping[str, Any] | str) -> Fate:
    """AWS answers this."""

    def answer(_: str, request: AWSPreparedRequest) -> AWSResponse:
        text = content if isinstance(content, str) else json.dumps(content)
        headers = HTTPHeaders()
        headers["content-type"] = "application/x-amz-json-1.0"
        return AWSResponse(request.url, status, headers, _Raw(text.encode()))

    return answer


def fails(status: int, code: str, message: str = "") -> Fate:
    """AWS answers an error."""
    return answers(status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message})


class _Raw:
    """A body as urllib3 hands it over."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> list[bytes]:
        return [self._content]
