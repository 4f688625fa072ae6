"""Changes of the settings by several people at once."""

from dataclasses import replace

from ctrlb.domain.rows import Audit, Settings
from ctrlb.models import ChangeSettingsRequest
from ctrlb.ports import IdentityStore, Ports
from ctrlb.settings import change_settings
from tests.conftest import caller_named


class RivalFirst:
    """An IdentityStore in which somebody else's change comes just before ours, once."""

    def __init__(self, inner: IdentityStore) -> None:
        self._inner = inner
        self._rivals = 1

    def change_settings(self, workspace: str, before: Settings, after: Settings, audit: Audit) -> None:
        if self._rivals:
            self._rivals -= 1
            self._inner.change_settings(workspace, before, replace(before, enforce="enforce"), audit)
        self._inner.change_settings(workspace, before, after, audit)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_two_people_change_different_settings_at_once_and_both_changes_stay(stores: Ports) -> None:
    raced = replace(stores, identity=RivalFirst(stores.identity))  # type: ignore[arg-type]  # the rest by __getattr__
    answer = change_settings(ChangeSettingsRequest(leaseSeconds=60), caller_named("ann", "Admin"), raced)
    assert (answer.enforce, answer.lease_seconds) == ("enforce", 60)
    assert stores.identity.settings("acme") == Settings(enforce="enforce", lease_seconds=60)
