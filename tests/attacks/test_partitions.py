"""Ids crafted to reach into another's rows: none does, on DynamoDB's keys or in SQLite."""

import itertools
import unicodedata
from dataclasses import replace

import pytest

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.claims import claim
from ctrlb.domain.access import Caller
from ctrlb.domain.errors import NotFound
from ctrlb.domain.ids import id_fault
from ctrlb.domain.rows import Dataset, Run
from ctrlb.models import ClaimRequest, FetchRecordsRequest, GetRunRequest, PeersRequest, UploadRecordsRequest
from ctrlb.notes import peers
from ctrlb.ports import Ports
from ctrlb.runs import get_run
from ctrlb.sessions import fetch_records, upload_records
from tests.conftest import caller_named

CRAFTED = [
    "a",
    "A",
    "a#b",
    "a#",
    "#a",
    "a%23b",
    "a%",
    "a_",
    "a*",
    "a,1:b",
    "1:a",
    "4:acme",
    "claim#a",
    "event#a",
    "head",
    "a' OR '1'='1",
    'a"; DROP TABLE claims; --',
    "a b",
    "a  b",
    "a\u2044b",
    "a\u2215b",
    "\u0430",
    "\uff41",
    "\u00e9",
    "e\u0301",
    "\u212b",
    "\u00c5",
    "A\u030a",
    "\u2126",
    "\u03a9",
    "\ufb01",
    "fi",
    "\U0001d41a",
    "..",
    ".",
]
IDS = [each for each in dict.fromkeys(CRAFTED) if id_fault(each) is None]
PAIRS = list(itertools.permutations(IDS, 2))


def test_the_crafted_ids_are_ones_that_a_caller_may_send() -> None:
    assert len(IDS) == len(set(CRAFTED))
    assert unicodedata.normalize("NFC", "e\u0301") == "\u00e9"
    assert {"e\u0301", "\u00e9", "a#b", "a%"} <= set(IDS)


@pytest.mark.parametrize("refused", ["a/b", "a\\b", "a\x00b", "a\nb", "a\u200bb", "a\u202eb", "", "a" * 201, "\ufeffa"])
def test_ids_that_nobody_can_see_or_that_are_paths_are_refused(refused: str) -> None:
    assert id_fault(refused) is not None


def test_no_two_ids_share_a_partition_and_none_begins_anothers() -> None:
    """DynamoDB compares partition keys whole, and sort keys by their beginnings."""
    dataset = Dataset("acme", "agent_sessions")
    for one, other in PAIRS:
        assert places.run_pk(Run(dataset, one)) != places.run_pk(Run(dataset, other))
        assert places.session_pk(dataset, one) != places.session_pk(dataset, other)
        assert places.member_sk(one) != places.member_sk(other)
        assert not places.key_sk(other).startswith(places.key_sk(one) + "#")
        assert not places.claim_sk(other, 0).startswith(places.claim_prefix(one))
        assert places.body_key(dataset, one, 1, 0) != places.body_key(dataset, other, 1, 0)


def test_parts_of_an_address_cannot_be_moved_from_one_to_the_next() -> None:
    triples = {
        (workspace, dataset, run): places.run_pk(Run(Dataset(workspace, dataset), run))
        for workspace, dataset, run in itertools.product(IDS[:14], repeat=3)
    }
    assert len(set(triples.values())) == len(triples)


def test_kinds_of_rows_are_told_apart_whatever_their_ids() -> None:
    dataset = Dataset("acme", "agent_sessions")
    for each in IDS:
        starts = [places.run_pk(Run(dataset, each)), places.session_pk(dataset, each), places.workspace_pk(each)]
        assert [start.partition("#")[0] for start in starts] == ["run", "session", "workspace"]
        assert places.sign_in_pk(each).startswith("sign-in#")


def _named(workspace: str, user: str) -> Caller:
    return replace(caller_named(user), workspace=workspace)


def test_a_run_shows_its_own_claims_alone(stores: Ports) -> None:
    for each in IDS:
        claim(ClaimRequest(run_id=each, agent=each, resource="src/app.py"), caller_named("ann"), stores)
    for each in IDS:
        events = peers(PeersRequest(run_id=each, limit=500), caller_named("ann"), stores).events
        assert [(event.agent, event.kind) for event in events] == [(each, "HOLD")]


def test_no_id_reaches_the_rows_of_another_workspace_or_person(stores: Ports) -> None:
    ann, eve, elsewhere = _named("acme", "ann"), _named("acme", "eve"), _named("acme2", "ann")
    for each in IDS:
        upload = {"records": [{"session_id": each, "seq": 1, "run_id": each, "agent": "a", "body": f"of {each}"}]}
        upload_records(UploadRecordsRequest.model_validate({"dataset": "agent_sessions", **upload}), ann, stores)
    for each in IDS:
        asked = FetchRecordsRequest(session_id=each, seq_from=0, seq_to=9)
        (row,) = fetch_records(asked, ann, stores).rows
        assert row.body == f"of {each}"
        for stranger in (eve, elsewhere):
            with pytest.raises(NotFound):
                fetch_records(asked, stranger, stores)
            with pytest.raises(NotFound):
                get_run(GetRunRequest(dataset="agent_sessions", run_id=each), stranger, stores)


def test_people_whose_names_look_alike_hold_apart(stores: Ports) -> None:
    for one, other in (("ann", "\u0430nn"), ("ann", "Ann"), ("ren\u00e9", "rene\u0301"), ("ann", "ann ")):
        run_id = f"{one} {other}"
        asked = ClaimRequest(run_id=run_id, agent="a", resource="src/app.py")
        assert claim(asked, caller_named(one), stores).held
        assert not claim(asked, caller_named(other), stores).held
