"""Codex's rollouts as rows: what the real client wrote, row by row, and what it may write."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ctrlb_agent.transcripts.codex_rollout import about_file
from ctrlb_agent.transcripts.rows import SessionFile
from tests.agent.recorded import DATA, Json, about, lines, recorded, rows_of, table

NAMES = [path.name for path in sorted((DATA / "codex").glob("*.jsonl"))]
TABLES = {
    "rollout-code-mode-failures.jsonl": r"""
13.0 user text | CODE go
14.0 assistant tool_use exec | const r = await tools.exec_c
16.0 assistant tool_use Bash $ echo hi; exit 5 | {"command":"echo hi; exit 5"
16.1 user tool_result Bash ! | Exit code 5⏎hi⏎
17.0 user tool_result exec ! | Script failed⏎Wall time 0.1
19.0 assistant tool_use exec | try { await tools.apply_patc
21.0 user tool_result exec | Script completed⏎Wall time 0
23.0 assistant tool_use exec | const r = await Promise.all(
25.0 assistant tool_use Bash $ echo p1 | {"command":"echo p1","cwd":"
25.1 user tool_result Bash | p1⏎
26.0 assistant tool_use Bash $ echo p2 | {"command":"echo p2","cwd":"
26.1 user tool_result Bash | p2⏎
27.0 user tool_result exec | Script completed⏎Wall time 0
29.0 assistant tool_use exec | const r = await tools.exec_c
31.0 user tool_result exec | Script completed⏎Wall time 0
33.0 assistant tool_use exec | const r = await tools.spawn_
35.0 user tool_result exec ! | Script failed⏎Wall time 0.0
37.0 assistant tool_use exec | throw new Error("boom")
39.0 user tool_result exec ! | Script failed⏎Wall time 0.0
41.0 assistant tool_use exec | text(Object.keys(tools).join
43.0 user tool_result exec | Script completed⏎Wall time 0
45.0 assistant text | Code done.
49.0 result | {"root_turn_id":"01a22cac-a8
50.0 assistant tool_use Bash $ echo w1; sleep 2; echo w2 | {"command":"echo w1; sleep 2
50.1 user tool_result Bash ! | Exit code -1⏎w1⏎
""",
    "rollout-code-mode.jsonl": r"""
14.0 user text | go
16.0 assistant text | Code mode.
18.0 assistant tool_use exec | const r = await tools.apply_
20.0 assistant tool_use apply_patch ["notes.txt"] | {"changes":{"/work/app/notes
20.1 user tool_result apply_patch | Success. Updated the followi
22.0 user tool_result exec | Script completed⏎Wall time 1
24.0 assistant tool_use exec | const r = await tools.apply_
27.0 assistant tool_use apply_patch ["shared.txt"] | {"changes":{"/work/app/share
27.1 user tool_result apply_patch | Success. Updated the followi
28.0 user tool_result exec | Script completed⏎Wall time 2
30.0 assistant tool_use exec | const r = await tools.apply_
32.0 user tool_result exec ! | Script failed⏎Wall time 0.7
34.0 assistant tool_use exec | const r = await tools.exec_c
36.0 assistant tool_use Bash $ echo hi | {"command":"echo hi","cwd":"
36.1 user tool_result Bash | hi⏎
37.0 user tool_result exec | Script completed⏎Wall time 2
39.0 assistant tool_use exec | const r = await tools.mcp__c
41.0 assistant tool_use mcp__ctrlb__whoami | {}
41.1 user tool_result mcp__ctrlb__whoami | {⏎  "run": "run-123",⏎  "age
42.0 user tool_result exec | Script completed⏎Wall time 1
44.0 assistant text | Done.
48.0 result | {"root_turn_id":"01a22b9d-1f
""",
    "rollout-compacted.jsonl": r"""
10.0 user text | go
12.0 assistant tool_use Bash $ echo hi | {"cmd": "echo hi"}
14.0 user tool_result Bash | hi⏎
21.0 user text SUMMARY | Another language model start
28.0 assistant tool_use Bash $ echo hi | {"cmd": "echo hi"}
30.0 user tool_result Bash | hi⏎
37.0 user text SUMMARY | Another language model start
44.0 assistant tool_use Bash $ echo hi | {"cmd": "echo hi"}
""",
    "rollout-failed-calls.jsonl": r"""
9.0 user text | BADPATCH go
10.0 assistant tool_use apply_patch ["nosuch.py"] | *** Begin Patch⏎*** Update F
12.0 user tool_result apply_patch ! | apply_patch verification fai
14.0 assistant tool_use apply_patch | garbage
16.0 user tool_result apply_patch ! | apply_patch verification fai
18.0 assistant tool_use Bash | {"nocmd": 1}
20.0 user tool_result Bash ! | failed to parse function arg
22.0 assistant tool_use nosuchtool | {"a": 1}
24.0 user tool_result nosuchtool ! | unsupported call: nosuchtool
26.0 assistant tool_use update_plan | {"plan": [{"step": "one", "s
28.0 user tool_result update_plan ! | unsupported call: update_pla
30.0 assistant tool_use view_image | {"path": "/work/app/app.py"}
32.0 user tool_result view_image ! | unable to process image: inv
34.0 assistant tool_use Bash $ echo 1 | {"cmd": "echo 1"}
35.0 assistant tool_use Bash $ echo 2 | {"cmd": "echo 2"}
37.0 user tool_result Bash | 1⏎
38.0 user tool_result Bash | 2⏎
42.0 assistant tool_use apply_patch ["app.py","moved.py","q.txt"] | *** Begin Patch⏎*** Update F
44.0 user tool_result apply_patch | Success. Updated the followi
47.0 assistant text | Bad done.
51.0 result | {"root_turn_id":"01a22cac-a3
""",
    "rollout-fork.jsonl": r"""
8.0 user text | SCRIPT:hello three
10.0 assistant text | Hello back.
14.0 result | {"root_turn_id":"01a22b8f-d5
""",
    "rollout-left-running.jsonl": r"""
9.0 user text | BG go
10.0 assistant tool_use Bash $ echo bgbegin; sleep 1; echo bgend | {"cmd": "echo bgbegin; sleep
12.0 user tool_result Bash | Chunk ID: fe1eae⏎Wall time:
14.0 assistant text | Bg done.
18.0 result | {"root_turn_id":"01a22cac-a5
19.0 user tool_result Bash ! | Exit code -1⏎bgbegin⏎
""",
    "rollout-long-command.jsonl": r"""
9.0 user text | LONG go
10.0 assistant tool_use Bash $ echo begin; sleep 2; echo end; exit 4 | {"cmd": "echo begin; sleep 2
12.0 user tool_result Bash | Chunk ID: fd9a47⏎Wall time:
14.0 assistant tool_use write_stdin | {"session_id": 31630, "chars
16.0 user tool_result Bash ! | Exit code 4⏎begin⏎end⏎
17.0 user tool_result write_stdin ! | Chunk ID: 1a8a75⏎Wall time:
19.0 assistant text | Long done.
23.0 result | {"root_turn_id":"01a22cac-9a
""",
    "rollout-parent-of-subagent.jsonl": r"""
10.0 user text | SCRIPT:agent go
12.0 assistant tool_use spawn_agent | {"message": "SCRIPT:sub do t
15.0 user tool_result spawn_agent | {"agent_id":"01a22b9c-eec8-7
18.0 assistant tool_use wait_agent | {"targets": ["01a22b9c-eec8-
21.0 user tool_result wait_agent | {"status":{"01a22b9c-eec8-70
24.0 assistant text | Parent done.
28.0 result | {"root_turn_id":"01a22b9c-e2
""",
    "rollout-subagent.jsonl": r"""
10.0 user text | SCRIPT:sub do the sub task
12.0 assistant tool_use Bash $ echo from-sub | {"cmd": "echo from-sub"}
14.0 user tool_result Bash | from-sub⏎
17.0 assistant text | Sub task finished.
21.0 result | {"root_turn_id":"01a22b9c-e2
""",
    "rollout.jsonl": r"""
10.0 user text | Please do the scripted work
12.0 assistant thinking | First I look around.
14.0 assistant text | I will run a command.
16.0 assistant tool_use Bash $ echo hello-from-shell | {"cmd": "echo hello-from-she
18.0 user tool_result Bash | hello-from-shell⏎
21.0 assistant tool_use apply_patch ["notes.txt"] | *** Begin Patch⏎*** Add File
23.0 user tool_result apply_patch | Success. Updated the followi
27.0 assistant tool_use apply_patch ["shared.txt"] | *** Begin Patch⏎*** Add File
30.0 user tool_result apply_patch | Success. Updated the followi
33.0 assistant tool_use apply_patch ["claimed.txt"] | *** Begin Patch⏎*** Add File
35.0 user tool_result apply_patch ! | Command blocked by PreToolUs
37.0 assistant tool_use apply_patch ["exit2.txt"] | *** Begin Patch⏎*** Add File
39.0 user tool_result apply_patch ! | Command blocked by PreToolUs
41.0 assistant tool_use apply_patch ["allowed.txt"] | *** Begin Patch⏎*** Add File
43.0 user tool_result apply_patch | Success. Updated the followi
46.0 assistant tool_use apply_patch ["app.py"] | *** Begin Patch⏎*** Update F
48.0 user tool_result apply_patch | Success. Updated the followi
51.0 assistant tool_use Bash $ echo three > claimed.txt | {"cmd": "echo three > claime
53.0 user tool_result Bash ! | Command blocked by PreToolUs
55.0 assistant tool_use Bash $ apply_patch <<'EOF'⏎*** Begin Patch⏎***  ["viashell.txt"] | {"cmd": "apply_patch <<'EOF'
57.0 user tool_result Bash | Success. Updated the followi
60.0 assistant tool_use Bash $ exit 3 | {"cmd": "exit 3"}
62.0 user tool_result Bash ! | Exit code 3⏎
65.0 assistant tool_use mcp__ctrlb__whoami | {}
67.0 user tool_result mcp__ctrlb__whoami | {⏎  "run": "run-123",⏎  "age
70.0 assistant tool_use mcp__ctrlb__toolerror | {}
72.0 user tool_result mcp__ctrlb__toolerror ! | Error executing tool toolerr
75.0 assistant text | All done.
79.0 result | {"root_turn_id":"01a22b9c-6a
""",
}


def raw(name: str, kinds: tuple[str, ...]) -> list[Json]:
    """The payloads of a recorded rollout that are of these kinds, found without the parser."""
    payloads = [line["payload"] for line in lines("codex", name)]
    items = [payload["item"] for payload in payloads if payload.get("type") == "item_completed"]
    return [payload for payload in payloads + items if payload.get("type") in kinds]


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_rollout_is_these_rows(name: str) -> None:
    assert table(recorded("codex", name), 28) == TABLES[name].lstrip("\n")


@pytest.mark.parametrize("name", NAMES)
def test_each_tool_call_is_one_row_and_has_one_result(name: str) -> None:
    rows = recorded("codex", name)
    called = Counter(row["tool_use_id"] for row in rows if row["block_type"] == "tool_use")
    answered = Counter(row["tool_use_id"] for row in rows if row["block_type"] == "tool_result")
    made = raw(name, ("function_call", "custom_tool_call"))
    done = raw(name, ("CommandExecution", "FileChange", "McpToolCall", "CollabAgentToolCall"))
    outputs = raw(name, ("function_call_output", "custom_tool_call_output"))
    assert set(called) == {call["call_id"] for call in made} | {one["id"] for one in done}
    assert set(answered) == {output["call_id"] for output in outputs} | {one["id"] for one in done}
    left_running = {"rollout-long-command.jsonl": ["call_2"], "rollout-left-running.jsonl": ["call_27"]}.get(name, [])
    assert set(called.values()) <= {1}
    assert [call_id for call_id, count in answered.items() if count > 1] == left_running


@pytest.mark.parametrize("name", NAMES)
def test_what_was_said_is_said_once(name: str) -> None:
    bodies = Counter(row["body"] for row in recorded("codex", name) if row["block_type"] in ("text", "thinking"))
    said = raw(name, ("UserMessage", "AgentMessage", "Reasoning"))
    texts = [part["text"] for one in said for part in one.get("content", [])]
    texts += [text for one in said for text in one.get("summary_text", [])]
    summaries = [line["payload"]["message"] for line in lines("codex", name) if line["type"] == "compacted"]
    assert bodies == Counter(texts + summaries)


@pytest.mark.parametrize("name", NAMES)
def test_tokens_add_up_to_the_totals_of_the_thread(name: str) -> None:
    memory: Json = {}
    rows = rows_of("codex", lines("codex", name), memory=memory)
    records = [line["payload"] for line in lines("codex", name) if line["type"] == "token_usage_record"]
    before = {
        field: records[0]["thread_token_usage"][field] - records[0]["usage"][field] for field in records[0]["usage"]
    }
    for column, field in (("input_tokens", "input_tokens"), ("cache_read_tokens", "cached_input_tokens")):
        waits_for_its_row = memory.get("usage", {}).get(column, 0.0)
        spent = sum(row[column] for row in rows) + waits_for_its_row
        assert spent + before[field] == records[-1]["thread_token_usage"][field]
    assert ("usage" in memory) == (name == "rollout-compacted.jsonl")


def test_each_response_is_counted_on_a_row_of_its_own() -> None:
    rows = recorded("codex", "rollout.jsonl")
    counted = [row for row in rows if row["input_tokens"]]
    records = [line["payload"] for line in lines("codex", "rollout.jsonl") if line["type"] == "token_usage_record"]
    assert [row["message_id"] for row in counted] == [record["response_id"] for record in records]
    assert {row["output_tokens"] for row in counted} == {42.0}


def test_a_row_says_whose_it_is_when_it_was_and_where() -> None:
    row = recorded("codex", "rollout.jsonl")[3]
    assert (row["seq"], row["_timestamp"]) == (16, 1_796_028_003_993_000)
    assert (row["host"], row["harness"], row["run_id"], row["agent"]) == ("build-01", "codex", "run-1", "agent-1")
    assert (row["session_id"], row["cwd"], row["git_branch"], row["model"]) == ("s-1", "/work/app", "main", "gpt-5.5")


@pytest.mark.parametrize(
    ("name", "session", "parent", "agent_id"),
    [
        ("rollout.jsonl", "01a22b9c-6997-7f93-b736-d15769b1fb1a", "", ""),
        (
            "rollout-subagent.jsonl",
            "01a22b9c-eec8-7042-9941-effc24704f08",
            "01a22b9c-e236-7743-8be2-fc1f73327915",
            "01a22b9c-eec8-7042-9941-effc24704f08",
        ),
        ("rollout-fork.jsonl", "01a22b8f-d40b-7c80-be83-04b478770f36", "01a22b8f-b7c4-7c11-b2ca-880bd3ac82b1", ""),
    ],
)
def test_a_rollout_names_its_session_and_where_it_came_from(
    name: str, session: str, parent: str, agent_id: str
) -> None:
    whose = SessionFile(session, parent, agent_id)
    assert about_file(str(DATA / "codex" / name)) == whose
    for known in (about(*whose), about("")):
        rows = rows_of("codex", lines("codex", name), known)
        assert {(row["session_id"], row["parent_session"], row["agent_id"]) for row in rows} == {whose}


def test_a_rollout_whose_first_line_is_broken_is_known_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-11-30T08-40-00-01a22b9c-6997-7f93-b736-d15769b1fb1a.jsonl"
    known = SessionFile("01a22b9c-6997-7f93-b736-d15769b1fb1a", "", "")
    assert about_file(str(path)) == known
    path.write_bytes(b'{"type": "session_meta", "payload": \xff')
    assert about_file(str(path)) == known


def test_what_codex_puts_into_the_context_becomes_no_row() -> None:
    bodies = "\n".join(row["body"] for row in recorded("codex", "rollout-parent-of-subagent.jsonl"))
    for context in ("<environment_context>", "<permissions", "CTRLB-NOTE", "<subagent_notification>"):
        assert context in json.dumps(lines("codex", "rollout-parent-of-subagent.jsonl"))
        assert context not in bodies
