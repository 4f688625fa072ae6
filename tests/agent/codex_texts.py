"""What the installer makes of a text of config.toml."""

from ctrlb_agent.codex_setup.codex_config import with_ours, without_ours
from ctrlb_agent.codex_setup.codex_tables import Otel

PATH = "/home/dev/.codex/config.toml"
URL, OTHER_URL = "http://127.0.0.1:8080", "https://ctrlb.example.com"
FOLDER = "/home/dev/my tools/ctrlb-agent"
OTEL = Otel("https://ctrlb.example.com/default/logs/_otel/v1/logs", (("Authorization", "Basic abc="),))
EVENTS = ["SessionStart", "PreToolUse", "SubagentStart", "Stop", "SubagentStop", "SessionEnd"]


def install(text: str, url: str = URL, otel: Otel | None = None) -> str:
    """The text after the installer."""
    return with_ours(text, url, FOLDER, otel, [PATH]).text


def uninstall(text: str) -> str:
    """The text after --uninstall."""
    return without_ours(text, [PATH]).text
