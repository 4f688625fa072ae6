"""What the installer makes of a config.toml, as text: ours goes in and out, and what others wrote stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent.codex_setup.codex_block import BEGIN, END, Refused
from ctrlb_agent.codex_setup.codex_config import installed_in, without_ours
from ctrlb_agent.codex_setup.codex_tables import Otel
from tests.agent.codex_texts import EVENTS, FOLDER, OTEL, OTHER_URL, PATH, URL, install, uninstall

THEIR_HOOK = """\
[[hooks.PreToolUse]]
matcher = "Bash"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "guard {name}"
"""


def state(place: str, path: str = PATH, value: str = "sha256:00") -> str:
    """A hook's trust as Codex writes it."""
    return f'[hooks.state."{path}:{place}"]\ntrusted_hash = "{value}"\n'


def inside(text: str, before: str, added: str) -> str:
    """The text with something that was written above the given line."""
    assert text.count(before) == 1
    return text.replace(before, added + before)


# --- What is written


def test_the_server_and_the_hooks_are_written_as_codex_reads_them() -> None:
    tree = tomllib.loads(install('model = "x"\n'))
    assert tree["mcp_servers"]["ctrlb"] == {
        "url": f"{URL}/mcp",
        "bearer_token_env_var": "CTRLB_KEY",
        "env_http_headers": {"X-CtrlB-Run": "CTRLB_RUN", "X-CtrlB-Agent": "CTRLB_AGENT"},
        "startup_timeout_sec": 10,
        "tool_timeout_sec": 30,
    }
    assert list(tree["hooks"]) == EVENTS
    for event in EVENTS:
        ((handler,),) = [group["hooks"] for group in tree["hooks"][event]]
        assert handler["type"] == "command"
        assert handler["command"] == f"'{FOLDER}/hooks/ctrlb-hook' codex {event}"
    assert tree["hooks"]["PreToolUse"][0]["matcher"] == "^(apply_patch|Bash)$"
    assert "otel" not in tree


@pytest.mark.promise("otel-block")
def test_the_export_is_written_as_the_contract_shows_it() -> None:
    tree = tomllib.loads(install("", otel=OTEL))
    assert tree["otel"] == {
        "log_user_prompt": True,
        "log_agent_responses": True,
        "exporter": {
            "otlp-http": {"endpoint": OTEL.endpoint, "protocol": "json", "headers": {"Authorization": "Basic abc="}}
        },
    }


def test_an_export_stays_when_the_installer_runs_without_it() -> None:
    text = install("", otel=OTEL)
    assert tomllib.loads(install(text, OTHER_URL))["otel"] == tomllib.loads(text)["otel"]


def test_what_is_installed_can_be_asked() -> None:
    assert installed_in('model = "x"\n') is None
    found = installed_in(install("", otel=OTEL))
    assert found is not None
    assert (found.mcp_url, list(found.commands), found.otel) == (f"{URL}/mcp", EVENTS, True)
    assert found.commands["Stop"] == f"'{FOLDER}/hooks/ctrlb-hook' codex Stop"


# --- Nothing of others is touched

