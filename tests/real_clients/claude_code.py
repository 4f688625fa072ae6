"""Claude Code, run headless against a stand-in of its model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real_clients.client import INSTALLED, Client, Ended
from tests.real_clients.script import Call

PROGRAM = INSTALLED / ".bin" / "claude"
MODEL = "claude-sonnet-5-5"
OFFLINE = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_BUG_COMMAND",
)
COMPACTION = "CRITICAL:"
"""The first word of the prompt that asks for a summary of the session."""
RELAY_COMMAND = "<command-message>ctrlb-agent:relay</command-message>"
"""The first word that the model sees of /ctrlb-agent:relay."""
ALLOWED_TOOLS = "Bash,Edit,Write,NotebookEdit,Read,Agent,ToolSearch,mcp__plugin_ctrlb-agent_ctrlb"


def run_subagent(prompt: str) -> Call:
    """The call that has a subagent do what the prompt says, and waits for it."""
    task = {"description": "Look", "subagent_type": "general-purpose", "run_in_background": False}
    return Call("Agent", {**task, "prompt": prompt})


@dataclass(frozen=True)
class ClaudeCode(Client):
    """Claude Code with a dummy key."""

    plugin: Path | None = None
    """The folder of a plugin that is loaded for each session."""

    def own_environ(self) -> dict[str, str]:
        api = {"ANTHROPIC_BASE_URL": self.model_url, "ANTHROPIC_API_KEY": "sk-ant-dummy"}
        return {**super().own_environ(), **api, **dict.fromkeys(OFFLINE, "1")}

    def prompt(
        self, text: str, options: Sequence[str] = (), environ: Mapping[str, str] = {}, model: str = MODEL
    ) -> Ended:
        """Run one session, or one more turn of it, with the prompt. Its events say what happened."""
        how = ["--print", "--model", model, "--permission-mode", "acceptEdits", "--allowedTools", ALLOWED_TOOLS]
        printed = ["--output-format", "stream-json", "--verbose", "--include-hook-events"]
        plugin = ["--plugin-dir", str(self.plugin)] if self.plugin else []
        return self.run(*how, *printed, *plugin, *options, "--", text, environ=environ)

    def transcript(self, session_id: str) -> Path:
        """The file of the session."""
        (path,) = (self.home / ".claude" / "projects").glob(f"*/{session_id}.jsonl")
        return path
