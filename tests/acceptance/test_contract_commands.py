"""The commands of the contract's document, in a run and session of their own."""

import httpx2
import pytest

from tests.acceptance.calls import claim, eventually
from tests.acceptance.conftest import Deployment
from tests.contract_commands import ContractCommands


@pytest.mark.promise("commands-run-as-written")
def test_the_commands_of_the_document_answer_what_it_says(
    deployment: Deployment, http: httpx2.Client, run_id: str, session_id: str
) -> None:
    curl = ContractCommands(deployment.url, deployment.key, demo_run_1=run_id, sess_1=session_id)
    assert curl.run("upload") == (202, {"accepted": 1})

    def look() -> None:
        status, found = curl.run("search")
        assert status == 200
        assert found["total"] >= 1
        assert all("app.py" in hit["snippet"] for hit in found["hits"])

    eventually(look)
    assert curl.run("post") == (201, {"ok": True})
    status, peers = curl.run("peers")
    assert (status, [event["text"] for event in peers["events"]]) == (200, ["Taking the parser tests in src/parser"])
    status, held = curl.run("claim")
    lease_until = held.pop("lease_until")
    assert (status, held) == (200, {"held": True, "resource": "src/app.py", "key": "path:src/app.py"})
    conflict = {
        "path": "src/app.py",
        "key": "path:src/app.py",
        "held_by": "agent-a",
        "lease_until": lease_until,
    }
    assert curl.run("check") == (200, {"mode": "advisory", "allowed": True, "conflicts": [conflict]})
    assert curl.run("release") == (
        200,
        {"released": 1, "finished": True, "resource": "src/app.py", "key": "path:src/app.py"},
    )
    assert curl.run("check") == (200, {"mode": "advisory", "allowed": True, "conflicts": []})
    assert claim(http, run_id, "agent-b")["finished_by"] == "agent-a"
