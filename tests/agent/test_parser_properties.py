"""What holds for every transcript, whatever its lines are: both parsers, the server's own model, and a real server."""

import copy
import json
import random
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb.models.sessions import Record
from ctrlb_agent.transcripts import rows
from ctrlb_agent.transcripts.rows import About
from tests.agent.recorded import FILES, PARSERS, Json, about, lines, recorded, rows_of
from tests.laptop import Laptop

CLIENTS = sorted(PARSERS)
MAX_MEMORY_CHARS = 100_000
MANY = settings(max_examples=100, deadline=None)

RECORDED = {
    client: [line for own, name in FILES if own == client for line in lines(client, name)] for client in CLIENTS
}
WORDS = sorted({word for found in RECORDED.values() for line in found for word in [*line, *line.get("payload", {})]})


def source_of(name: str) -> str:
    """The source of a client's parser."""
    return "".join(path.read_text() for path in Path(rows.__file__).parent.glob(f"{name}_*.py"))


odd_texts = st.sampled_from(
    ["", "\0", "\ud800", "\udc80x", "a/b\\c", "é" * 5_000, "x" * 10_000, "\u202e", "2026-11-30"]
)
texts = st.text(st.characters(codec=None), max_size=20) | odd_texts | st.sampled_from(WORDS)  # halves of pairs, too
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(10**400) | st.just("user")
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)
KINDS_OF_LINES = ["response_item", "event_msg", "session_meta", "turn_context", "token_usage_record", "compacted"]
KINDS_OF_BLOCKS = ["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image"]
KINDS_OF_PAYLOADS = [
    *("function_call", "function_call_output", "custom_tool_call", "local_shell_call", "tool_search_output"),
    *("item_completed", "task_complete", "token_count", "user_message", "agent_message", "agent_reasoning"),
]
KINDS_OF_ITEMS = [
    *("UserMessage", "Reasoning", "Plan", "HookPrompt", "CommandExecution", "FileChange", "McpToolCall"),
    *("DynamicToolCall", "CollabAgentToolCall", "WebSearch", "ImageView", "ImageGeneration"),
]
FIELDS = sorted(
    {field for name in ("claude", "codex") for field in re.findall(r'get\("(\w+)"', source_of(name))}
    - {"type", "payload"}
)


def shaped(kinds: list[str]) -> st.SearchStrategy[Json]:
    """An object of one of the kinds, in whose fields there may be anything."""
    fields = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6)
    return st.builds(lambda kind, given: {**given, "type": kind}, st.sampled_from(kinds), fields)


SHAPED = {
    "claude": st.builds(
        lambda kind, blocks, fields: {**fields, "type": kind, "message": {**fields, "content": blocks}},
        st.sampled_from(["user", "assistant", "cost-state"]),
        st.lists(shaped(KINDS_OF_BLOCKS), max_size=3),
        st.dictionaries(st.sampled_from(FIELDS), values, max_size=3),
    ),
    "codex": st.builds(
        lambda kind, payload, item: {"type": kind, "payload": {**payload, "item": item}},
        st.sampled_from(KINDS_OF_LINES),
        shaped(KINDS_OF_PAYLOADS),
        shaped(KINDS_OF_ITEMS),
    ),
}


@st.composite
def mutated(draw: st.DrawFn, client: str) -> Any:
    """A recorded line in which some values, wherever they are, are others."""
    line: Any = copy.deepcopy(draw(st.sampled_from(RECORDED[client])))
    for _ in range(draw(st.integers(1, 4))):
        place = line
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 3)) == 0:
                place[key] = draw(values)
                break
            place = place[key]
    return line


def check(rows: list[Json]) -> None:
    """That the server takes the rows, and that each of their columns has always the same kind."""
    for row in rows:
        sent = json.dumps(row, allow_nan=False, ensure_ascii=False).encode()
        Record.model_validate_json(sent)
        assert {name: type(value) for name, value in row.items() if name != "_timestamp"} == KINDS
        assert row["paths"] == "" or isinstance(json.loads(row["paths"]), list)
    places = [(row["seq"], row["block_idx"]) for row in rows]
    assert len(set(places)) == len(places)


