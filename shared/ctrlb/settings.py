"""A workspace's Relay settings. Source: the contract's "Settings"."""

import dataclasses

from ctrlb.decisions import Decision, decide
from ctrlb.domain.access import Caller, covers
from ctrlb.domain.audits import audit_of
from ctrlb.domain.errors import Forbidden
from ctrlb.domain.rows import Settings
from ctrlb.models import ChangeSettingsRequest, GetSettingsRequest, SettingsAnswer
from ctrlb.ports import Ports


def get_settings(request: GetSettingsRequest, caller: Caller, ports: Ports) -> SettingsAnswer:
    """The settings, for anyone in the workspace."""
    return _answer(caller.settings)


def change_settings(request: ChangeSettingsRequest, caller: Caller, ports: Ports) -> SettingsAnswer:
    """Change what the request names and record who changed what, if anything. Later claims go by the new lease."""

    def once(decision: Decision) -> SettingsAnswer:
        before = ports.identity.settings(caller.workspace)
        after = dataclasses.replace(before, **request.model_dump(exclude_unset=True))
        if after.sessions_dataset != before.sessions_dataset:
            _check_reads(decision, after.sessions_dataset)
        if after == before:
            return _answer(before)  # nothing changed, so there is nothing to record
        was, now = (_answer(each).model_dump(by_alias=True) for each in (before, after))
        audit = audit_of("change_settings", caller, ports.clock.now_us(), was, now)
        ports.identity.change_settings(caller.workspace, before, after, decision.grounds, audit)
        return _answer(after)

    return decide("relay.manage", caller, ports, once)


def _check_reads(decision: Decision, dataset: str) -> None:
    """Raise Forbidden unless the person may read the dataset: everybody does once it is the workspace's."""
    if "relay.read_all" not in decision.permissions and not any(covers(each, dataset) for each in decision.by.grants):
        raise Forbidden(f"sessionsDataset: you have no grant to read the dataset {dataset}")


def _answer(settings: Settings) -> SettingsAnswer:
    return SettingsAnswer(**dataclasses.asdict(settings))
