"""What others wrote in our place in a config.toml: used if it says the same, else refused with its line."""

import pytest

from ctrlb_agent.codex_setup.codex_block import BEGIN, END, Refused
from ctrlb_agent.codex_setup.codex_config import with_ours, without_ours
from ctrlb_agent.codex_setup.toml_lines import BrokenToml
from tests.agent.codex_texts import EVENTS, FOLDER, OTEL, OTHER_URL, PATH, URL, install, uninstall

BY_HAND = f"""\
[mcp_servers.ctrlb]
url = "{URL}/mcp"
bearer_token_env_var = "CTRLB_KEY"
tool_timeout_sec = 99
env_http_headers."X-CtrlB-Run" = "CTRLB_RUN"
env_http_headers."X-CtrlB-Agent" = "CTRLB_AGENT"
"""


def test_a_server_by_hand_that_says_the_same_is_used() -> None:
    change = with_ours(BY_HAND, URL, FOLDER, None, [PATH])
    assert change.text.count("CTRLB_KEY") == 1
    assert change.text.startswith(BY_HAND)
    assert ["mcp_servers.ctrlb" in remark for remark in change.remarks] == [True]
    assert uninstall(change.text) == BY_HAND
    assert any("mcp_servers.ctrlb" in remark for remark in without_ours(change.text, [PATH]).remarks)


def test_hooks_and_export_by_hand_that_say_the_same_are_used() -> None:
    text = install("", otel=OTEL)
    by_hand = "\n".join(line for line in text.splitlines() if not line.startswith("# "))
    change = with_ours(by_hand, URL, FOLDER, OTEL, [PATH])
    assert change.text == by_hand
    assert len(change.remarks) == len(EVENTS) * 2 + 3


REFUSED = {
    "a server with another address": (BY_HAND.replace(URL, OTHER_URL), "line 1: mcp_servers.ctrlb differs.* url"),
    "a server without our headers": ("\n[mcp_servers.ctrlb]\ncommand = 'x'\n", "line 2: .*env_http_headers"),
    "a dotted server": ('mcp_servers.ctrlb.url = "http://x"\n', "line 1: mcp_servers.ctrlb differs"),
    "inline servers": ('mcp_servers = { other = { url = "http://x" } }\n', "line 1: mcp_servers is a value"),
    "inline hooks": ("a = 1\nhooks = {}\n", r"line 2: hooks is a value.*\[\[hooks.PreToolUse\]\]"),
    "an array of hooks": ("[hooks]\nPreToolUse = []\n", r"line 2: .*Write it as \[\[hooks.PreToolUse\]\]"),
    "a table for a hook": ("[hooks.Stop]\n", "line 1: hooks.Stop leaves no room"),
    "an export": ("[otel]\nenvironment = 'dev'\n", "line 1: otel exports already"),
    "a dotted export": ("otel.environment = 'dev'\n", "line 1: otel exports already"),
    "an inline export": ("otel = { exporter = 'none' }\n", "line 1: otel is a value|line 1: otel exports"),
    "our hook of another folder": (
        "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype='command'\ncommand='/old/ctrlb-hook codex Stop'\n",
        "line 1: hooks.Stop runs ctrlb-hook already",
    ),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_codex_would_not_take_twice_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        install(text, otel=OTEL)


def test_an_export_by_hand_is_no_matter_when_none_is_asked_for() -> None:
    assert "[otel]\nenvironment = 'dev'\n" in install("[otel]\nenvironment = 'dev'\n")


@pytest.mark.parametrize("text", ["a = \n", "[a]\n[a]\n", "a = 1\n[a\n"])
def test_a_broken_file_is_refused(text: str) -> None:
    with pytest.raises(BrokenToml):
        install(text)
    with pytest.raises(BrokenToml):
        uninstall(text + f"{BEGIN}\n{END}\n")