TEXTS = {
    "nothing": "",
    "a BOM": "\ufeff",
    "an empty line": "\n",
    "a key without a line's end": 'model = "x"',
    "a key": 'model = "x"\n',
    "CRLF": 'model = "x"\r\n\r\n[tui]\r\nnotifications = true\r\n',
    "CRLF without a line's end": 'model = "x"\r\n[tui]\r\nnotifications = true',
    "a BOM and CRLF": '\ufeffmodel = "x"\r\n',
    "both line ends": 'model = "x"\r\n# one\r\n# two\r\n# three\n',
    "an end inside of a table": '[projects."/work/app"]\ntrust_level = "trusted"\n',
    "a comment at the end": "[tui]\n\n# the end",
    "empty lines at the end": "[tui]\n\n\n\n",
    "a space at the end": "[tui]\n   ",
    "marks in a string": f'a = """\n{BEGIN}\n{END}\n"""\n',
    "a table's name in a string": "a = '''\n[mcp_servers.ctrlb]\n[otel]\n'''\n",
    "hooks": THEIR_HOOK.format(name="one") + THEIR_HOOK.format(name="two"),
    "another server": '[mcp_servers.ctrlb2]\nurl = "http://x"\n',
    "a dotted server": 'mcp_servers.other.url = "http://x"\n',
    "a table of hooks": '[hooks.state]\n[hooks.state."/other:stop:0:0"]\ntrusted_hash = "x"\n',
    "an inline table on several lines": "tui = {\n  notifications = true,\n}\n",
    "a character that ends lines elsewhere": 'a = "x\u2028y\x85z"\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("otel", [None, OTEL], ids=["plain", "otel"])
def test_uninstalling_gives_the_file_back_byte_for_byte(text: str, otel: Otel | None) -> None:
    first = install(text, otel=otel)
    assert text.lstrip("\ufeff") in first
    assert install(first, otel=otel) == first
    updated = install(first, OTHER_URL, otel)
    assert updated == first.replace(f"{URL}/mcp", f"{OTHER_URL}/mcp")
    change = without_ours(updated, [PATH])
    assert (change.text, change.remarks) == (text, [])


def test_a_file_with_crlf_gets_crlf_only() -> None:
    text = install("a = 1\r\n")
    assert text.count("\n") == text.count("\r\n") > 10


FRAGMENTS = [
    '[projects."/work/{n}"]\ntrust_level = "trusted"',
    '# a remark, {n}\n[mcp_servers.s{n}]\nurl = "http://x/{n}"\nenv = { A = "1" }',
    '[[hooks.PreToolUse]]\nmatcher = "t{n}"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "guard {n}"',
    '[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "bell {n}"',
    '[profiles.p{n}]\ntext = """\n[otel]\n{n}\n"""',
    "[model_providers.m{n}]\n  name = 'x' # why\n\n  query = [\n    1,\n  ]",
]
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=5)


def numbered(parts: list[str], start: int) -> list[str]:
    return [part.replace("{n}", str(number)) for number, part in enumerate(parts, start)]


