"""Codex's rollouts as rows: what is in none of the recorded ones, and what versions before them wrote."""

import json

import pytest

from tests.agent.recorded import Json, rows_of, table

PAGINATED = {"type": "session_meta", "payload": {"id": "t-1", "cwd": "/work/app", "history_mode": "paginated"}}
PICTURE = {"type": "input_image", "image_url": "data:"}


def response(type: str, **fields: object) -> Json:
    return {"type": "response_item", "payload": {"type": type, **fields}}


def event(type: str, **fields: object) -> Json:
    return {"type": "event_msg", "payload": {"type": type, **fields}}


def item(type: str, **fields: object) -> Json:
    return event("item_completed", item={"type": type, "id": "c-1", **fields})


def test_a_call_in_another_folder_edits_the_files_there() -> None:
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n+1\n*** End Patch\nEOF"
    arguments = json.dumps({"command": ["bash", "-lc", patch], "workdir": "src"})
    call = response("function_call", call_id="c-1", name="shell", arguments=arguments)
    (row,) = rows_of("codex", [PAGINATED, call])
    assert (row["tool_name"], row["command"], row["paths"]) == ("Bash", patch, '["src/a.py"]')


def test_a_patch_from_a_script_names_what_it_moved_and_what_failed() -> None:
    changes = {"/work/app/a.py": {"type": "update", "move_path": "/work/app/b.py"}, "/elsewhere/c.py": {"type": "add"}}
    rows = rows_of("codex", [PAGINATED, item("FileChange", changes=changes, status="failed", stderr="disk full")])
    assert table(rows, 9) == (
        '2.0 assistant tool_use apply_patch ["a.py","b.py","/elsewhere/c.py"] | {"changes\n'
        "2.1 user tool_result apply_patch ! | disk full\n"
    )


def test_a_command_that_the_user_typed_is_the_users() -> None:
    done = item("CommandExecution", source="user_shell", command=["bash", "-lc", "ls"], stdout="a\n", exit_code=0)
    assert table(rows_of("codex", [PAGINATED, done])) == (
        '2.0 user tool_use Bash $ ls | {"command":"ls","cwd":"/work/app"}\n2.1 user tool_result Bash | a⏎\n'
    )


@pytest.mark.parametrize(
    "done", [item("ImageGeneration", result="iVBOR"), response("image_generation_call", id="c-1", result="iVBOR")]
)
def test_a_picture_that_was_made_is_uploaded_as_claudes_are(done: Json) -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR"}}
    result = {"type": "tool_result", "tool_use_id": "c-1", "content": [block]}
    (claudes,) = rows_of("claude", [{"type": "user", "message": {"role": "user", "content": [result]}}])
    (call, picture) = rows_of("codex", [done])
    assert (call["tool_name"], call["tool_use_id"]) == ("image_generation", "c-1")
    assert (picture["body"], picture["tool_use_id"], picture["is_error"]) == (claudes["body"], "c-1", False)


def test_a_picture_that_an_item_tells_is_not_told_by_the_models_stream_too() -> None:
    made = [response("image_generation_call", id="c-1", result="iVBOR"), item("ImageGeneration", result="iVBOR")]
    assert [row["block_type"] for row in rows_of("codex", [PAGINATED, *made])] == ["tool_use", "tool_result"]


