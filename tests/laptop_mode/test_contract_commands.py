"""The commands of the contract's document, as they are written, on a server that nobody has used before."""

from pathlib import Path

import pytest

from tests.contract_commands import ContractCommands
from tests.laptop_mode.conftest import running


@pytest.mark.promise("commands-run-as-written")
def test_each_command_of_the_document_answers_what_it_says(tmp_path: Path) -> None:
    with running(tmp_path) as laptop:
        curl = ContractCommands(laptop.url, laptop.key)
        assert curl.run("upload") == (202, {"accepted": 1})
        assert curl.run("search") == (
            200,
            {
                "total": 1,
                "offset": 0,
                "capped_at": None,
                "hits": [
                    {
                        "session_id": "sess-1",
                        "parent_session": "",
                        "seq": 1,
                        "role": "assistant",
                        "block_type": "tool_use",
                        "tool_name": "Edit",
                        "is_error": False,
                        "snippet": "file_path\nsrc/app.py",
                    }
                ],
            },
        )
        assert curl.run("post") == (201, {"ok": True})
        status, peers = curl.run("peers")
        assert status == 200
        assert peers["you"] is None
        (note,) = peers["events"]
        shown = (note["agent"], note["kind"], note["resource"], note["key"], note["text"])
        assert shown == ("agent-a", "NOTE", "", "", "Taking the parser tests in src/parser")
        status, held = curl.run("claim")
        assert (status, held["held"], held["key"]) == (200, True, "path:src/app.py")
        assert curl.run("release") == (
            200,
            {"released": 1, "finished": True, "resource": "src/app.py", "key": "path:src/app.py"},
        )
        assert curl.run("check") == (200, {"mode": "advisory", "allowed": True, "conflicts": []})
        assert curl.run("claim") == (
            200,
            {
                "held": False,
                "resource": "src/app.py",
                "key": "path:src/app.py",
                "finished_by": "agent-a",
                "message": "src/app.py was already finished by agent-a; pick something else",
            },
        )