def lines_of(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def in_order(lines: list[str], text: str) -> bool:
    """Whether the lines are in the text, in this order."""
    rest = iter(lines_of(text))
    return all(line in rest for line in lines)


@given(fragments, fragments, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans(), st.data())
def test_lines_of_others_survive_installing_updating_and_uninstalling(
    before: list[str], within: list[str], newline: str, end: bool, otel: bool, data: st.DataObject
) -> None:
    text = "\n".join(["# mine", *numbered(before, 0)] + [""] * end).replace("\n", newline)
    export = OTEL if otel else None
    first = install(text, otel=export)
    assert install(first, otel=export) == first
    assert in_order(lines_of(text), first)
    above, block = first.split(BEGIN)
    places = [line for line in lines_of(block) if line.startswith("[") and not line.endswith(".hooks]]")]
    added = numbered(within, 100)
    before_line: dict[str, str] = {}
    for part in added:
        place = data.draw(st.sampled_from([*places, END]))
        before_line[place] = before_line.get(place, "") + part.replace("\n", newline) + newline + newline
    written = above + BEGIN + "\n".join(before_line.get(one.rstrip("\r"), "") + one for one in block.split("\n"))
    tomllib.loads(written)
    updated = install(written, OTHER_URL, export)
    assert install(updated, OTHER_URL, export) == updated
    removed = uninstall(updated)
    theirs = lines_of(text) + [line for part in added for line in lines_of(part)]
    for result in (updated, removed):
        tomllib.loads(result)
        assert sorted(set(lines_of(result)) & set(theirs)) == sorted(set(theirs))
        assert in_order(lines_of(text), result)
        assert all(in_order(lines_of(part), result) for part in added)
    assert sorted(lines_of(removed)) == sorted(theirs)


# --- What Codex and people do to the block


def test_the_trust_that_codex_writes_into_the_block_stays_on_update() -> None:
    trust = f"[hooks.state]\n\n{state('session_start:0:0')}\n{state('stop:0:0')}\n"
    text = inside(install("[tui]\n"), "[[hooks.PreToolUse]]", trust)
    assert install(text) == text
    assert trust in install(text, OTHER_URL)


def test_the_trust_in_our_hooks_goes_with_them() -> None:
    trust = f"[hooks.state]\n\n{state('session_start:0:0')}\n{state('stop:0:0')}\n"
    for original in ("[tui]\n", "[tui]", '[tui]\r\nnotifications = "x"\r\n'):
        newline = "\r\n" if "\r\n" in original else "\n"
        text = inside(install(original), "[[hooks.PreToolUse]]", trust.replace("\n", newline))
        assert uninstall(text) == original


def test_the_trust_in_others_hooks_moves_up_with_them() -> None:
    text = install(THEIR_HOOK.format(name="above")) + "\n" + THEIR_HOOK.format(name="below")
    text += "\n[hooks.state]\n"
    text += state("pre_tool_use:0:0", value="sha256:above") + state("pre_tool_use:1:0", value="sha256:ours")
    text += state("pre_tool_use:2:0", value="sha256:below") + state("pre_tool_use:1:0", "/other", "sha256:other")
    tree = tomllib.loads(uninstall(text))
    assert tree["hooks"]["state"] == {
        f"{PATH}:pre_tool_use:0:0": {"trusted_hash": "sha256:above"},
        f"{PATH}:pre_tool_use:1:0": {"trusted_hash": "sha256:below"},
        "/other:pre_tool_use:1:0": {"trusted_hash": "sha256:other"},
    }


def test_a_setting_that_was_added_to_our_table_stays_on_update_and_is_named_when_it_goes() -> None:
    text = install("").replace("tool_timeout_sec = 30", "tool_timeout_sec = 120 # slow here\nenabled = false")
    text = text.replace(END, f'\n[mcp_servers.ctrlb.tools.claim]\napproval_mode = "approve"\n{END}')
    server = tomllib.loads(install(text, OTHER_URL))["mcp_servers"]["ctrlb"]
    assert (server["url"], server["tool_timeout_sec"], server["enabled"]) == (f"{OTHER_URL}/mcp", 120, False)
    assert server["tools"] == {"claim": {"approval_mode": "approve"}}
    change = without_ours(text, [PATH])
    assert change.text == ""
    assert any("enabled = false" in remark for remark in change.remarks)
    assert any("[mcp_servers.ctrlb.tools.claim]" in remark for remark in change.remarks)


def test_comments_in_the_block_stay() -> None:
    text = inside(install("a = 1\n"), "[mcp_servers.ctrlb]", "# relay\n").replace(END, f"# slow\n{END}")
    for result in (install(text, OTHER_URL), uninstall(text)):
        assert in_order(["a = 1", "# relay", "# slow"], result)


def test_a_hook_that_was_added_to_our_group_stays() -> None:
    added = '\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "bell"\n'
    text = inside(install("a = 1\n"), "\n[[hooks.SubagentStop]]", added)
    for result in (install(text), uninstall(text)):
        hooks = tomllib.loads(result)["hooks"]["Stop"]
        assert next(handler["command"] for group in hooks for handler in group["hooks"]) == "bell"
    assert install(install(text)) == install(text)


@pytest.mark.parametrize("mark", [BEGIN, END])
def test_a_block_that_lost_a_mark_is_made_whole_again(mark: str) -> None:
    text = install('model = "x"\n\n[tui]\n', otel=OTEL) + '\n[projects."/work"]\ntrust_level = "trusted"\n'
    damaged = text.replace(mark + "\n", "")
    assert lines_of(install(damaged, otel=OTEL)) == lines_of(text)
    assert lines_of(uninstall(damaged)) == lines_of(uninstall(text))


def test_a_server_that_was_removed_from_the_block_comes_back() -> None:
    text = install("")
    at = text.index("\n[mcp_servers.ctrlb]")
    assert tomllib.loads(install(text[:at] + END + "\n")) == tomllib.loads(text)


def test_two_blocks_are_refused() -> None:
    text = install("")
    with pytest.raises(Refused, match="Remove all but one"):
        install(text + text.replace("hooks", "other").replace("mcp_servers", "others"))
