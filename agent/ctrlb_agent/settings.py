"""Where the server is and which key to send: from the environment, the plugin's options, or `config.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ctrlb_agent import state

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_DATASET = "agent_sessions"


class Settings(NamedTuple):
    """What every request needs. `url` and `key` are empty when nobody has set them."""

    url: str
    key: str
    dataset: str


def settings_of(environ: Mapping[str, str]) -> Settings:
    """The first of these that is set, for each: `CTRLB_URL`, the plugin's option `url`, and `url` in `config.json`."""
    kept = _kept()

    def setting(name: str) -> str:
        for value in (
            environ.get(f"CTRLB_{name}"),
            environ.get(f"CLAUDE_PLUGIN_OPTION_{name}"),
            kept.get(name.lower()),
        ):
            if isinstance(value, str) and is_set(value):
                return value.strip()
        return ""

    return Settings(setting("URL").rstrip("/"), setting("KEY"), setting("DATASET") or DEFAULT_DATASET)


def _kept() -> dict[str, Any]:
    try:
        return state.read_json(state.path("config.json")) or {}
    except OSError:  # without a folder, there is the environment
        return {}


def is_set(value: str) -> bool:
    """Whether a variable has a value. One that a client did not expand, `${…`, has none (contract: headers)."""
    return bool(value.strip()) and not value.lstrip().startswith("${")
