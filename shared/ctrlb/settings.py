"""A workspace's Relay settings. Source: the contract's "Settings"."""

import dataclasses
import json

from ctrlb.domain.access import Caller
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.rows import Audit, Settings
from ctrlb.models import ChangeSettingsRequest, GetSettingsRequest, SettingsAnswer
from ctrlb.ports import Moved, Ports

CHANGE_TRIES = 16
"""How often a change is made anew because somebody else's came first."""


def get_settings(request: GetSettingsRequest, caller: Caller, ports: Ports) -> SettingsAnswer:
    """The settings, for anyone in the workspace."""
    return _answer(caller.settings)


def change_settings(request: ChangeSettingsRequest, caller: Caller, ports: Ports) -> SettingsAnswer:
    """Change what the request names and record who changed what. Later claims go by the new lease."""
    for _ in range(CHANGE_TRIES):
        before = ports.identity.settings(caller.workspace)
        after = dataclasses.replace(before, **request.model_dump(exclude_unset=True))
        audit = Audit(
            workspace=caller.workspace,
            ts_us=ports.clock.now_us(),
            user=caller.user,
            action="change_settings",
            before=json.dumps(dataclasses.asdict(before)),
            after=json.dumps(dataclasses.asdict(after)),
        )
        try:
            ports.identity.change_settings(caller.workspace, before, after, audit)
        except Moved:
            continue
        return _answer(after)
    raise Unavailable("the settings are being changed by others all the time; nothing was changed, send it again")


def _answer(settings: Settings) -> SettingsAnswer:
    return SettingsAnswer(**dataclasses.asdict(settings))
