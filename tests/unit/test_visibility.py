"""Who sees and writes what: the contract's rules on rows, sessions, runs and datasets, sentence by sentence."""

from collections.abc import Callable
from typing import Any

import pytest

from ctrlb.claims import check, claim, release
from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.rows import Grant, Settings
from ctrlb.models import Answer
from ctrlb.notes import peers, post
from ctrlb.ports import Ports
from ctrlb.runs import get_run, list_runs
from ctrlb.sessions import fetch_records, find_command, next_actions, search_sessions, upload_records
from tests.conftest import caller_named
from tests.doors import Json, asked

ANN, BOB, ADMIN = caller_named("ann"), caller_named("bob"), caller_named("ada", "Admin")
SEEN_BY = [(ANN, 1), (BOB, 0), (ADMIN, 1)]
EVERYTHING: Json = {"seq_from": 0, "seq_to": 9}
READS: list[tuple[Callable[..., Answer], Json]] = [
    (search_sessions, {"term": "needle"}),
    (find_command, {"command": "needle"}),
    (next_actions, {"session_id": "s", "seq": 0}),
    (fetch_records, {"session_id": "s", **EVERYTHING}),
    (peers, {"run_id": "r"}),
    (list_runs, {}),
    (get_run, {"run_id": "r"}),
]
WRITES: list[tuple[Callable[..., Answer], Json]] = [
    (upload_records, {"records": [{"session_id": "s", "seq": 0}]}),
    (post, {"run_id": "r", "agent": "a", "text": "t"}),
    (claim, {"run_id": "r", "agent": "a", "resource": "x"}),
    (release, {"run_id": "r", "agent": "a", "resource": "x"}),
    (check, {"run_id": "r", "agent": "a", "paths": ["x"]}),
]


def row(session_id: str = "s", seq: int = 0, **columns: Any) -> Json:
    call = {"block_type": "tool_use", "command": "find needle", "run_id": "r", "agent": "a"}
    return {"session_id": session_id, "seq": seq, **call, **columns}


def upload(caller: Caller, stores: Ports, *rows: Json, dataset: str = "") -> tuple[int, Json]:
    return asked(upload_records, caller, stores, dataset=dataset, records=list(rows))


@pytest.mark.promise("http-own-rows")
@pytest.mark.parametrize(("caller", "seen"), SEEN_BY)
def test_rows_are_seen_by_their_writer_and_by_who_may_read_all(caller: Caller, seen: int, stores: Ports) -> None:
    assert upload(ANN, stores, row())[0] == 202
    assert asked(search_sessions, caller, stores, term="needle")[1]["total"] == seen
    assert asked(find_command, caller, stores, command="needle")[1]["total"] == seen
    assert len(asked(list_runs, caller, stores)[1]["runs"]) == seen
    for run, fields in ((fetch_records, EVERYTHING), (next_actions, {"seq": 0})):
        assert asked(run, caller, stores, session_id="s", **fields)[0] == (200 if seen else 404)
    assert asked(get_run, caller, stores, run_id="r")[0] == (200 if seen else 404)


@pytest.mark.promise("error-404")
@pytest.mark.parametrize(
    ("run", "name", "fields"),
    [(fetch_records, "session_id", EVERYTHING), (next_actions, "session_id", {"seq": 0}), (get_run, "run_id", {})],
)
def test_what_is_anothers_is_as_if_it_did_not_exist(
    run: Callable[..., Answer], name: str, fields: Json, stores: Ports
) -> None:
    upload(ANN, stores, row("hidden", run_id="hidden"))
    hidden = asked(run, BOB, stores, **{name: "hidden"}, **fields)
    unknown = asked(run, BOB, stores, **{name: "unknown"}, **fields)
    assert hidden[0] == unknown[0] == 404
    assert hidden[1]["error"].replace("hidden", "unknown") == unknown[1]["error"]


