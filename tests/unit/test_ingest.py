"""Ingest credentials: good for the logs of one dataset, and for nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from ctrlb.adapters.identity_cache import MAX_AGE_S, CachedIdentity
from ctrlb.domain.errors import AuthUnavailable, IngestRefused, InvalidKey, NoCredential
from ctrlb.domain.key_format import INGEST_PREFIX, written_key
from ctrlb.edge.identity import identify, identify_ingest
from ctrlb.ingest import create_ingest_credential, list_ingest_credentials, revoke_ingest_credential
from ctrlb.ports import Ports
from tests.conftest import HandClock, add_member, caller_named
from tests.doors import asked
from tests.unit.test_identity import AnswersNot, key_of

ADA = replace(caller_named("ada", "Admin"), token_sha256="a person's")
ZOE = replace(ADA, workspace="beta", user="zoe")


@pytest.fixture
def credential(stores: Ports) -> str:
    add_member(stores, "ada", "Admin")
    add_member(stores, "zoe", "Admin", workspace="beta")
    status, made = asked(create_ingest_credential, ADA, stores, name="builds", dataset="logs")
    assert status == 201
    return str(made["credential"])


def id_of(credential: str) -> str:
    return credential.split("_")[2]


def test_a_credential_is_good_for_its_dataset(stores: Ports, credential: str) -> None:
    found = identify_ingest(f"Basic {credential}", "logs", stores)
    assert (found.workspace, found.dataset, found.created_by) == ("acme", "logs", "ada")
    assert credential.startswith("ctrlbi_acme_")


def test_only_a_hash_of_it_is_kept_and_listed_without(stores: Ports, credential: str) -> None:
    listed = asked(list_ingest_credentials, ADA, stores)[1]
    assert [each["name"] for each in listed["credentials"]] == ["builds"]
    secret = credential.split("_")[3]
    assert secret[:43] not in str(listed) + str(stores.identity.ingest_credentials("acme"))


def test_it_is_refused_for_another_dataset_with_a_typo_or_a_wrong_secret(stores: Ports, credential: str) -> None:
    wrong_secret = written_key("acme", id_of(credential), stores.random.secret(), INGEST_PREFIX)
    unknown = written_key("acme", stores.random.key_id(), stores.random.secret(), INGEST_PREFIX)
    refused = []
    for sent, dataset in ((credential, "other"), (wrong_secret, "logs"), (unknown, "logs"), (credential + "x", "logs")):
        with pytest.raises(IngestRefused) as refusal:
            identify_ingest(f"Basic {sent}", dataset, stores)
        assert sent not in refusal.value.message
        refused.append(refusal.value.message)
    assert refused[0] == refused[1] == refused[2]  # nobody learns which part was right


def test_it_is_refused_once_it_was_revoked(stores: Ports, credential: str) -> None:
    first = asked(revoke_ingest_credential, ADA, stores, credential_id=id_of(credential))
    assert asked(revoke_ingest_credential, ADA, stores, credential_id=id_of(credential)) == first
    with pytest.raises(IngestRefused, match="revoked"):
        identify_ingest(f"Basic {credential}", "logs", stores)


@pytest.mark.promise("ingest-only")
def test_it_is_refused_everywhere_else(stores: Ports, credential: str) -> None:
    with pytest.raises(NoCredential, match="for OpenTelemetry logs only"):
        identify(f"Basic {credential}", stores)
    with pytest.raises(InvalidKey):
        identify(f"Bearer {credential}", stores)


def test_a_key_is_refused_where_logs_are_taken(stores: Ports) -> None:
    key = key_of(stores)
    with pytest.raises(NoCredential, match="keys are not taken here"):
        identify_ingest(f"Bearer {key}", "logs", stores)
    with pytest.raises(IngestRefused):
        identify_ingest(f"Basic {key}", "logs", stores)
    for missing in (None, "", "Basic", "Basic "):
        with pytest.raises(NoCredential):
            identify_ingest(missing, "logs", stores)


def test_a_credential_that_cannot_be_checked_is_told_to_come_again(stores: Ports, credential: str) -> None:
    broken = replace(stores, identity=AnswersNot(stores.identity, "ingest_credential"))
    with pytest.raises(AuthUnavailable):
        identify_ingest(f"Basic {credential}", "logs", broken)


def test_a_workspace_sees_and_ends_its_own_only(stores: Ports, credential: str) -> None:
    assert asked(list_ingest_credentials, ZOE, stores)[1] == {"credentials": []}
    assert asked(revoke_ingest_credential, ZOE, stores, credential_id=id_of(credential))[0] == 404
    assert identify_ingest(f"Basic {credential}", "logs", stores).revoked_us is None


@pytest.mark.parametrize("dataset", ["", "_ctrlb_x", "a/b", "team-*"])
def test_a_credential_is_of_one_dataset_that_can_be(stores: Ports, dataset: str) -> None:
    assert asked(create_ingest_credential, ADA, stores, name="builds", dataset=dataset)[0] == 400


@pytest.mark.promise("leave-to-change-holds-at-the-write")
@pytest.mark.parametrize("lost", [{"active": False}, {"role": "Member"}])
def test_who_lost_the_leave_makes_and_ends_none_at_a_server_that_still_knows_them(
    stores: Ports, clock: HandClock, credential: str, lost: dict[str, Any]
) -> None:
    cached = replace(stores, identity=CachedIdentity(stores.identity, clock))
    for run, fields in (
        (create_ingest_credential, {"name": "more", "dataset": "logs"}),
        (revoke_ingest_credential, {"credential_id": id_of(credential)}),
    ):
        add_member(stores, "ada", "Admin")
        clock.move_s(MAX_AGE_S)
        assert cached.identity.member("acme", "ada") is not None
        add_member(stores, "ada", **{"role": "Admin", **lost})
        status, refused = asked(run, ADA, cached, **fields)
        assert (status, refused) == (403, {"error": "your role does not allow this any more: it needs relay.manage"})
    [kept] = stores.identity.ingest_credentials("acme")
    assert kept.revoked_us is None
