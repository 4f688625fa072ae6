"""What the parts of a Codex rollout say, as columns of rows: tool calls of the model, their outputs, completed items.

Tools are named as Codex's hooks name them: `Bash` for every shell, `apply_patch`, `mcp__<server>__<tool>`, and the
others by their own names.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple
from urllib.parse import unquote

from ctrlb_agent.json_values import list_of, object_of, parsed, text_of
from ctrlb_agent.transcripts import edits
from ctrlb_agent.transcripts.rows import (
    MAX_CWD_CHARS,
    as_json,
    body_of,
    clean_id,
    clean_name,
    paths_column,
    shell_text,
    tool_command,
    tool_paths,
)

HARNESS = "codex"
Fields = dict[str, Any]
"""Some columns of a row, by their names."""
MAX_OUTPUT_HEAD_CHARS = 400
"""Where an output says how it went; behind it is what a command printed."""

PICTURE_TYPE = "image/png"
"""What Codex has pictures made as; an item does not tell."""

AWAITED, ANSWERED, RUNNING = 0, 1, 2
"""What is known of a call: nothing after it, its result by an item, or an output that said that it goes on."""

_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)\s*$", re.MULTILINE | re.ASCII)
_REFUSED = (
    "Command blocked by",
    "Script failed\n",
    "unable to process image",
    "unsupported call",
    "unsupported custom tool call",
    "failed to parse function arguments",
)
_RUNNING = "Process running with session ID "


class Output(NamedTuple):
    """What the output of a call says of it."""

    text: str
    failed: bool
    is_running: bool

    def never_ran(self, name: str) -> bool:
        """Whether the tool was not run, given that no item told its result: one does of each that is run."""
        return not self.is_running and (name in ("Bash", "apply_patch") or name.startswith("mcp__"))


def call_of(payload: dict[str, Any], call_id: str, cwd: str, root: str) -> Fields:
    """The columns of a tool call that the model made. `cwd` is the session's."""
    name = tool_name(payload)
    given, body = _input(payload)
    place = _inside(cwd, object_of(given).get("workdir") or object_of(given).get("working_directory"))
    return {
        "block_type": "tool_use",
        "role": "assistant",
        "tool_name": name,
        "tool_use_id": call_id,
        "command": tool_command(name, given),
        "paths": tool_paths(name, given, place, root),
        "body": body,
        "uuid": payload.get("id"),
    }


def tool_name(call: dict[str, Any]) -> str:
    """The name of the tool that is called, as an id."""
    if call.get("type") == "local_shell_call":
        return "Bash"
    name = text_of(call.get("name") or call.get("tool"))
    space = text_of(call.get("namespace")).rstrip("_")
    if space.startswith("mcp__"):
        return clean_id(f"{space}__{name}")
    if call.get("type") == "tool_search_call":
        return "tool_search"
    return "Bash" if name in edits.SHELL_TOOLS and not space else clean_id(name)


def output_of(payload: dict[str, Any]) -> Output:
    """What the output of a call tells; what is no text in it is JSON."""
    output = payload.get("output", payload.get("tools"))
    failed = object_of(output).get("success") is False
    if isinstance(output, dict) and "content" in output:
        output = output["content"]
    if isinstance(output, str) and output.startswith('{"output":'):  # with its metadata, as older versions write it
        told = object_of(parsed(output))
        failed = failed or object_of(told.get("metadata")).get("exit_code") not in (None, 0)
        output = told.get("output", output)
    text = body_of(output)
    head = text[:MAX_OUTPUT_HEAD_CHARS].partition("\nOutput:")[0]
    failed = failed or text.startswith(_REFUSED) or any(code != "0" for code in _EXIT_CODE.findall(head))
    return Output(text, failed, _RUNNING in head)


def item_rows(item: dict[str, Any], root: str, memory: dict[str, Any]) -> list[Fields]:
    """The rows of a completed item: what was said, or the result of a call, with the call if no line told it before."""
    kind = text_of(item.get("type"))
    texts = _said(item)
    if texts is not None:
        return [{**fields, "uuid": item.get("id")} for fields in texts if fields["body"]]
    made = _TOOLS[kind](item, text_of(memory.get("cwd")) or root, root) if kind in _TOOLS else None
    if made is None:
        return []
    call, result = made
    call_id = clean_id(item.get("id"))
    known = memory.get("calls", {}).get(call_id)
    if known is None:
        both = [{"block_type": "tool_use", "role": "assistant", **call}]
        if result:
            both.append({"block_type": "tool_result", "role": "user", "tool_name": call["tool_name"], **result})
        return [{**fields, "tool_use_id": call_id, "uuid": item.get("id")} for fields in both]
    if kind not in _RESULTS or not result:
        return []  # its output says it
    if known[1] == RUNNING:
        del memory["calls"][call_id]
    else:
        known[1] = ANSWERED
    answer = {"block_type": "tool_result", "role": "user", "tool_name": known[0], "tool_use_id": call_id}
    return [{**answer, "uuid": item.get("id"), **result}]


def kept(value: Any) -> str:
    """The name of a folder, branch or model as it is kept in the memory."""
    return clean_name(value)[:MAX_CWD_CHARS]


