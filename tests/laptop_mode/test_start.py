"""The server starts in one line and says in one line why it cannot; what it was told outlives it."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ctrlb.__main__ import main
from ctrlb.laptop import FIRST_USER
from ctrlb.ports import MAX_LIVE_KEYS
from ctrlb.wiring import embedded
from tests.acceptance.calls import claim, events, kinds, post, records, row, search, upload
from tests.laptop import PROJECT, Laptop
from tests.laptop_mode.conftest import add_key, client, running


def failing_start(folder: Path, port: int = 0) -> str:
    """What a server that cannot start says, which is one line."""
    command = [sys.executable, "-m", "ctrlb", "serve", "--port", str(port), "--data", str(folder)]
    done = subprocess.run(command, cwd=PROJECT / "shared", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.promise("mcp-add-by-hand")
def test_it_prints_its_address_a_sign_in_link_and_how_to_add_it_to_claude_code(laptop: Laptop) -> None:
    assert f"ready at {laptop.url}\n" in laptop.greeting
    assert f"  {laptop.url}/console/#code={laptop.sign_in_code}\n" in laptop.greeting
    assert f" -m ctrlb sign-in --data {laptop.folder}\n" in laptop.greeting
    command = f'claude mcp add --transport http ctrlb "{laptop.url}/mcp" --header "Authorization: Bearer {laptop.key}"'
    assert f"  {command}\n" in laptop.greeting
    assert str(laptop.folder / "ctrlb.env") in laptop.greeting


def test_its_folder_and_the_file_with_the_key_are_for_the_owner_alone(laptop: Laptop) -> None:
    assert stat.S_IMODE((laptop.folder / "ctrlb.env").stat().st_mode) == 0o600
    assert (laptop.folder / "ctrlb.env").read_text() == f"CTRLB_URL={laptop.url}\nCTRLB_KEY={laptop.key}\n"


def test_a_folder_that_it_makes_is_for_the_owner_alone(tmp_path: Path) -> None:
    with running(tmp_path / "new" / "folder") as laptop:
        assert stat.S_IMODE(laptop.folder.stat().st_mode) == 0o700


def test_what_it_keeps_in_a_folder_that_others_may_read_is_for_the_owner_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with running(tmp_path) as laptop, client(laptop, laptop.key) as http:
        claim(http, "run-1", "agent-a")
    open_to_others = [path.name for path in tmp_path.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert "relay.db" in {path.name for path in tmp_path.iterdir()}
    assert open_to_others == []


def test_a_second_start_on_the_folder_keeps_everything_and_the_key(tmp_path: Path) -> None:
    with running(tmp_path) as first, client(first, first.key) as http:
        upload(http, row("session-1", 0, body="marmalade"))
        post(http, "run-1", "agent-a", "hello")
        held = claim(http, "run-1", "agent-a")
        before = (records(http, "session-1"), kinds(http, "run-1"))
        assert first.stop() == 0
    with running(tmp_path) as second, client(second, first.key) as http:
        assert second.key == first.key
        assert second.sign_in_code != first.sign_in_code
        assert (records(http, "session-1"), kinds(http, "run-1")) == before
        assert search(http, "marmalade")["total"] == 1
        refused = claim(http, "run-1", "agent-b")
        assert refused["held_by"] == "agent-a"
        assert claim(http, "run-1", "agent-a")["lease_until"] > held["lease_until"]


def test_a_start_with_the_key_gone_from_its_file_makes_a_new_one(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        first.stop()
    (tmp_path / "ctrlb.env").unlink()
    with running(tmp_path) as second, client(second, second.key) as http, client(second, first.key) as old:
        assert second.key != first.key
        assert events(http, "run-1") == events(old, "run-1") == []


def test_a_start_without_room_for_a_key_serves_and_says_what_to_do(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        first.stop()
    (tmp_path / "ctrlb.env").unlink()
    with embedded(tmp_path) as stores:
        in_use, *_ = (add_key(stores, FIRST_USER) for _ in range(MAX_LIVE_KEYS - 1))
    with running(tmp_path) as full, client(full, in_use) as http:
        [line] = [line for line in full.greeting.splitlines() if line.startswith("For scripts: ")]
        assert "there is no key, since admin has 100 and may have no more: end one" in line
        assert 'Bearer <your key>"' in full.greeting
        assert (tmp_path / "ctrlb.env").read_text() == f"CTRLB_URL={full.url}\n"
        assert events(http, "run-1") == []
        code = {"code": full.sign_in_code}
        assert httpx2.post(f"{full.url}/ai/sign-in", json=code).status_code == 200
        assert main(["keys", "revoke", in_use.split("_")[2], "--data", str(tmp_path)]) == 0
    with running(tmp_path) as again, client(again, again.key) as http:
        assert again.key not in ("", first.key)
        assert events(http, "run-1") == []


def test_a_busy_port_is_one_line_and_leaves_no_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        told = failing_start(tmp_path / "new", port)
    assert told.startswith(f"ctrlb: port {port} is in use, maybe by another CtrlB; choose another with PORT=")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        assert failing_start(folder).startswith(f"ctrlb: the folder {folder} cannot be written: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "read-only").mkdir(mode=0o500)
    assert "cannot be written: Permission denied" in failing_start(tmp_path / "read-only")


def test_a_second_server_on_the_folder_is_one_line_and_leaves_the_first_alone(laptop: Laptop) -> None:
    text = (laptop.folder / "ctrlb.env").read_text()
    assert failing_start(laptop.folder).startswith(f"ctrlb: another server is running on the folder {laptop.folder};")
    assert (laptop.folder / "ctrlb.env").read_text() == text
    with client(laptop, laptop.key) as http:
        assert kinds(http, "run-of-nobody") == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_kill_stop_it_cleanly(tmp_path: Path, how: signal.Signals) -> None:
    with running(tmp_path) as laptop:
        with client(laptop, laptop.key) as http:
            claim(http, "run-1", "agent-a")
        laptop.process.send_signal(how)
        output, _ = laptop.process.communicate(timeout=60)
        assert output.split("\n") == ["", f"ctrlb: stopped; everything is kept in {tmp_path}", ""]
        assert laptop.process.returncode == 0


def test_neither_a_body_nor_a_key_is_in_the_log(tmp_path: Path) -> None:
    with running(tmp_path) as laptop, client(laptop, laptop.key) as http:
        upload(http, row("session-1", 0, body="marmalade", command="cook marmalade"))
        post(http, "run-1", "agent-a", "marmalade")
        http.post("/ai/relay/agent_sessions/runs/run-1/posts", json={"agent": "marmalade/", "text": "t"})
        search(http, "marmalade")
    log = (tmp_path / "ctrlb.log").read_text()
    assert "upload_records" in log
    assert "marmalade" not in log
    assert laptop.key not in log
    assert laptop.key.split("_")[3] not in log