@pytest.mark.promise("upload-fills-user-name", "error-403")
@pytest.mark.parametrize("caller", [BOB, ADMIN])
def test_a_row_that_names_another_user_refuses_the_upload_whole(caller: Caller, stores: Ports) -> None:
    status, answer = upload(caller, stores, row("mine"), row("mine", 1, user_name="ann"))
    assert (status, answer["error"].partition(":")[0]) == (403, "row 1")
    assert asked(fetch_records, ADMIN, stores, session_id="mine", **EVERYTHING)[0] == 404
    assert upload(caller, stores, row("mine", user_name=caller.user))[0] == 202


@pytest.mark.parametrize("caller", [BOB, ADMIN])
def test_a_session_belongs_to_its_first_writer(caller: Caller, stores: Ports) -> None:
    upload(ANN, stores, row())
    assert upload(caller, stores, row("new"), row("s", 1))[0] == 403
    assert upload(caller, stores, row("s", 0, command="overwritten"))[0] == 403
    assert asked(fetch_records, ADMIN, stores, session_id="new", **EVERYTHING)[0] == 404  # nothing was written
    (kept,) = asked(fetch_records, ANN, stores, session_id="s", **EVERYTHING)[1]["rows"]
    assert kept["command"] == "find needle"


@pytest.mark.promise("writes-to-sessions-dataset-only")
@pytest.mark.parametrize(("run", "fields"), WRITES, ids=lambda each: getattr(each, "__name__", ""))
def test_writes_go_to_the_workspaces_dataset_even_with_a_grant(
    run: Callable[..., Answer], fields: Json, stores: Ports
) -> None:
    granted = Caller("acme", "ann", ROLES["Admin"], Settings(), grants=(Grant("*", "write"),))
    status, answer = asked(run, granted, stores, dataset="other", **fields)
    assert (status, answer["error"].startswith("dataset: writes go to agent_sessions")) == (400, True)


@pytest.mark.promise("reads-may-name-a-dataset", "error-403")
@pytest.mark.parametrize(("run", "fields"), READS, ids=lambda each: getattr(each, "__name__", ""))
def test_another_dataset_is_read_by_grant_only(run: Callable[..., Answer], fields: Json, stores: Ports) -> None:
    granted = Caller("acme", "ann", ROLES["Reader"], Settings(), grants=(Grant("oth*", "read"),))
    elsewhere = Caller("acme", "ann", ROLES["Reader"], Settings(), grants=(Grant("otherwise", "write"),))
    upload(caller_named("ann", settings=Settings(sessions_dataset="other")), stores, row())
    assert asked(run, granted, stores, dataset="other", **fields)[0] == 200
    assert asked(run, ADMIN, stores, dataset="other", **fields)[0] == 200
    for caller in (ANN, elsewhere):
        assert asked(run, caller, stores, dataset="other", **fields)[0] == 403


def test_a_grant_shows_own_rows_only(stores: Ports) -> None:
    upload(caller_named("ann", settings=Settings(sessions_dataset="other")), stores, row())
    bob = Caller("acme", "bob", ROLES["Member"], Settings(), grants=(Grant("other", "write"),))
    assert asked(search_sessions, bob, stores, dataset="other", term="needle")[1]["total"] == 0
    assert asked(fetch_records, bob, stores, dataset="other", session_id="s", **EVERYTHING)[0] == 404
    assert asked(get_run, bob, stores, dataset="other", run_id="r")[0] == 404


@pytest.mark.parametrize("other", [("beta", "agent_sessions"), ("acme", "other")])
def test_one_session_id_in_two_workspaces_or_datasets_is_two_sessions(other: tuple[str, str], stores: Ports) -> None:
    workspace, dataset = other
    bob = Caller(workspace, "bob", ROLES["Admin"], Settings(sessions_dataset=dataset))
    assert upload(ANN, stores, row(command="anns needle"))[0] == 202
    assert upload(bob, stores, row(command="bobs needle"))[0] == 202
    for caller, command in ((ANN, "anns needle"), (bob, "bobs needle")):
        (kept,) = asked(fetch_records, caller, stores, session_id="s", **EVERYTHING)[1]["rows"]
        assert kept["command"] == command
        assert asked(search_sessions, caller, stores, term="needle")[1]["total"] == 1
