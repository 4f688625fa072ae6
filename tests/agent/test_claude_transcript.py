"""Claude Code's transcripts as rows: what the real client wrote, row by row, and what it may write."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ctrlb_agent.transcripts import claude_transcript
from ctrlb_agent.transcripts.rows import SessionFile
from tests.agent.recorded import DATA, Json, about, lines, recorded, rows_of, table

TABLES = {
    "transcript-compacted-and-resumed.jsonl": r"""
5.0 user text | SCRIPT:main go
25.0 assistant tool_use Write ["shared.txt"] | {"file_path":"/work/app/shar
30.0 user tool_result Write | File created successfully at
37.0 assistant tool_use Write ["claimed.txt"] | {"file_path":"/work/app/clai
38.0 user tool_result Write ! | PreToolUse:Write hook error:
43.0 assistant tool_use mcp__plugin_ctrlb-agent_ctrlb__whoami | {}
44.0 user tool_result mcp__plugin_ctrlb-agent_ctrlb__whoami | {"run":"${CTRLB_RUN}","agent
48.0 assistant text | Done.
51.0 result | {"totalCostUSD":0.00549,"tot
58.0 user text SUMMARY | This session is being contin
59.0 user text | <local-command-caveat>The co
60.0 user text | <command-name>/compact</comm
61.0 user text | <local-command-stdout>Compac
72.0 result | {"totalCostUSD":0.0082350000
75.0 user text | SCRIPT:hello again
94.0 assistant tool_use Write ["claimed.txt"] | {"file_path":"/work/app/clai
95.0 user tool_result Write ! | PreToolUse:Write hook error:
103.0 assistant tool_use mcp__plugin_ctrlb-agent_ctrlb__whoami | {}
104.0 user tool_result mcp__plugin_ctrlb-agent_ctrlb__whoami | {"run":"${CTRLB_RUN}","agent
108.0 assistant text | Done.
111.0 result | {"totalCostUSD":0.0123525000
""",
    "transcript-slash-command.jsonl": r"""
5.0 user text | <command-message>ctrlb-agent
6.0 user text | Relay run run-9 extra words
26.0 assistant thinking | First I look around.
27.0 assistant text | I will start with a shell co
28.0 assistant tool_use Bash $ echo hello-from-bash | {"command":"echo hello-from-
""",
    "transcript-subagent.jsonl": r"""
1.0 user text | SCRIPT:sub do the sub task
16.0 assistant thinking | I am the subagent.
17.0 assistant tool_use Bash $ echo from-sub | {"command":"echo from-sub","
18.0 user tool_result Bash | from-sub
24.0 assistant text | Sub task finished.
""",
    "transcript.jsonl": r"""
5.0 user text | Please do the scripted work
27.0 assistant thinking | First I look around.
28.0 assistant text | I will start with a shell co
29.0 assistant tool_use Bash $ echo hello-from-bash | {"command":"echo hello-from-
30.0 user tool_result Bash | hello-from-bash
36.0 assistant tool_use Write ["notes.txt"] | {"file_path":"/work/app/note
37.0 user tool_result Write | File created successfully at
42.0 assistant tool_use Write ["shared.txt"] | {"file_path":"/work/app/shar
45.0 user tool_result Write | File created successfully at
48.0 assistant text | Now the claimed file.
49.0 assistant tool_use Write ["claimed.txt"] | {"file_path":"/work/app/clai
50.0 user tool_result Write ! | PreToolUse:Write hook error:
52.0 assistant tool_use Write ["exit2.txt"] | {"file_path":"/work/app/exit
53.0 user tool_result Write ! | PreToolUse:Write hook error:
55.0 assistant tool_use Write ["allowed.txt"] | {"file_path":"/work/app/allo
58.0 user tool_result Write | File created successfully at
62.0 assistant tool_use Read | {"file_path":"/work/app/app.
63.0 user tool_result Read | 1	x = 1⏎2	print(x)⏎3
66.0 assistant tool_use Edit ["app.py"] | {"replace_all":false,"file_p
67.0 user tool_result Edit | The file /work/app/app.py ha
72.0 assistant tool_use ToolSearch | {"query":"select:mcp__plugin
73.0 user tool_result ToolSearch | {"type":"tool_reference","to
81.0 assistant tool_use mcp__plugin_ctrlb-agent_ctrlb__whoami | {}
84.0 user tool_result mcp__plugin_ctrlb-agent_ctrlb__whoami | {"run":"run-123","agent":"ag
87.0 assistant tool_use mcp__plugin_ctrlb-agent_ctrlb__toolerror | {}
88.0 user tool_result mcp__plugin_ctrlb-agent_ctrlb__toolerror ! | Error executing tool toolerr
90.0 assistant tool_use Bash $ exit 3 | {"command":"exit 3","descrip
91.0 user tool_result Bash ! | Exit code 3
93.0 assistant text | Two calls at once.
94.0 assistant tool_use Bash $ echo par-1 | {"command":"echo par-1","des
95.0 assistant tool_use Read | {"file_path":"/work/app/note
96.0 user tool_result Read | 1	one⏎2
99.0 user tool_result Bash | par-1
103.0 assistant tool_use Agent | {"description":"Sub task","p
104.0 user tool_result Agent | [Subagent hand-back] The tex
106.0 assistant text | All done.
109.0 result | {"totalCostUSD":0.0140249999
""",
}


def user(*blocks: object, **fields: object) -> Json:
    return {"type": "user", "uuid": "u-1", "message": {"role": "user", "content": list(blocks)}, **fields}


def assistant(*blocks: object, message_id: str = "msg-1", **fields: object) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}
    message = {"role": "assistant", "id": message_id, "model": "m-1", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": message, **fields}


def call(name: str, **given: object) -> Json:
    return {"type": "tool_use", "id": "call-1", "name": name, "input": given}


def raw_blocks(name: str) -> list[Json]:
    """The content blocks of the messages of a recorded transcript, found without the parser."""
    contents = [line["message"]["content"] for line in lines("claude", name) if line["type"] in ("user", "assistant")]
    return [block for content in contents if isinstance(content, list) for block in content]


@pytest.mark.parametrize("name", TABLES)
def test_a_recorded_transcript_is_these_rows(name: str) -> None:
    assert table(recorded("claude", name), 28) == TABLES[name].lstrip("\n")


@pytest.mark.parametrize("name", [path.name for path in sorted((DATA / "claude").glob("*.jsonl"))])
def test_each_tool_call_and_each_result_is_one_row(name: str) -> None:
    rows, blocks = recorded("claude", name), raw_blocks(name)
    called = Counter(row["tool_use_id"] for row in rows if row["block_type"] == "tool_use")
    answered = Counter(row["tool_use_id"] for row in rows if row["block_type"] == "tool_result")
    assert called == Counter(block["id"] for block in blocks if block["type"] == "tool_use")
    assert answered == Counter(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
    assert called.keys() >= answered.keys()
    assert max(called.values(), default=1) == 1


def test_tokens_add_up_to_what_the_client_says_that_it_used() -> None:
    rows = recorded("claude", "transcript.jsonl") + recorded("claude", "transcript-subagent.jsonl")
    (used,) = lines("claude", "transcript.jsonl")[-1]["modelUsage"].values()
    assert sum(row["input_tokens"] for row in rows) == used["inputTokens"]
    assert sum(row["output_tokens"] for row in rows) == used["outputTokens"]
    assert sum(row["cache_read_tokens"] for row in rows) == used["cacheReadInputTokens"]
    assert sum(row["cache_creation_tokens"] for row in rows) == used["cacheCreationInputTokens"]


@pytest.mark.parametrize("name", ["transcript.jsonl", "transcript-compacted-and-resumed.jsonl"])
def test_costs_add_up_to_the_last_total(name: str) -> None:
    rows = recorded("claude", name)
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(lines("claude", name)[-1]["totalCostUSD"])
    assert {row["block_type"] for row in rows if row["cost_usd"]} == {"result"}


def test_a_total_that_began_anew_counts_from_there() -> None:
    totals: list[object] = [0.5, 0.75, 0.25, "much", float("nan"), -1, True]
    rows = rows_of("claude", [{"type": "cost-state", "totalCostUSD": total} for total in totals])
    assert [row["cost_usd"] for row in rows] == [0.5, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]


def test_a_total_is_not_older_than_what_it_counts() -> None:
    rows = recorded("claude", "transcript-compacted-and-resumed.jsonl")
    for index, row in enumerate(rows):
        if row["block_type"] == "result":
            assert row["_timestamp"] == max(one["_timestamp"] for one in rows[: index + 1])


def test_a_row_says_whose_it_is_when_it_was_and_where() -> None:
    line = lines("claude", "transcript.jsonl")[28]
    (row,) = rows_of("claude", [line], first=29)
    assert row["_timestamp"] == 1_796_027_818_714_000
    assert (row["host"], row["harness"], row["run_id"], row["agent"]) == ("build-01", "claude", "run-1", "agent-1")
    assert (row["session_id"], row["cwd"], row["git_branch"]) == ("s-1", "/work/app", "main")
    assert (row["model"], row["message_id"]) == ("claude-sonnet-5-5", "msg_8d2dbd595f9f49be8b79cdb5")
    assert (row["seq"], row["block_idx"], row["uuid"]) == (29, 0, line["uuid"])


def test_a_subagent_file_names_its_session_by_its_folder() -> None:
    path = "/home/dev/.claude/projects/-work-app/s-9/subagents/agent-a45.jsonl"
    assert claude_transcript.about_file(path) == SessionFile("agent-a45", "s-9", "a45")
    assert claude_transcript.about_file("/p/s-9.jsonl") == SessionFile("s-9", "", "")


def test_a_subagent_file_beside_the_sessions_names_its_session_by_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "agent-a45.jsonl"
    path.write_text(json.dumps({"type": "user", "sessionId": "s-9", "isSidechain": True}) + "\n")
    assert claude_transcript.about_file(str(path)) == SessionFile("agent-a45", "s-9", "a45")


def test_rows_of_a_subagent_name_their_parent() -> None:
    whose = about("agent-a45", "s-9", "a45")
    rows = rows_of("claude", lines("claude", "transcript-subagent.jsonl"), whose)
    assert {(row["session_id"], row["parent_session"], row["agent_id"]) for row in rows} == {
        ("agent-a45", "s-9", "a45")
    }


def test_a_picture_or_a_document_is_kept_as_json() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}}
    document = {"type": "document", "source": {"type": "text", "data": "é"}}
    rows = rows_of("claude", [user(picture, {"type": "text", "text": "See."}, document)])
    assert [(row["block_idx"], row["block_type"]) for row in rows] == [(0, "text"), (1, "text"), (2, "text")]
    assert [json.loads(rows[index]["body"]) for index in (0, 2)] == [picture, document]


def test_a_result_of_several_parts_is_their_texts_and_pictures() -> None:
    picture = {"type": "image", "source": {"data": "iVBORw0="}}
    content = [
        {"type": "text", "text": "one"},
        picture,
        {"type": "text", "text": "two\n"},
        {"type": "text", "text": "3"},
    ]
    (row,) = rows_of("claude", [user({"type": "tool_result", "tool_use_id": "call-9", "content": content})])
    assert row["body"] == 'one\n{"type":"image","source":{"data":"iVBORw0="}}\ntwo\n3'
    assert (row["tool_name"], row["tool_use_id"], row["is_error"]) == ("", "call-9", False)


def test_a_tool_that_the_server_runs_has_a_call_and_a_result() -> None:
    failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    called = {"type": "server_tool_use", "id": "call-1", "name": "web_search", "input": {"query": "leases"}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "call-1", "content": failed}
    rows = rows_of("claude", [assistant(called, answer)])
    assert table(rows) == (
        '1.0 assistant tool_use web_search | {"query":"leases"}\n'
        '1.1 assistant tool_result web_search ! | {"type":"web_search_tool_result_error","\n'
    )


def test_thinking_that_is_hidden_says_only_that_it_was() -> None:
    rows = rows_of("claude", [assistant({"type": "redacted_thinking", "data": "EmwKAhgB"}, {"type": "thinking"})])
    assert table(rows) == '1.0 assistant thinking | [redacted thinking]\n1.1 assistant text | {"type":"thinking"}\n'


def test_usage_is_on_the_first_row_of_a_message_even_if_its_first_line_has_none() -> None:
    empty = {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}
    said = {"type": "text", "text": "Hello."}
    rows = rows_of("claude", [assistant(empty), assistant(said), assistant(said), assistant(said, message_id="msg-2")])
    assert [row["input_tokens"] for row in rows] == [10.0, 0.0, 10.0]
    assert (rows[0]["cache_read_tokens"], rows[0]["cache_creation_tokens"]) == (7.0, 2.0)


@pytest.mark.parametrize(
    ("name", "given", "paths"),
    [
        ("MultiEdit", {"file_path": "/work/app/src/a.py", "edits": []}, '["src/a.py"]'),
        ("NotebookEdit", {"notebook_path": "/work/app/n.ipynb"}, '["n.ipynb"]'),
        ("Write", {"file_path": "/elsewhere/b.py"}, '["/elsewhere/b.py"]'),
        ("Write", {"file_path": "b.py"}, '["src/b.py"]'),
        ("Read", {"file_path": "/work/app/a.py"}, ""),
        ("Write", {"file_path": ["/work/app/a.py"]}, ""),
        ("Write", "/work/app/a.py", ""),
    ],
)
def test_an_edit_names_its_file_as_agents_claim_it(name: str, given: object, paths: str) -> None:
    block = {"type": "tool_use", "id": "call-1", "name": name, "input": given}
    (row,) = rows_of("claude", [assistant(block, cwd="/work/app/src")])
    assert (row["paths"], row["command"]) == (paths, "")


def test_an_error_of_the_model_is_an_error() -> None:
    (row,) = rows_of("claude", [assistant({"type": "text", "text": "API Error: 529"}, isApiErrorMessage=True)])
    assert (row["is_error"], row["body"]) == (True, "API Error: 529")


def test_a_line_without_a_time_has_the_latest_before_it() -> None:
    times = (None, "2026-11-30T08:09:22.624Z", "yesterday", None, "2026-13-01T00:00:00Z", "1969-01-01T00:00:00Z")
    rows = rows_of("claude", [user(f"{number}", timestamp=time) for number, time in enumerate(times)])
    assert [row.get("_timestamp") for row in rows] == [None, *[1_796_026_162_624_000] * 5]


def test_a_line_that_is_repeated_at_once_is_one_row() -> None:
    line = user("once")
    assert len(rows_of("claude", [line, line])) == 1
    assert len(rows_of("claude", [line, user("twice")])) == 2


def test_a_message_that_is_a_text_is_one_row() -> None:
    said: list[Json] = [
        {"type": "user", "message": {"content": "as content"}},
        {"type": "user", "message": "as message"},
    ]
    assert [row["body"] for row in rows_of("claude", said)] == ["as content", "as message"]


def test_notes_of_the_client_and_kinds_from_the_future_become_no_rows() -> None:
    kinds = [
        "api-request-blob",
        "api-request-shape",
        "api-request",
        "attachment",
        "tools-used",
        "mode",
        "from-the-future",
    ]
    said = {"role": "user", "content": "a copy"}
    assert rows_of("claude", [{"type": kind, "message": said, "attachment": said} for kind in kinds]) == []


def test_a_result_whose_call_was_long_ago_has_no_tool_name() -> None:
    memory: Json = {}
    rows_of("claude", [assistant({**call("Bash"), "id": f"call-{number}"}) for number in range(500)], memory=memory)
    answers = [user({"type": "tool_result", "tool_use_id": f"call-{number}"}, uuid="") for number in (1, 499)]
    assert [row["tool_name"] for row in rows_of("claude", answers, memory=memory)] == ["", "Bash"]
    assert len(json.dumps(memory)) < 4_096
