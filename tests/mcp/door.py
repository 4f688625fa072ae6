"""/mcp, spoken to in plain HTTP requests of both eras of the protocol."""

import json
from pathlib import Path
from typing import Any, Self, TypeAlias

import httpx2

Json: TypeAlias = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "data" / "mcp"
TIMEOUT_S = 60.0
MODERN = "2026-07-28"
LEGACY = "2025-06-18"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
NO_RUN = "run_id is required: pass run_id, or connect with the X-CtrlB-Run header set"


class McpDoor:
    """The MCP server of a deployment, and a key to it."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key
        self._client = httpx2.Client(timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def request(self, method: str, path: str, headers: dict[str, str], content: str | bytes | None) -> httpx2.Response:
        """One request, with these headers and no key of its own."""
        return self._client.request(method, self.url + path, headers=headers, content=content)

    def send(
        self, body: Json | list[Any] | str | bytes | None, headers: dict[str, str] | None = None, method: str = "POST"
    ) -> httpx2.Response:
        """One request, as it is; a body that is not text is sent as JSON."""
        content = body if isinstance(body, str | bytes) else None if body is None else json.dumps(body)
        sent = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        } | (headers or {})
        return self.request(method, "/mcp", sent, content)

    def ask(self, era: str, method: str, params: Json, headers: dict[str, str] | None = None) -> httpx2.Response:
        """A JSON-RPC request with what the era wants around it."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        around = {"MCP-Protocol-Version": era}
        if era == MODERN:
            request["params"] = {"_meta": META, **params}
            around["Mcp-Method"] = method
            if "name" in params:
                around["Mcp-Name"] = params["name"]
        return self.send(request, around | (headers or {}))

    def tools(self, era: str = LEGACY) -> dict[str, Json]:
        """The tools that are listed, by name."""
        listed = self.ask(era, "tools/list", {}).json()["result"]["tools"]
        return {tool["name"]: tool for tool in listed}

    def call(self, tool: str, arguments: Json, headers: dict[str, str] | None = None, era: str = LEGACY) -> Json:
        """The result of a tool call."""
        response = self.ask(era, "tools/call", {"name": tool, "arguments": arguments}, headers)
        assert response.status_code == 200, response.text
        result: Json = response.json()["result"]
        return result

    def answer(self, tool: str, arguments: Json, headers: dict[str, str] | None = None, era: str = LEGACY) -> Json:
        """What a tool answers, seen to be the same in both of its forms."""
        result = self.call(tool, arguments, headers, era)
        assert result["isError"] is False, result
        answer: Json = result["structuredContent"]
        assert result["content"] == [{"type": "text", "text": compact(answer)}]
        return answer

    def error(self, tool: str, arguments: Json, headers: dict[str, str] | None = None, era: str = LEGACY) -> Json:
        """What a tool answers instead, in the one shape of errors."""
        result = self.call(tool, arguments, headers, era)
        assert result["isError"] is True, result
        assert "structuredContent" not in result
        (content,) = result["content"]
        assert content["type"] == "text"
        error: Json = json.loads(content["text"])
        assert set(error) <= {"error", "code"}
        return error


def compact(answer: Json) -> str:
    """JSON without white space, as answers are sent."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
