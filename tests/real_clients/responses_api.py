"""The OpenAI Responses API as Codex calls it, with streamed answers."""

import itertools
import json
from collections.abc import Iterator, Sequence

from tests.real_clients.model_server import ModelHandler
from tests.real_clients.script import Block, Call, Json, Request, Say, Think

INPUT_TOKENS, OUTPUT_TOKENS = 1300, 42
"""What every answer says that it cost."""

_numbers = itertools.count(1)


class ResponsesHandler(ModelHandler):
    """POST /v1/responses."""

    def answer_post(self, body: Json) -> None:
        path = self.path.split("?")[0]
        if path != "/v1/responses":
            self.send_json({"error": {"message": path, "type": "invalid_request_error"}}, status=404)
            return
        items: list[Json] = body["input"]
        request = Request(path, dict(self.headers), body, "", items)
        conversation = self.headers.get("thread-id", "")
        self.send_events(_events(self.play.answer(conversation, request, _prompts(items))))


def _prompts(items: Sequence[Json]) -> list[str]:
    """The texts of the user's messages, in order."""
    messages = [item for item in items if item.get("type") == "message" and item.get("role") == "user"]
    return [part["text"] for message in messages for part in message["content"] if part.get("type") == "input_text"]


def _events(blocks: Sequence[Block]) -> Iterator[tuple[str, Json]]:
    response = {"id": f"resp_{next(_numbers)}", "object": "response", "status": "in_progress", "output": []}
    items = [_item(block) for block in blocks]
    yield _named("response.created", response=response)
    for index, item in enumerate(items):
        yield _named("response.output_item.added", output_index=index, item=item)
        yield _named("response.output_item.done", output_index=index, item=item)
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 7},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    yield _named("response.completed", response={**response, "status": "completed", "output": items, "usage": usage})


def _named(name: str, **fields: object) -> tuple[str, Json]:
    return name, {"type": name, **fields}


def _item(block: Block) -> Json:
    number = next(_numbers)
    match block:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "c2VhbGVk"}
        case Call(tool, str(given)):
            called = {"id": f"ctc_{number}", "call_id": f"call_{number}", "name": tool, "input": given}
            return {"type": "custom_tool_call", "status": "completed", **called}
        case Call(tool, given):
            namespace, _, name = tool.rpartition("/")
            called = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(given)}
            return {"type": "function_call", "status": "completed", **called} | (
                {"namespace": namespace} if namespace else {}
            )
