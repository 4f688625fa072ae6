"""Where the server is and which key to send: from the environment, the plugin's options, or `config.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import state
from ctrlb_agent.json_values import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_DATASET = "agent_sessions"


class Settings(NamedTuple):
    """What every request needs. `url` and `key` are empty when nobody has set them."""

    url: str
    key: str
    dataset: str

    @property
    def are_complete(self) -> bool:
        """Whether somebody has said which server, and with which key; else nothing is asked or sent."""
        return bool(self.url and self.key)


def settings_of(environ: Mapping[str, str]) -> Settings:
    """The first of these that is set, for each: `CTRLB_URL`, the plugin's option `url`, and `url` in `config.json`."""
    kept = _kept()

    def setting(name: str) -> str:
        option = value_of(environ, f"CLAUDE_PLUGIN_OPTION_{name}")
        return value_of(environ, f"CTRLB_{name}") or option or value_of(kept, name.lower())

    return Settings(setting("URL").rstrip("/"), setting("KEY"), setting("DATASET") or DEFAULT_DATASET)


def _kept() -> dict[str, Any]:
    try:
        file = state.path("config.json")
        return (state.read_json(file) or {}) if state.is_own(file) else {}
    except OSError:  # without a folder, there is the environment
        return {}


def value_of(values: Mapping[str, Any], name: str) -> str:
    """The variable's value, or an empty text. What a client did not expand, `${…`, is none (contract: headers)."""
    value = text_of(values.get(name)).strip()
    return "" if value.startswith("${") else value
