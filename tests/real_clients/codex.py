"""Codex, run headless against a stand-in of its model."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.agent.patience import patient_agent
from tests.real_clients.client import INSTALLED, Client, Ended
from tests.real_clients.script import Call, Json

PROGRAM = INSTALLED / ".bin" / "codex"
DIRECT_MODEL, CODE_MODEL = "gpt-5.5", "gpt-6.2-sol"
"""A model that calls tools directly, and one that calls them from JavaScript."""


def spawn_agent(prompt: str) -> Call:
    """The call that starts a subagent with the prompt."""
    return Call("multi_agent_v1/spawn_agent", {"message": prompt})


def wait_for_agent(body: Json) -> list[Call]:
    """The turn that waits for the only subagent so far."""
    (started,) = (item for item in body["input"] if item["type"] == "function_call_output")
    agent_id = json.loads(started["output"])["agent_id"]
    return [Call("multi_agent_v1/wait_agent", {"targets": [agent_id], "timeout_ms": 10_000})]


@dataclass(frozen=True)
class Codex(Client):
    """Codex with a dummy key and a model provider of its own."""

    def own_environ(self) -> dict[str, str]:
        return {**super().own_environ(), "CODEX_HOME": str(self.codex_home), "STAND_IN_KEY": "sk-dummy"}

    @property
    def codex_home(self) -> Path:
        """The folder of its config and sessions."""
        return self.home / ".codex"

    @property
    def config(self) -> Path:
        """Its config.toml."""
        return self.codex_home / "config.toml"

    def configure(self) -> None:
        """Write the config that a user of this provider has, who trusts the checkout."""
        self.codex_home.mkdir(parents=True)
        self.config.write_text(
            f'''model = "{DIRECT_MODEL}"
model_provider = "stand-in"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
apps = false

[model_providers.stand-in]
name = "stand-in"
base_url = "{self.model_url}/v1"
env_key = "STAND_IN_KEY"
wire_api = "responses"

[projects."{self.checkout}"]
trust_level = "trusted"
'''
        )

    def install(self, *options: str) -> Ended:
        """Run the installer as the user does."""
        path = f"{self.program.parent}{os.pathsep}{os.environ['PATH']}"
        python = replace(self, program=Path(sys.executable))
        return python.run("-I", str(patient_agent() / "install.py"), "--codex", *options, environ={"PATH": path})

    def prompt(self, text: str, options: Sequence[str] = (), environ: Mapping[str, str] = {}) -> Ended:
        """Run one session, or one more turn of it, with the prompt. Its events say what happened."""
        return self.run("exec", "--json", *options, text, environ=environ)

    def rollout(self, thread_id: str) -> Path:
        """The file of the session."""
        (path,) = (self.codex_home / "sessions").glob(f"*/*/*/rollout-*-{thread_id}.jsonl")
        return path
