"""The Anthropic Messages API as Claude Code calls it, with streamed answers."""

import itertools
import json
from collections.abc import Iterator, Sequence

from tests.real_clients.model_server import Events, ModelHandler
from tests.real_clients.script import Block, Call, Json, Request, Say, Think

INPUT_TOKENS, OUTPUT_TOKENS = 1200, 34
"""What every answer says that it cost."""

_numbers = itertools.count(1)


class MessagesHandler(ModelHandler):
    """POST /v1/messages and /v1/messages/count_tokens."""

    def answer_post(self, body: Json) -> None:
        path = self.path.split("?")[0]
        if path == "/v1/messages/count_tokens":
            self.send_json({"input_tokens": INPUT_TOKENS})
        elif path == "/v1/messages":
            messages: list[Json] = body["messages"]
            request = Request(path, dict(self.headers), body, "", messages)
            conversation = self.headers.get("X-Claude-Code-Session-Id", "")
            message = _message(str(body["model"]), self.play.answer(conversation, request, _prompts(messages)))
            if body.get("stream"):
                self.send_events(_events(message))
            else:
                self.send_json(message)
        else:
            self.send_json({"type": "error", "error": {"type": "not_found_error", "message": path}}, status=404)


def _prompts(messages: Sequence[Json]) -> list[str]:
    """The texts of the user's messages, in order."""
    found: list[str] = []
    for message in messages:
        content = message["content"]
        if message["role"] != "user":
            continue
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found.extend(block["text"] for block in blocks if block["type"] == "text")
    return found


def _message(model: str, blocks: Sequence[Block]) -> Json:
    calls = any(isinstance(block, Call) for block in blocks)
    return {
        "id": f"msg_{next(_numbers):024}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_content(block) for block in blocks],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        },
    }


def _content(block: Block) -> Json:
    match block:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}
        case Call(tool, given):
            return {"type": "tool_use", "id": f"toolu_{next(_numbers):024}", "name": tool, "input": given}


def _events(message: Json) -> Iterator[tuple[str, Json]]:
    started = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": started}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _block_events(index: int, block: Json) -> Events:
    match block["type"]:
        case "text":
            begun, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            begun = {**block, "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            begun = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}