def _said(item: dict[str, Any]) -> list[Fields] | None:
    """What was said or thought, None when the item is neither."""
    kind = item.get("type")
    if kind == "Reasoning":
        thoughts = [*list_of(item.get("summary_text")), *list_of(item.get("raw_content"))]
        return [{"block_type": "thinking", "role": "assistant", "body": text_of(thought)} for thought in thoughts]
    if kind == "Plan":
        return [{"role": "assistant", "body": text_of(item.get("text"))}]
    if kind == "HookPrompt":
        return [
            {"role": "user", "body": text_of(object_of(part).get("text"))} for part in list_of(item.get("fragments"))
        ]
    if kind in ("UserMessage", "AgentMessage"):
        role = "user" if kind == "UserMessage" else "assistant"
        content = item.get("content")
        parts = content if isinstance(content, list) else [content]
        return [{"role": role, "body": body_of([part])} for part in parts if part]
    return None


def _input(payload: dict[str, Any]) -> tuple[Any, str]:
    """What a call is given, and the same as a body."""
    if payload.get("type") == "custom_tool_call":
        text = payload.get("input")
        return ({"input": text}, text) if isinstance(text, str) else (text, as_json(text))
    given = payload.get("action" if payload.get("type") == "local_shell_call" else "arguments")
    if isinstance(given, str):
        return parsed(given), given
    return given, "" if given is None else as_json(given)


def _command_execution(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    words = item.get("command")
    command = words if isinstance(words, str) else shell_text(list_of(words))
    place = _inside(cwd, item.get("cwd"))
    given = {"command": command, "cwd": place}
    call = {
        "tool_name": "Bash",
        "command": command,
        "paths": tool_paths("Bash", given, place, root),
        "body": as_json(given),
    }
    if item.get("source") == "user_shell":
        call["role"] = "user"
    code = item.get("exit_code")
    told = [item.get(name) for name in ("aggregated_output", "formatted_output", "stdout")]
    output = next((text for text in told if isinstance(text, str)), "") or text_of(item.get("stderr"))
    failed = item.get("status") in ("failed", "declined") or code not in (None, 0)
    body = f"Exit code {code}\n{output}" if failed and isinstance(code, int) else output
    return call, {"body": body, "is_error": failed}


def _file_change(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    changes = object_of(item.get("changes"))
    named = [name for path, change in changes.items() for name in (path, object_of(change).get("move_path"))]
    patch = "".join(f"*** Update File: {name}\n" for name in named if isinstance(name, str) and "\n" not in name)
    paths = edits.edited_paths("apply_patch", {"input": patch}, cwd)
    call = {"tool_name": "apply_patch", "paths": paths_column(paths, root), "body": as_json({"changes": changes})}
    told = [text for name in ("stdout", "stderr") if (text := text_of(item.get(name)))]
    failed = item.get("status") not in (None, "completed") or item.get("success") is False
    return call, {"body": body_of(told), "is_error": failed}


def _mcp_call(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    name = clean_id(f"mcp__{text_of(item.get('server'))}__{text_of(item.get('tool'))}")
    result, error = object_of(item.get("result")), item.get("error")
    told = [body_of(result.get("content"))] if result.get("content") is not None else []
    if error:
        told.append(text_of(object_of(error).get("message")) or body_of(error))
    failed = item.get("status") == "failed" or result.get("isError") is True or bool(error)
    return {"tool_name": name, "body": as_json(item.get("arguments"))}, {"body": body_of(told), "is_error": failed}


def _dynamic_call(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    told = [body_of(item.get("content_items")), text_of(item.get("error"))]
    failed = item.get("status") == "failed" or item.get("success") is False
    call = {"tool_name": tool_name(item), "body": as_json(item.get("arguments"))}
    return call, {"body": body_of([text for text in told if text]), "is_error": failed}


def _agent_call(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    given = {name: item[name] for name in ("prompt", "model", "receiver_thread_ids") if item.get(name)}
    call = {"tool_name": clean_id(item.get("tool")), "body": as_json(given)}
    return call, {"body": as_json(item.get("agents_states")), "is_error": item.get("status") == "failed"}


def _search(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    given = {name: item[name] for name in ("query", "action") if item.get(name)}
    return {"tool_name": "web_search", "body": as_json(given)}, None


def _image_view(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    return {"tool_name": "view_image", "body": as_json({"path": item.get("path")})}, None


def _image_generation(item: dict[str, Any], cwd: str, root: str) -> tuple[Fields, Fields | None]:
    """The call, and the picture in the form that a transcript of Claude Code has for one."""
    given = {name: item[name] for name in ("revised_prompt", "status", "saved_path") if item.get(name)}
    call = {"tool_name": "image_generation", "body": as_json(given)}
    failed, picture = item.get("status") == "failed", text_of(item.get("result"))
    if not (failed or picture):
        return call, None
    source = {"type": "base64", "media_type": PICTURE_TYPE, "data": picture}
    return call, {"body": body_of([{"type": "image", "source": source}]) if picture else "", "is_error": failed}


def _inside(cwd: str, place: Any) -> str:
    """The folder of a call, which may be relative to the session's, or a file URL."""
    text = clean_name(place)
    if text.startswith("file://"):
        text = clean_name(unquote(text[len("file://") :]))
    return os.path.join(cwd, text) if text else cwd


_TOOLS = {
    "CommandExecution": _command_execution,
    "FileChange": _file_change,
    "McpToolCall": _mcp_call,
    "DynamicToolCall": _dynamic_call,
    "CollabAgentToolCall": _agent_call,
    "WebSearch": _search,
    "ImageView": _image_view,
    "ImageGeneration": _image_generation,
}
_RESULTS = ("CommandExecution", "FileChange", "McpToolCall")
"""Items that know more of a call's result than its output."""