KINDS = {name: type(value) for name, value in recorded("claude", "transcript.jsonl")[0].items() if name != "_timestamp"}


ODD: list[Any] = [
    *(None, True, -1, 1.5, float("nan"), float("inf"), 10**400),
    *("text", "\ud800/\0", "2026-02-30T00:00:00Z", [], ["x", 1, None, {}, []], {}, {"a": {"b": 1}}),
]
"""Values that are of the wrong kind wherever they stand."""


def places_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to every value inside of this one."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (key,)
        yield from ((key, *rest) for rest in places_in(inner))


def replaced(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    """The value, of which what is at the place is another."""
    if not place:
        return other
    outer = dict(value) if isinstance(value, dict) else list(value)
    outer[place[0]] = replaced(outer[place[0]], place[1:], other)
    return outer


def one_of_each_kind(client: str) -> list[Json]:
    """Of the recorded lines that become rows or facts, one of each shape."""
    read = ("user", "assistant", "cost-state", "session_meta", "turn_context", "token_usage_record", "event_msg")
    found = {}
    for line in RECORDED[client]:
        if line["type"] in (*read, "response_item"):
            inner: Json = line.get("payload") or line.get("message") or {}
            parts = [inner, inner.get("item"), *(inner.get("content") or [])]
            found[line["type"], *[str(part.get("type")) for part in parts if isinstance(part, dict)]] = line
    return list(found.values())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_line_with_any_one_value_of_the_wrong_kind_is_read_as_far_as_it_makes_sense(client: str) -> None:
    kinds = one_of_each_kind(client)
    assert len(kinds) >= 7
    for line in kinds:
        before = json.dumps(line)
        for place in places_in(line):
            for other in ODD:
                check(rows_of(client, [replaced(line, place, other)]))
        assert json.dumps(line) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_a_line_whose_every_value_is_of_the_wrong_kind_is_read_without_an_error(client: str) -> None:
    for other in ODD:
        fields = dict.fromkeys(FIELDS, other)
        for kind in ("user", "assistant", "cost-state"):
            blocks = [{**fields, "type": block} for block in KINDS_OF_BLOCKS]
            check(rows_of(client, [{**fields, "type": kind, "message": {**fields, "content": blocks}}]))
        payloads = [{**fields, "type": payload} for payload in KINDS_OF_PAYLOADS]
        payloads += [{**fields, "type": "item_completed", "item": {**fields, "type": item}} for item in KINDS_OF_ITEMS]
        for kind in KINDS_OF_LINES:
            check(rows_of(client, [{"type": kind, "payload": payload} for payload in payloads]))


@pytest.mark.parametrize("client", CLIENTS)
@MANY
@given(data=st.data())
def test_a_line_of_any_json_never_raises_and_never_makes_a_row_that_is_refused(
    client: str, data: st.DataObject
) -> None:
    check(rows_of(client, data.draw(st.lists(values | SHAPED[client], max_size=5))))


@pytest.mark.parametrize("client", CLIENTS)
@MANY
@given(data=st.data())
def test_a_recorded_line_with_other_values_makes_rows_that_the_server_takes(client: str, data: st.DataObject) -> None:
    parts = data.draw(st.lists(mutated(client), min_size=1, max_size=6))
    whose = data.draw(st.builds(About, *[texts] * 7) | st.just(about()))
    memory: Json = {}
    check(rows_of(client, parts, whose._replace(session_id="s-1", root="/work/app"), memory))
    assert len(json.dumps(memory)) < MAX_MEMORY_CHARS


@pytest.mark.parametrize(("client", "name"), FILES)
def test_rows_are_the_same_however_the_file_grew(client: str, name: str) -> None:
    parts = lines(client, name)
    whole = rows_of(client, parts)
    for seed in range(20):
        cuts = sorted(random.Random(seed).sample(range(len(parts) + 1), 3))
        memory: Json = {}
        rows = []
        for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True):
            rows += rows_of(client, parts[start:end], memory=memory, first=start + 1)
            memory = json.loads(json.dumps(memory))
        assert rows == whole


