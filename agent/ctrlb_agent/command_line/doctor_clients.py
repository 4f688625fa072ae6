"""What `doctor` finds about Claude Code and Codex: whether they have us, let us run, and ask the same server."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

from ctrlb_agent import state
from ctrlb_agent.client_folders import claude_config_file, claude_folder, codex_folder
from ctrlb_agent.command_line.finding import Finding
from ctrlb_agent.connection import shown_url
from ctrlb_agent.json_values import list_of, object_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctrlb_agent.settings import Settings

CLIENT_DEADLINE_S = 20.0
PLUGIN = "ctrlb-agent"
HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder of ctrlb-agent, in the remedies, which are to be run from wherever `doctor` was."""
INSTALLER = f"python3 -I {shlex.quote(os.path.join(HERE, 'install.py'))}"


def claude(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    """Whether Claude Code has the plugin, and its tools an address and no rival. Nothing where it is not installed."""
    listed = output(["claude", "plugin", "list", "--json"])
    if listed is None:
        return
    plugins = [name for name in _names(listed) if _is_ours(name)]
    if not plugins:
        remedy = f"claude plugin marketplace add {shlex.quote(HERE)} && claude plugin install ctrlb-agent@ctrlb"
        yield Finding("note", "Claude Code has no plugin ctrlb-agent", remedy)
        return
    yield Finding("ok", f"Claude Code has the plugin {plugins[0]}")
    if not environ.get("CTRLB_URL") and not plugin_url(environ):
        yield Finding(
            "fail",
            "Claude Code's tools have no address: only hooks and commands read config.json",
            "export CTRLB_URL and CTRLB_KEY, or install the plugin with --config url=… --config key=…",
        )
    rivals = _servers_at(state.read_json(claude_config_file(environ)) or {}, f"{settings.url}/mcp")
    for name, project in sorted(rivals):
        yield Finding(
            "fail",
            f"the server {name} was added by hand with the same address, so the plugin's is suppressed",
            f"cd {project} && claude mcp remove {name}" if project else f"claude mcp remove {name} --scope user",
        )


def plugin_url(environ: Mapping[str, str]) -> str:
    """The server's address that a person gave the plugin when installing it, or an empty text."""
    settings = state.read_json(os.path.join(claude_folder(environ), "settings.json")) or {}
    configs = object_of(settings.get("pluginConfigs"))
    for name, config in configs.items():
        url = object_of(object_of(config).get("options")).get("url")
        if _is_ours(name) and isinstance(url, str):
            return url.rstrip("/")
    return ""


def codex(environ: Mapping[str, str], settings: Settings, codex_home: str | None) -> Iterator[Finding]:
    """Whether Codex has the server and the hooks, trusts them, and asks the server that they ask."""
    folder = codex_folder(environ, codex_home)
    if not os.path.isdir(folder):
        return
    from ctrlb_agent.codex_setup import codex_config, codex_trust

    installed = codex_config.installed(folder)
    if installed is None:
        yield Finding("note", "Codex has no hooks of ours", f"{INSTALLER} --codex")
        return
    yield Finding("ok", f"Codex has the hooks and the server in {folder}")
    if settings.url and installed.mcp_url != f"{settings.url}/mcp":
        yield Finding(
            "fail",
            f"Codex's tools ask {shown_url(installed.mcp_url)}, and its hooks {shown_url(settings.url)}",
            f"{INSTALLER} --codex --url {shown_url(settings.url)} --trust",
        )
    if not environ.get("CTRLB_KEY"):
        yield Finding("fail", "CTRLB_KEY is not set, so Codex leaves the server out without a word", "export CTRLB_KEY")
    untrusted = codex_trust.untrusted(folder)
    if untrusted is None:
        yield Finding("note", "Codex could not be asked which hooks it trusts", "look at /hooks in Codex")
    elif untrusted:
        remedy = f"{INSTALLER} --codex --trust, or /hooks in Codex"
        yield Finding("fail", f"Codex does not run hooks that it does not trust: {', '.join(untrusted)}", remedy)


def _is_ours(plugin: str) -> bool:
    return plugin.partition("@")[0] == PLUGIN


def output(command: list[str]) -> bytes | None:
    """What the program prints, or None when it is not here, fails or does not answer."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLIENT_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _names(listed: bytes) -> Iterator[str]:
    """The ids in `claude plugin list --json`."""
    for plugin in map(object_of, list_of(parsed(listed))):
        yield str(plugin.get("id") or plugin.get("name") or "")


def _servers_at(configured: dict[str, Any], url: str) -> set[tuple[str, str]]:
    """The servers with this address that a person added: each name, and the project, empty when for all."""
    places = {"": configured, **object_of(configured.get("projects"))}
    return {
        (name, project)
        for project, place in places.items()
        for name, server in object_of(object_of(place).get("mcpServers")).items()
        if object_of(server).get("url") == url
    }
