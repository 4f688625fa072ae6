"""Changes that matter to security leave a row that says who, when, what was before and after, and holds no secret."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ctrlb.domain.errors import NotFound
from ctrlb.keys import create_key, revoke_key
from ctrlb.laptop import owner
from ctrlb.models import ChangeSettingsRequest, CreateKeyRequest, RevokeKeyRequest
from ctrlb.ports import Ports
from ctrlb.settings import change_settings
from tests.conftest import HandClock, add_member, caller_named


def audits(folder: Path) -> list[dict[str, Any]]:
    """All rows, oldest first."""
    with sqlite3.connect(folder / "relay.db") as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute("SELECT * FROM audits ORDER BY rowid")]
    database.close()
    return rows


def test_making_and_revoking_a_key_is_recorded_without_the_key(tmp_path: Path, stores: Ports, clock: HandClock) -> None:
    admin = owner(stores)
    before = len(audits(tmp_path))
    made = create_key(CreateKeyRequest(name="k"), admin, stores)
    clock.move_s(60)
    revoke_key(RevokeKeyRequest(key_id=made.key_id), admin, stores)
    created, revoked = audits(tmp_path)[before:]
    assert (created["action"], revoked["action"]) == ("create_key", "revoke_key")
    for row in (created, revoked):
        assert (row["workspace"], row["user"]) == ("local", "admin")
        assert json.loads(row["after"])["key_id"] == made.key_id
    assert revoked["ts_us"] - created["ts_us"] == 60_000_000
    kept = str(audits(tmp_path))
    assert made.key not in kept
    assert made.key.rpartition("_")[2] not in kept


def test_a_change_of_settings_is_recorded_with_what_was_before_and_after(tmp_path: Path, stores: Ports) -> None:
    ann = caller_named("ann", "Admin")
    add_member(stores, "ann", "Admin")
    change_settings(ChangeSettingsRequest.model_validate({"enforce": "enforce"}), ann, stores)
    change_settings(ChangeSettingsRequest.model_validate({"leaseSeconds": 60}), ann, stores)
    first, second = audits(tmp_path)[-2:]
    assert [row["user"] for row in (first, second)] == ["ann", "ann"]
    assert json.loads(first["before"])["enforce"] == "advisory"
    assert json.loads(first["after"])["enforce"] == "enforce"
    assert json.loads(second["before"]) == json.loads(first["after"])
    assert json.loads(second["after"])["lease_seconds"] == 60


def test_what_was_refused_is_recorded_as_no_change(tmp_path: Path, stores: Ports) -> None:
    made = create_key(CreateKeyRequest(name="k"), owner(stores), stores)
    before = audits(tmp_path)
    with pytest.raises(NotFound):
        revoke_key(RevokeKeyRequest(key_id=made.key_id), caller_named("eve", "Admin"), stores)
    assert audits(tmp_path) == before