@pytest.mark.parametrize(("client", "name"), FILES)
def test_every_recorded_row_is_taken_and_no_line_is_changed(client: str, name: str) -> None:
    parts = lines(client, name)
    before = copy.deepcopy(parts)
    check(rows_of(client, parts))
    assert parts == before


@pytest.mark.parametrize("client", CLIENTS)
def test_the_memory_does_not_grow_with_the_file(client: str) -> None:
    long = "é" * 3_000
    called = {"type": "tool_use", "name": long, "input": {}}
    spoken = {"type": "assistant", "cwd": long, "gitBranch": long}
    memory: Json = {}
    sizes = []
    for number in range(1, 1_001):
        message = {"id": f"{long}{number}", "content": [{**called, "id": f"{long}{number}"}]}
        made = {"type": "function_call", "name": long, "call_id": f"{long}{number}", "arguments": "{}"}
        parts = [{**spoken, "uuid": f"{long}{number}", "message": message}, {"type": "response_item", "payload": made}]
        rows_of(client, parts, memory=memory)
        sizes.append(len(json.dumps(memory)))
    assert sizes[-1] == pytest.approx(sizes[500], abs=1_000)
    assert sizes[-1] < MAX_MEMORY_CHARS * 2


@pytest.mark.parametrize("client", CLIENTS)
def test_two_long_ids_that_begin_alike_stay_two(client: str) -> None:
    long = "a/b" * 100
    for whose in (about(f"{long}1"), about(f"{long}1")):
        (one,) = {row["session_id"] for row in rows_of(client, RECORDED[client], whose)}
        (other,) = {row["session_id"] for row in rows_of(client, RECORDED[client], about(f"{long}2"))}
        assert one != other
        assert len(one) == 200


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """A server of its own: what is found there is from these sessions."""
    server = Laptop(tmp_path / "laptop")
    yield server
    server.stop()


def test_a_server_stores_both_clients_sessions_and_finds_what_they_did(laptop: Laptop) -> None:
    for client, name in FILES:
        parts = lines(client, name)
        rows = rows_of(client, parts, about(f"{client}-{name}")._replace(agent=client))
        assert ask(laptop, "records", rows) == {"accepted": len(rows)}

    found = ask(laptop, "commands?" + urllib.parse.urlencode({"command": "echo hello-from-"}))
    assert {(hit["session_id"], hit["tool_name"]) for hit in found["occurrences"]} == {
        ("claude-transcript.jsonl", "Bash"),
        ("claude-transcript-slash-command.jsonl", "Bash"),
        ("codex-rollout.jsonl", "Bash"),
    }
    after = ask(laptop, "codex-rollout-code-mode.jsonl/next?seq=34&k=1")
    assert [(one["kind"], one["tool_name"], one["seq"]) for one in after["events"]] == [
        ("result", "exec", 37),
        ("call", "Bash", 36),
        ("result", "Bash", 36),
    ]
    edited_by_both = ask(laptop, "runs/run-1", service="relay")["detectors"]
    assert {"path:app.py", "path:notes.txt", "path:shared.txt"} <= {found["key"] for found in edited_by_both}
    assert {tuple(found["agents"]) for found in edited_by_both} == {("claude", "codex")}


def ask(laptop: Laptop, path: str, rows: list[Json] | None = None, service: str = "sessions") -> Any:
    request = urllib.request.Request(
        f"{laptop.url}/ai/{service}/agent_sessions/{path}",
        data=None if rows is None else json.dumps(rows).encode(),
        headers={"Authorization": f"Bearer {laptop.key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
