"""Who is calling, when the store of identities does not answer. The rest is tested over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from ctrlb.domain.errors import AuthUnavailable, InvalidKey, Unavailable
from ctrlb.edge.identity import identify
from ctrlb.keys import create_key
from ctrlb.laptop import owner
from ctrlb.models import CreateKeyRequest
from ctrlb.ports import IdentityStore, Ports
from tests.conftest import HandClock


class AnswersNot:
    """A store of identities whose methods, all or some, do not answer in time."""

    def __init__(self, inner: IdentityStore, *methods: str) -> None:
        self._inner = inner
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._no_answer if name in self._methods else getattr(self._inner, name)

    def _no_answer(self, *_: object) -> None:
        raise Unavailable("no answer", retry_after_s=7)


def key_of(stores: Ports) -> str:
    return create_key(CreateKeyRequest(name="k"), owner(stores), stores).key


@pytest.mark.promise("code-unavailable")
@pytest.mark.parametrize("method", ["key", "member", "settings"])
def test_a_key_that_cannot_be_checked_is_told_to_come_again(stores: Ports, method: str) -> None:
    key = key_of(stores)
    broken = replace(stores, identity=AnswersNot(stores.identity, method))
    with pytest.raises(AuthUnavailable) as refused:
        identify(f"Bearer {key}", broken)
    assert (refused.value.code, refused.value.retry_after_s) == ("MCP_AUTH_UNAVAILABLE", 7)
    assert key not in refused.value.message


def test_a_key_with_a_typo_is_refused_without_asking_the_store(stores: Ports) -> None:
    broken = replace(stores, identity=AnswersNot(stores.identity, "key"))
    with pytest.raises(InvalidKey):
        identify(f"Bearer {key_of(stores)}x", broken)


def test_a_call_is_let_in_when_its_use_cannot_be_noted(stores: Ports) -> None:
    key = key_of(stores)
    broken = replace(stores, identity=AnswersNot(stores.identity, "touch_key"))
    assert identify(f"Bearer {key}", broken).user == "admin"


def test_a_use_is_noted_once_an_hour(stores: Ports, clock: HandClock) -> None:
    key = key_of(stores)
    noted = []
    for _ in range(4):
        identify(f"Bearer {key}", stores)
        (kept,) = stores.identity.keys("local", "admin")
        noted.append(kept.last_used_us)
        clock.move_s(1_800)
    assert noted[0] == noted[1] != noted[2] == noted[3]
