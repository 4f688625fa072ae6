"""Both doors of one deployment, opened in the test's own process: events go in as API Gateway would send them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode

import pytest

from ctrlb.answers import Fields, answer
from ctrlb.domain.access import Caller
from ctrlb.edge import http, mcp
from ctrlb.models import Answer
from ctrlb.operations import Operation, operation_of
from ctrlb.ports import Ports

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, the same for both doors: the status, the answer or error, and the headers."""

    status: int
    answer: Json
    headers: dict[str, str]


class Doors:
    """The handlers on stores that the test can exchange."""

    def __init__(self, stores: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stores = stores
        for door in (http, mcp):
            monkeypatch.setattr(door, "ports", lambda: self.stores)
            monkeypatch.setattr(door, "open_stores", lambda: None)
        self._mcp = mcp.mcp_handler()

    def http(self, operation: Operation, credential: str, fields: Json, host: str = "") -> Reply:
        """Call an operation's route with the fields, those of its path where they belong."""
        path = {name: value for name, value in fields.items() if f"{{{name}}}" in operation.path}
        rest = {name: value for name, value in fields.items() if name not in path}
        event = _event(operation.method, credential, host) | {"pathParameters": path}
        if operation.method == "GET":
            event["rawQueryString"] = urlencode(rest)
        else:
            event["body"] = json.dumps(rest[operation.body_field] if operation.body_field else rest)
        response = http.handler_for(operation.run)(event, None)
        return Reply(response["statusCode"], json.loads(response["body"]), response["headers"])

    def mcp(self, tool: str, credential: str, arguments: Json, host: str = "") -> Reply:
        """Call a tool. A tool error has the status 400 here, since over MCP it has none of its own."""
        event = _event("POST", credential, host)
        call = {"name": tool, "arguments": arguments}
        event["headers"]["mcp-protocol-version"] = "2025-06-18"
        event["body"] = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        response = self._mcp(event, None)
        body = json.loads(response["body"])
        if "result" not in body:
            return Reply(response["statusCode"], body, response["headers"])
        status = 400 if body["result"]["isError"] else 200
        return Reply(status, json.loads(body["result"]["content"][0]["text"]), response["headers"])


def _event(method: str, credential: str, host: str) -> Json:
    return {
        "rawQueryString": "",
        "headers": {"authorization": f"Bearer {credential}", "host": host},
        "requestContext": {"http": {"method": method, "path": "", "sourceIp": ""}, "requestId": "request"},
        "body": "",
        "isBase64Encoded": False,
    }


def asked(run: Callable[..., Answer], caller: Caller, stores: Ports, **fields: Any) -> tuple[int, Json]:
    """The status and answer that a known caller gets, whatever the door."""
    answered = answer(operation_of(run), lambda: caller, lambda: Fields(fields), stores)
    return answered.status, json.loads(answered.answer.model_dump_json(by_alias=True, exclude_unset=True))