def test_a_folder_is_a_path_or_a_url() -> None:
    places = ["file:///work/app/a%20b", "/work/app/c", "d"]
    done = [item("CommandExecution", command=["ls", "a b"], cwd=place) for place in places]
    calls = [row for row in rows_of("codex", [PAGINATED, *done]) if row["block_type"] == "tool_use"]
    assert [json.loads(row["body"])["cwd"] for row in calls] == ["/work/app/a b", "/work/app/c", "/work/app/d"]
    assert {row["command"] for row in calls} == {"ls 'a b'"}


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (
            item("McpToolCall", server="ctrlb", tool="peers", arguments={"limit": 4}, error={"message": "refused"}),
            [
                '1.0 assistant tool_use mcp__ctrlb__peers | {"limit":4}',
                "1.1 user tool_result mcp__ctrlb__peers ! | refused",
            ],
        ),
        (
            item("DynamicToolCall", tool="look", arguments={}, content_items=[{"type": "inputText", "text": "seen"}]),
            ["1.0 assistant tool_use look | {}", "1.1 user tool_result look | seen"],
        ),
        (
            item("CollabAgentToolCall", tool="wait", prompt="Hurry.", agents_states={"t-2": "running"}),
            ['1.0 assistant tool_use wait | {"prompt":"Hurry."}', '1.1 user tool_result wait | {"t-2":"running"}'],
        ),
        (item("WebSearch", query="leases"), ['1.0 assistant tool_use web_search | {"query":"leases"}']),
        (item("ImageView", path="/a.png"), ['1.0 assistant tool_use view_image | {"path":"/a.png"}']),
        (
            item("ImageGeneration", revised_prompt="A boat", status="in_progress"),
            ['1.0 assistant tool_use image_generation | {"revised_prompt":"A boat","status":"in_'],
        ),
        (
            item("ImageGeneration", revised_prompt="A boat", status="failed", result=""),
            [
                '1.0 assistant tool_use image_generation | {"revised_prompt":"A boat","status":"fai',
                "1.1 user tool_result image_generation ! |",
            ],
        ),
        (item("Plan", text="First."), ["1.0 assistant text | First."]),
        (item("HookPrompt", fragments=[{"text": "Go on.", "hookRunId": "h"}]), ["1.0 user text | Go on."]),
        (item("Reasoning", summary_text=[], raw_content=["Hm."]), ["1.0 assistant thinking | Hm."]),
        (
            item("UserMessage", content=[{"type": "text", "text": "See."}, {"type": "local_image", "path": "/a.png"}]),
            ["1.0 user text | See.", '1.1 user text | {"type":"local_image","path":"/a.png"}'],
        ),
        (item("ContextCompaction"), []),
        (item("FromTheFuture", text="?"), []),
        (event("turn_aborted", reason="interrupted"), ['1.0 result ! | {"reason":"interrupted"}']),
        (
            response("agent_message", author="/root", content=[{"text": "Look."}, {"encrypted_content": "x"}]),
            ["1.0 user text | Look."],
        ),
        (
            response("local_shell_call", call_id="c-1", action={"type": "exec", "command": ["bash", "-lc", "ls"]}),
            ['1.0 assistant tool_use Bash $ ls | {"type":"exec","command":["bash","-lc","'],
        ),
        (
            response("tool_search_output", call_id="c-1", tools=[{"name": "peers"}]),
            ['1.0 user tool_result | {"name":"peers"}'],
        ),
    ],
)
def test_a_line_that_was_not_recorded_is_these_rows(done: Json, expected: list[str]) -> None:
    assert table(rows_of("codex", [done])).splitlines() == expected


@pytest.mark.parametrize(
    ("output", "is_error", "body"),
    [
        ('{"output": "a\\n", "metadata": {"exit_code": 2}}', True, "a\n"),
        ('{"output": "a\\n", "metadata": {"exit_code": 0}}', False, "a\n"),
        ("Exit code: 1\nWall time: 0 s\nOutput:\nno", True, "Exit code: 1\nWall time: 0 s\nOutput:\nno"),
        ("Wall time: 1 s\nOutput:\nExit code: 1", False, "Wall time: 1 s\nOutput:\nExit code: 1"),
        ({"content": "denied", "success": False}, True, "denied"),
        ([{"type": "input_text", "text": "a"}, PICTURE], False, 'a\n{"type":"input_image","image_url":"data:"}'),
    ],
)
def test_an_older_rollout_tells_by_the_output_how_a_call_ended(output: object, is_error: bool, body: str) -> None:
    call = response("function_call", call_id="c-1", name="shell", arguments='{"command": ["ls"]}')
    answer = response("function_call_output", call_id="c-1", output=output)
    rows = rows_of("codex", [call, answer])
    assert [(row["tool_name"], row["is_error"]) for row in rows] == [("Bash", False), ("Bash", is_error)]
    assert rows[1]["body"] == body


def test_an_older_rollout_says_things_and_counts_tokens_by_events() -> None:
    usage = {"input_tokens": 5, "cached_input_tokens": 1, "output_tokens": 2, "total_tokens": 7}
    count = event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    said = [
        event("user_message", message="Go.", images=["data:"]),
        event("user_message", message="<environment_context>", kind="environment_context"),
        event("agent_reasoning", text="Hm."),
        event("agent_message", message="Gone."),
        response("message", role="assistant", content=[{"type": "output_text", "text": "Gone."}]),
        count,
        count,
        event("task_complete", last_agent_message="Gone."),
    ]
    rows = rows_of("codex", said)
    assert table(rows).splitlines() == [
        "1.0 user text | Go.",
        '1.1 user text | {"type":"image","image_url":"data:"}',
        "3.0 assistant thinking | Hm.",
        "4.0 assistant text | Gone.",
        "8.0 result | {}",
    ]
    assert [row["input_tokens"] for row in rows] == [0.0, 0.0, 0.0, 0.0, 5.0]


def test_the_end_of_a_command_that_was_left_running_comes_after_many_others() -> None:
    running = "Chunk ID: 1\nWall time: 0.3 seconds\nProcess running with session ID 7\nOutput:\n"
    parts = [PAGINATED]
    for number in range(200):
        output = "Command blocked by PreToolUse hook: no" if number else running
        parts += [
            response("function_call", call_id=f"c-{number}", name="exec_command", arguments='{"cmd": "x"}'),
            response("function_call_output", call_id=f"c-{number}", output=output),
        ]
    done = item("CommandExecution", command=["bash", "-lc", "x"], exit_code=0, aggregated_output="end")
    done["payload"]["item"]["id"] = "c-0"
    memory: Json = {}
    rows = rows_of("codex", [*parts, done], memory=memory)
    assert table(rows[-1:]) == "402.0 user tool_result Bash | end\n"
    assert sum(row["is_error"] for row in rows) == 199
    assert memory["calls"] == {}
