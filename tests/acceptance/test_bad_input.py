"""Fields that no client should send: each is refused by its name, and nothing is written."""

import base64
import json
from typing import Any

import httpx2
import pytest

from tests.acceptance.calls import MAX_SEQ, RUNS, SESSIONS, claim, kinds, refusal, row

PATH = f"{SESSIONS}/records"
LONG = "x" * 201
NOT_IDS = {
    "empty": "",
    "slash": "a/b",
    "backslash": "a\\b",
    "nul": "a\x00b",
    "newline": "a\nb",
    "delete": "a\x7fb",
    "too long": LONG,
    "right to left": "a\u202eb",
}


def escaped(text: str) -> str:
    """The text as one segment of a path, everything escaped."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def wrong(field: str, *values: Any) -> list[Any]:
    return [pytest.param(field, value, id=f"{field}={json.dumps(value)[:40]}") for value in values]


@pytest.mark.promise("upload-column-types", "upload-block-types", "upload-paths-as-text", "error-400")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        *wrong("session_id", 5, True, ["s"], *NOT_IDS.values()),
        *wrong("seq", "1", 1.5, True, -1, MAX_SEQ + 1, 2**64, 10**400, [], "one"),
        *wrong("block_idx", "0", -1, 2**31, 2**64, 0.5),
        *wrong("_timestamp", "now", 0, -1, 5, 946_684_799_999_999, 4_102_444_800_000_000, 2**64, 1e300),
        *wrong("block_type", "", "tool", "TEXT", 3, ["text"]),
        *wrong("is_error", 0, 1, "false", "yes", []),
        *wrong("is_summary", 0, "true"),
        *wrong("cost_usd", "0.0", True, [], {}),
        *wrong("input_tokens", "12", False),
        *wrong("output_tokens", "12", [1]),
        *wrong("paths", ["src/app.py"], "src/app.py", "{}", "[1]", '["a"', "[" * 5_000, "null"),
        *wrong("body", 5, {"a": 1}, ["text"], False),
        *wrong("command", 5, ["make"]),
        *wrong("tool_name", 5, "a\x00b", "x" * 1_025),
        *wrong("tool_use_id", 5, "a\x00b", "x" * 1_025),
        *wrong("role", 5, "\x00", "x" * 1_025),
        *wrong("host", [], "\x00", "x" * 1_025),
        *wrong("harness", {}, "\x00", "x" * 1_025),
        *wrong("git_branch", 5, "\x00", "x" * 1_025),
        *wrong("cwd", 5, "/work\x00", "x" * 4_097),
        *wrong("run_id", 5, "a/b", "a\x00b", LONG),
        *wrong("agent", 5, "a/b", "a\x00b", LONG),
        *wrong("agent_id", 5, "a/b", "a\x00b", LONG),
        *wrong("parent_session", 5, "a/b", "a\x00b", LONG),
    ],
)
def test_a_wrong_column_refuses_the_whole_upload_and_is_named(
    http: httpx2.Client, session_id: str, column: str, value: object
) -> None:
    rows = [row(session_id, seq) for seq in range(3)]
    rows[2][column] = value
    assert refusal(http.post(PATH, content=json.dumps(rows)), 400).startswith(f"row 2: {column}")
    assert_no_session(http, session_id)


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("column", ["session_id", "body", "command", "tool_name", "paths", "a_column_of_our_own"])
def test_half_of_a_surrogate_pair_is_refused(http: httpx2.Client, session_id: str, column: str) -> None:
    rows = [row(session_id, 0), {**row(session_id, 1), column: "\ud83d"}]
    assert refusal(http.post(PATH, content=json.dumps(rows)), 400).startswith(f"row 1: {column}")
    assert_no_session(http, session_id)


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize("column", ["cost_usd", "seq", "_timestamp", "a_column_of_our_own"])
def test_what_is_no_number_in_json_is_refused(http: httpx2.Client, session_id: str, column: str, number: str) -> None:
    good, bad = json.dumps(row(session_id, 0)), {**row(session_id, 1), column: "HERE"}
    content = f"[{good}, {json.dumps(bad)}]".replace('"HERE"', number)
    assert refusal(http.post(PATH, content=content), 400).startswith(f"row 1: {column}: ")
    assert_no_session(http, session_id)


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("value", ["1e400", '"\\ud83d"', "NaN"])
def test_a_name_that_is_too_long_for_a_message_is_cut_in_it(http: httpx2.Client, value: str) -> None:
    content = f'[{{"session_id": "s", "seq": 1, "{"x" * 100_000}": {value}}}]'
    message = refusal(http.post(PATH, content=content), 400)
    assert message.startswith("row 0: xxx")
    assert len(message) < 300


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("element", [None, 5, "row", [], True])
def test_a_row_that_is_no_object_is_refused(http: httpx2.Client, session_id: str, element: object) -> None:
    assert refusal(http.post(PATH, json=[row(session_id, 0), element]), 400).startswith("row 1: ")
    assert_no_session(http, session_id)


@pytest.mark.promise("error-400")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        *wrong("posts.agent", 5, ["a"], {}, False, 0, [], *list(NOT_IDS.values())[1:]),
        *wrong("posts.text", 5, ["t"], {}, False, ""),
        *wrong("claims.agent", 5, ["a"], False, 0, *list(NOT_IDS.values())[1:]),
        *wrong("claims.resource", 5, ["r"], {}, False, "", "  ", "a/\x00", "a\x07b", "x" * 4_097),
        *wrong("claims.cwd", 5, [], "/work\x00", "/" + "x" * 4_096),
        *wrong("check.agent", 5, [], "a/b", LONG),
        *wrong("check.paths", "src/app.py", {}, 5, [5], [None], [""], ["a", "a/\x00b"], ["x" * 4_097], ["p"] * 65),
        *wrong("check.cwd", 5, ["/"], "/work\x00", "x" * 4_097),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(http: httpx2.Client, run_id: str, place: str, value: object) -> None:
    route, _, field = place.partition(".")
    good: dict[str, dict[str, object]] = {
        "posts": {"agent": "agent-a", "text": "hello"},
        "claims": {"agent": "agent-a", "resource": "src/app.py"},
        "check": {"agent": "agent-a", "paths": ["src/app.py"]},
    }
    claim(http, f"{run_id}-other", "agent-b")
    headers = {"X-CtrlB-Agent": "agent-of-the-header"} if field == "agent" else {}
    response = http.post(f"{RUNS}/{run_id}/{route}", json={**good[route], field: value}, headers=headers)
    assert refusal(response, 400).startswith(field)
    assert kinds(http, run_id) == []


@pytest.mark.promise("error-400")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *wrong("agent", 5, [], "a/b", LONG),
        *wrong("resource", 5, [], "", " ", "a/\x00"),
        *wrong("finished", "yes", "true", 0, 1, [], "maybe"),
        *wrong("cwd", 5, "/work\x00"),
    ],
)
def test_a_wrong_field_of_a_release_is_refused_by_its_name(
    http: httpx2.Client, run_id: str, field: str, value: object
) -> None:
    claim(http, run_id, "agent-a")
    body = {"agent": "agent-a", "resource": "src/app.py", field: value}
    assert refusal(http.request("DELETE", f"{RUNS}/{run_id}/claims", json=body), 400).startswith(field)
    assert kinds(http, run_id) == ["HOLD"]


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("name", list(NOT_IDS)[1:])
@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("GET", SESSIONS + "/{}/records?seq_from=0&seq_to=1", "session_id"),
        ("GET", SESSIONS + "/{}/next?seq=0", "session_id"),
        ("POST", RUNS + "/{}/posts", "run_id"),
        ("POST", RUNS + "/{}/claims", "run_id"),
        ("DELETE", RUNS + "/{}/claims?agent=a&resource=r", "run_id"),
        ("POST", RUNS + "/{}/check", "run_id"),
        ("GET", RUNS + "/{}/peers", "run_id"),
        ("GET", RUNS + "/{}", "run_id"),
        ("GET", "/ai/sessions/{}/search?term=word", "dataset"),
        ("GET", "/ai/relay/{}/runs", "dataset"),
    ],
)
def test_what_is_no_id_in_a_path_is_refused_by_its_name(
    http: httpx2.Client, method: str, path: str, field: str, name: str
) -> None:
    body = {"agent": "a", "text": "t", "resource": "r", "paths": []} if method == "POST" else None
    response = http.request(method, path.format(escaped(NOT_IDS[name])), json=body)
    assert refusal(response, 400).startswith(f"{field}: ")


@pytest.mark.promise("error-400")
@pytest.mark.parametrize("dataset", ["_ctrlb_relay_agent_sessions", "_ctrlb_", "a b", "é", "a.b", "x" * 65, "%00"])
def test_what_is_no_sessions_dataset_is_refused(http: httpx2.Client, run_id: str, dataset: str) -> None:
    for path in ("/ai/sessions/{}/search?term=word", "/ai/sessions/{}/s/next?seq=0", "/ai/relay/{}/runs"):
        assert refusal(http.get(path.format(dataset)), 400).startswith("dataset: ")
    response = http.post(f"/ai/relay/{dataset}/runs/{run_id}/posts", json={"agent": "a", "text": "t"})
    assert refusal(response, 400).startswith("dataset: ")


@pytest.mark.promise("error-400")
@pytest.mark.parametrize(
    ("path", "query"),
    [
        *[("search", f"term=word&{query}") for query in ("limit=26", "limit=0", "limit=-1", "limit=x", "limit=1e1")],
        *[("search", f"term=word&{query}") for query in ("limit=", f"limit={2**64}", "limit=%00", "limit=NaN")],
        *[("search", f"term=word&{query}") for query in ("offset=-1", "offset=x", f"offset={10**30}", "offset=9991")],
        *[("search", f"term=word&{query}") for query in ("order=up", "order=", "one_per_session=perhaps")],
        *[("search", f"term=word&{query}") for query in ("session_id=a%2Fb", f"session_id={LONG}", "tool=a%00")],
        *[("search", query) for query in ("term=ab", "term=" + "word%20" * 500, "term=%00%00%00")],
        *[("commands", f"command=make&{query}") for query in ("limit=26", "limit=0", "offset=-5", "offset=10000")],
        *[("commands", query) for query in ("command=", "command=%20%0A", "command=" + "x" * 10_001, "limit=5")],
        *[("s/records", f"seq_to=5&{query}") for query in ("seq_from=-1", "seq_from=x", "seq_from=1.5", "x=1")],
        *[("s/records", f"seq_from=0&{query}") for query in ("seq_to=-1", f"seq_to={2**53}", f"seq_to={2**64}")],
        *[("s/next", query) for query in ("seq=-1", "seq=", "k=2", f"seq={10**40}")],
        *[("s/next", f"seq=1&{query}") for query in ("k=0", "k=9", "k=-3", "k=x", "tool=%00")],
    ],
    ids=lambda text: text[:48],
)
def test_a_wrong_query_is_refused_by_the_name_of_its_field(http: httpx2.Client, path: str, query: str) -> None:
    fields = {"records": "seq_from", "next": "seq", "search": "term", "commands": "command"}
    asked = [part.partition("=")[0] for part in query.split("&")]
    required = fields[path.rpartition("/")[2]]
    blamed = asked[-1] if required in asked else required
    assert refusal(http.get(f"{SESSIONS}/{path}?{query}"), 400).startswith(blamed)


@pytest.mark.promise("runs-cursor", "error-400")
@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "é",
        "====",
        "x" * 1_001,
        *(
            base64.urlsafe_b64encode(text.encode()).decode()
            for text in (
                "5",
                "null",
                '"ab"',
                "{}",
                '{"a": 1, "b": 2}',
                "[]",
                "[1]",
                '[1, "a", 2]',
                '["1", "a"]',
                '[-1, "a"]',
                f'[{2**63}, "a"]',
                "[1, 2]",
                "[NaN, 2]",
                '[1, "\\ud800"]',
                '[1, "a/b"]',
                "[" * 700,
            )
        ),
    ],
    ids=lambda cursor: cursor[:24],
)
def test_a_cursor_that_no_list_answered_is_refused(http: httpx2.Client, cursor: str) -> None:
    assert refusal(http.get(RUNS, params={"cursor": cursor}), 400).startswith("cursor")


@pytest.mark.promise("error-400")
@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("GET", f"{SESSIONS}/search?term=word&limit=1&limit=2", "limit"),
        ("GET", f"{SESSIONS}/search?term=word&term=other", "term"),
        ("GET", f"{RUNS}?status=live&status=live", "status"),
        ("DELETE", RUNS + "/{run}/claims?agent=agent-a&resource=src/app.py&finished=false&finished=true", "finished"),
        ("DELETE", RUNS + "/{run}/claims?agent=agent-a&agent=agent-b&resource=src/app.py", "agent"),
    ],
)
def test_a_query_that_gives_a_field_twice_is_refused(
    http: httpx2.Client, run_id: str, method: str, path: str, field: str
) -> None:
    claim(http, run_id, "agent-a")
    assert refusal(http.request(method, path.replace("{run}", run_id)), 400).startswith(f"{field}: ")
    assert kinds(http, run_id) == ["HOLD"]


@pytest.mark.promise("error-400")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{SESSIONS}/search?term=word%FFword"),
        ("GET", RUNS + "/{run}/peers?agent=%ED%A0%80"),
        ("DELETE", RUNS + "/{run}/claims?agent=agent-a&resource=%C3%28.py"),
        ("GET", RUNS + "/%FF/peers"),
        ("POST", RUNS + "/%ED%A0%80/posts"),
    ],
)
def test_an_address_that_is_not_utf8_is_refused(http: httpx2.Client, run_id: str, method: str, path: str) -> None:
    body = {"agent": "a", "text": "t"} if method == "POST" else None
    assert "UTF-8" in refusal(http.request(method, path.replace("{run}", run_id), json=body), 400)


def assert_no_session(http: httpx2.Client, session_id: str) -> None:
    refusal(http.get(f"{SESSIONS}/{session_id}/records", params={"seq_from": 0, "seq_to": MAX_SEQ}), 404)
