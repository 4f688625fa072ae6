"""A person signs in with the one-time code of the link that the server prints."""

import contextlib
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ctrlb.__main__ import main
from ctrlb.domain.key_format import secret_hash
from ctrlb.domain.rows import SignIn
from ctrlb.laptop import FIRST_USER, WORKSPACE
from ctrlb.ports import Ports
from ctrlb.sign_in import TOKEN_PREFIX, new_code
from tests.acceptance.calls import answered, refusal
from tests.laptop import PROJECT, Laptop
from tests.laptop_mode.conftest import add_member, client, running


def test_the_code_of_the_link_signs_its_person_in_once(laptop: Laptop, token: str) -> None:
    with client(laptop, token) as person:
        assert answered(person.get("/ai/relay/settings"))["enforce"] == "advisory"
    again = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code})
    refused = refusal(again, 401)
    assert "used or has expired" in refused
    assert "ctrlb sign-in --data <its folder>" in refused


def test_a_link_made_by_the_command_line_signs_in_once(laptop: Laptop) -> None:
    command = [sys.executable, "-m", "ctrlb", "sign-in", "--data", str(laptop.folder)]
    done = subprocess.run(command, cwd=PROJECT / "shared", capture_output=True, text=True, check=True, timeout=60)
    match = re.fullmatch(rf"{re.escape(laptop.url)}/console/#code=(\w+)\n", done.stdout)
    assert match, done.stdout
    assert done.stderr == ""
    answer = answered(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": match[1]}))
    assert set(answer) == {"token", "user_name", "expires"}
    assert answer["user_name"] == FIRST_USER
    refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": match[1]}), 401)


def test_a_link_that_is_made_while_the_server_is_stopped_says_that_it_has_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path) as stopped:
        stopped.stop()
    assert main(["sign-in", "--data", str(tmp_path)]) == 0
    told = capsys.readouterr()
    code = told.out.removeprefix(f"{stopped.url}/console/#code=").strip()
    assert told.err == "ctrlb: the server is not running: start it, and then open the link\n"
    with running(tmp_path) as started:
        answered(httpx2.post(f"{started.url}/ai/sign-in", json={"code": code}))


def test_a_code_that_has_expired_is_refused(laptop: Laptop, stores: Ports) -> None:
    code = stores.random.secret()
    expired = SignIn(secret_hash(code), WORKSPACE, FIRST_USER, stores.clock.now_us() - 1)
    stores.identity.add_sign_in(expired, once=True)
    assert "expired" in refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": code}), 401)


@pytest.mark.parametrize("body", [{}, {"code": ""}, {"code": 5}, {"code": "x" * 201}, {"code": ["a"]}])
def test_what_is_no_code_is_refused_by_its_name(laptop: Laptop, body: object) -> None:
    assert refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json=body), 400).startswith("code")


def test_a_code_that_nobody_made_is_refused(laptop: Laptop) -> None:
    refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": "x" * 43}), 401)


def test_a_code_that_nobody_made_is_refused_while_another_process_writes(laptop: Laptop) -> None:
    """It is looked for before anything is written, so guesses keep nobody's writes waiting."""
    with contextlib.closing(sqlite3.connect(laptop.folder / "relay.db")) as busy:
        busy.execute("BEGIN IMMEDIATE")
        refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": "y" * 43}), 401)


def test_signing_out_ends_the_session_and_no_other(laptop: Laptop, stores: Ports, token: str) -> None:
    code = new_code(WORKSPACE, FIRST_USER, stores)
    second = answered(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": code}))["token"]
    with client(laptop, second) as person:
        assert answered(person.post("/ai/sign-out")) == {"ok": True}
        assert "sign in again" in refusal(person.get("/ai/relay/settings"), 401)
    with client(laptop, token) as person:
        answered(person.get("/ai/relay/settings"))


def test_who_is_not_active_is_not_signed_in_and_their_sessions_do_not_come_back(laptop: Laptop, stores: Ports) -> None:
    add_member(stores, "lea")
    codes = [new_code(WORKSPACE, "lea", stores) for _ in range(3)]
    token = answered(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": codes[0]}))["token"]
    with client(laptop, token) as lea:
        answered(lea.get("/ai/relay/settings"))
        add_member(stores, "lea", active=False)
        refusal(lea.get("/ai/relay/settings"), 401)
        assert "no longer active" in refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": codes[1]}), 401)
        add_member(stores, "lea")
        assert "sign in again" in refusal(lea.get("/ai/relay/settings"), 401)
    token = answered(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": codes[2]}))["token"]
    with client(laptop, token) as lea:
        answered(lea.get("/ai/relay/settings"))


def test_a_session_ends_when_its_time_is_over(laptop: Laptop, stores: Ports) -> None:
    token = TOKEN_PREFIX + stores.random.secret()
    ended = SignIn(secret_hash(token), WORKSPACE, FIRST_USER, stores.clock.now_us() - 1)
    stores.identity.add_sign_in(ended, once=False)
    with client(laptop, token) as person:
        assert "sign in again" in refusal(person.get("/ai/relay/settings"), 401)


def test_a_code_is_no_token_and_a_token_is_no_code(laptop: Laptop, stores: Ports, token: str) -> None:
    code = new_code(WORKSPACE, FIRST_USER, stores)
    with client(laptop, TOKEN_PREFIX + code) as person:
        refusal(person.get("/ai/relay/settings"), 401)
    refusal(httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": token}), 401)
