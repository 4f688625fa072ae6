"""Requests to an OpenSearch service: signed, bounded, sent again where that helps.

Not by opensearch-py, whose import is most of a cold start: urllib3 and the signer are loaded with botocore anyway.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib3.exceptions import HTTPError

from ctrlb.domain.errors import Unavailable

CONNECT_TIMEOUT_S = 2.0
RETRIES = 2
"""The first at once, the second after 0.2 to 0.4 s. One that did not answer in time is asked but once more."""
BUSY = frozenset({429, 500, 502, 503, 504})
REFUSED_FOR_NOW = BUSY | {401, 403, 408}
"""Access that is not set up, or an index that is closed to writes because its disk is full: somebody sees to it."""


class SearchRefused(RuntimeError):
    """The service calls a request wrong: a fault of the code, or of how the service was set up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered."""

    status: int
    content: Any


@dataclass(frozen=True, slots=True)
class Signing:
    """How requests are signed: `service` is `es` for a domain, `aoss` for a serverless collection."""

    credentials: Credentials
    region: str
    service: str


class OpenSearch:
    """One service, known by its URL. Connects at the first request and may be used by many threads."""

    def __init__(self, url: str, signing: Signing | None = None, *, timeout_s: float = 3.0) -> None:
        """Wait `timeout_s` for each of at most 1 + RETRIES answers to a request."""
        self._url = url.rstrip("/")
        self._signing = signing
        # All that is asked may be asked twice: reads, and writes that carry their version.
        retries = urllib3.Retry(
            total=RETRIES,
            connect=1,
            read=1,
            allowed_methods=None,
            status_forcelist=BUSY,
            raise_on_status=False,
            redirect=False,
            respect_retry_after_header=False,
            backoff_factor=0.1,
            backoff_jitter=0.2,
        )
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=timeout_s)
        self._pool = urllib3.PoolManager(retries=retries, timeout=timeout)

    def ask(self, method: str, path: str, content: object = None, **parameters: str) -> Answer:
        """The answer, whatever it says, unless the service has none for now: then Unavailable.

        `content` is sent as JSON, bytes as they are.
        """
        url = f"{self._url}{path}?{urlencode(parameters)}" if parameters else f"{self._url}{path}"
        body = content if isinstance(content, bytes) else json_bytes(content) if content is not None else b""
        headers = {"Content-Type": "application/x-ndjson" if isinstance(content, bytes) else "application/json"}
        try:
            response = self._pool.request(method, url, body=body, headers=self._signed(method, url, body, headers))
            answer = Answer(response.status, json.loads(response.data) if response.data else None)
        except (HTTPError, ValueError) as error:
            raise _unavailable("did not answer") from error
        if answer.status in REFUSED_FOR_NOW:
            raise _unavailable(f"answered {answer.status}")
        return answer

    def _signed(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> dict[str, str]:
        if self._signing is None:
            return headers
        # A serverless collection wants the hash of the body as a header, too.
        headers["X-Amz-Content-SHA256"] = hashlib.sha256(body).hexdigest()
        request = AWSRequest(method, url, headers=headers, data=body)
        credentials = self._signing.credentials.get_frozen_credentials()
        SigV4Auth(credentials, self._signing.service, self._signing.region).add_auth(request)
        return dict(request.headers)


def json_bytes(value: object) -> bytes:
    """The value as JSON in UTF-8, which is shorter than in escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _unavailable(how: str) -> Unavailable:
    return Unavailable(f"the search index {how}; send the same again later")
