"""The plugin and the installer connect the relay's tools, which act as the agent that the hooks check for."""

import json
from pathlib import Path

import pytest

from tests.acceptance.calls import Json, events
from tests.real_clients import edits
from tests.real_clients.claude_code import ClaudeCode
from tests.real_clients.codex import Codex
from tests.real_clients.script import Call, Play, Say, texts
from tests.real_clients.server import Server
from tests.real_clients.test_session_note import told

TOOLS: dict[str, Json] = {
    "claim": {"resource": "task:look"},
    "fetch_records": {"session_id": "none", "seq_from": 0, "seq_to": 9},
    "find_command": {"command": "never run before"},
    "next_actions": {"session_id": "none", "seq": 1},
    "peers": {},
    "post": {"text": "I look around."},
    "release": {"resource": "task:look"},
    "search_sessions": {"term": "neversaidbefore"},
}
OF_PLUGIN = "mcp__plugin_ctrlb-agent_ctrlb__"
OF_CODEX = "mcp__ctrlb"


@pytest.mark.promise("plugin-adds-server")
def test_the_plugin_connects_claude_code_to_the_eight_tools(claude_code: ClaudeCode, play: Play) -> None:
    play.scripts = {"GO": [[Say("Hello.")]]}
    begun = next(event for event in claude_code.prompt("GO on").events if event.get("subtype") == "init")
    assert {tool.removeprefix(OF_PLUGIN) for tool in begun["tools"] if tool.startswith(OF_PLUGIN)} == set(TOOLS)
    assert [(server["name"], server["status"]) for server in begun["mcp_servers"]] == [
        ("plugin:ctrlb-agent:ctrlb", "connected")
    ]


@pytest.mark.promise("installer-adds-server")
def test_codex_may_call_each_of_the_eight_tools_unasked(codex_exec: Codex, play: Play) -> None:
    calls = [Call(f"{OF_CODEX}/{tool}", given) for tool, given in TOOLS.items()]
    play.scripts = {"GO": [calls, [Say("Done.")]]}
    ended = codex_exec.prompt("GO on", environ={"CTRLB_RUN": f"mcp-{codex_exec.home.name}", "CTRLB_AGENT": "builder-1"})
    made = [event["item"] for event in ended.events if event.get("item", {}).get("type") == "mcp_tool_call"]
    answers = {
        item["tool"]: json.loads(item["result"]["content"][0]["text"])
        for item in made
        if item["status"] != "in_progress"
    }
    assert set(answers) == set(TOOLS)
    assert answers["claim"]["held"] is True
    assert (answers["peers"]["you"], answers["post"]["ok"], answers["release"]["released"]) == ("builder-1", True, 1)
    assert {"total", "hits"} < set(answers["search_sessions"])
    assert {"total", "occurrences"} < set(answers["find_command"])


@pytest.mark.promise("ids-from-variables", "edits-keyed-as-claims")
def test_what_claude_code_has_claimed_it_edits_and_codex_does_not(
    claude_code: ClaudeCode, codex_exec: Codex, play: Play, ctrlb: Server
) -> None:
    ctrlb.enforce("enforce")
    run = {"CTRLB_RUN": f"mcp-{claude_code.home.name}"}

    def meanwhile(_: Json) -> list[Say]:
        assert codex_exec.prompt("OTHER go on", environ={**run, "CTRLB_AGENT": "builder-2"}).status == 0
        return [Say("Done.")]

    play.scripts = {
        "GO": [
            [Call(f"{OF_PLUGIN}claim", {"resource": "notes.txt"})],
            [edits.write(claude_code.checkout / "notes.txt", "mine\n")],
            meanwhile,
        ],
        "OTHER": [[edits.direct_patch("notes.txt", "theirs")], [Say("I leave it.")]],
    }
    ended = claude_code.prompt("GO on", environ={**run, "CTRLB_AGENT": "builder-1"})
    assert ended.status == 0, ended
    assert (claude_code.checkout / "notes.txt").read_text() == "mine\n"
    assert play.prompted("OTHER")[1].tells("builder-1")
    held = [event for event in events(ctrlb.http, run["CTRLB_RUN"]) if event["kind"] == "HOLD"]
    assert [(event["agent"], event["key"]) for event in held] == [("builder-1", "path:notes.txt")]


@pytest.mark.promise("session-start-note")
@pytest.mark.parametrize("client_name", ["claude_code", "codex_exec"])
def test_an_agent_claims_and_edits_by_the_ids_of_its_note(
    request: pytest.FixtureRequest, play: Play, ctrlb: Server, checkout: Path, client_name: str
) -> None:
    client: ClaudeCode | Codex = request.getfixturevalue(client_name)
    tool = f"{OF_PLUGIN}claim" if isinstance(client, ClaudeCode) else f"{OF_CODEX}/claim"
    path = checkout / "notes.txt"
    edit = edits.write(path, "mine\n") if isinstance(client, ClaudeCode) else edits.direct_patch(path.name, "mine")
    ctrlb.enforce("enforce")

    def claims(_: Json) -> list[Call]:
        run, agent = told(play.prompted("GO")[0])
        return [Call(tool, {"resource": "notes.txt", "run_id": run, "agent": agent})]

    play.scripts = {"GO": [claims, [edit], [Say("Done.")]]}
    assert client.prompt("GO on").status == 0
    assert any('"held":true' in text.replace(" ", "") for text in texts(play.prompted("GO")[1].said))
    assert path.read_text() == "mine\n"
    run, agent = told(play.prompted("GO")[0])
    assert [(event["kind"], event["agent"]) for event in events(ctrlb.http, run)] == [("HOLD", agent)]
