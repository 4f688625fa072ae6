"""What waits to be sent: kept in order, for its server, within a bound, and read back whole or not at all."""

import gzip
import json
import os
import time
from pathlib import Path

import pytest

from ctrlb_agent import state
from ctrlb_agent.settings import Settings
from ctrlb_agent.uploading import spool
from tests.agent.programs import logged

HERE = Settings("http://here.example", "key", "agent_sessions")
ELSEWHERE = HERE._replace(url="http://elsewhere.example")
OTHER_DATASET = HERE._replace(dataset="other")


def kept_bodies(settings: Settings = HERE) -> list[bytes]:
    return [spool.read(file).body for file in spool.waiting(settings)]


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*.batch"))


@pytest.mark.usefixtures("agent_home")
def test_what_waits_is_read_back_in_the_order_in_which_it_came() -> None:
    wanted = [json.dumps([{"seq": number, "body": "ä" * number}]).encode() for number in range(12)]
    for body in wanted:
        assert spool.put(HERE, body, 1)
    assert kept_bodies() == wanted
    assert [spool.read(file).rows for file in spool.waiting(HERE)] == [1] * 12


def test_an_entry_can_be_read_by_its_user_only(agent_home: Path) -> None:
    spool.put(HERE, b"[]", 0)
    [file] = spool.waiting(HERE)
    assert Path(file).stat().st_mode & 0o777 == 0o600
    assert (agent_home / "spool").stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("agent_home")
def test_each_server_and_dataset_has_its_own() -> None:
    for settings in (HERE, ELSEWHERE, OTHER_DATASET, HERE):
        spool.put(settings, settings.url.encode(), 1)
    assert len(spool.waiting(HERE)) == 2
    assert kept_bodies(ELSEWHERE) == [ELSEWHERE.url.encode()]
    assert len(spool.waiting(OTHER_DATASET)) == 1
    assert spool.waiting(HERE._replace(key="another key")) == spool.waiting(HERE)


def test_the_spool_takes_nothing_beyond_its_bound(agent_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_BYTES", 4_000)
    body = os.urandom(1_000)
    taken = [spool.put(HERE, body, 1) for _ in range(6)]
    assert taken == [True] * 3 + [False] * 3
    assert sum(file.stat().st_size for file in (agent_home / "spool").glob("*.batch")) <= 4_000
    Path(spool.waiting(HERE)[0]).unlink()
    assert spool.put(HERE, body, 1)


@pytest.mark.usefixtures("agent_home")
def test_a_number_is_not_given_twice_while_entries_wait() -> None:
    for body in (b"1", b"2", b"3"):
        spool.put(HERE, body, 1)
    Path(spool.waiting(HERE)[0]).unlink()
    spool.put(HERE, b"4", 1)
    assert kept_bodies() == [b"2", b"3", b"4"]


def whole(about: bytes = b'{"url": "http://here.example", "dataset": "agent_sessions", "rows": 1}') -> bytes:
    return about + b"\n" + gzip.compress(b"[]")


@pytest.mark.parametrize(
    "content",
    [
        whole()[:-5],
        whole().replace(b"\x1f\x8b", b"\x00\x00"),
        whole()[: whole().index(b"\n") + 1],
        whole().partition(b"\n")[0] + b"\n" + gzip.compress(b"x" * ((8 << 20) + 1)),
    ],
)
@pytest.mark.usefixtures("agent_home")
def test_an_entry_that_is_not_whole_is_said_to_be_broken(content: bytes) -> None:
    file = state.path("spool", "000000000001.batch")
    state.write_bytes(file, content)
    assert spool.waiting(HERE) == [file]
    with pytest.raises(spool.Broken):
        spool.read(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"{", b"[]\n", b"\xff\n", b"x" * 100_000])
def test_an_entry_whose_server_cannot_be_told_is_set_aside(agent_home: Path, content: bytes) -> None:
    state.write_bytes(state.path("spool", "000000000001.batch"), content)
    spool.put(HERE, b"[]", 1)
    assert [Path(file).name for file in spool.waiting(HERE)] == ["000000000002.batch"]
    assert names(agent_home / "spool" / "broken") == ["000000000001.batch"]
    assert "000000000001.batch aside" in logged(agent_home)


def test_only_the_last_few_broken_entries_are_kept(agent_home: Path) -> None:
    for number in range(1, spool.MAX_SET_ASIDE + 4):
        file = state.path("spool", f"{number:012}.batch")
        state.write_bytes(file, b"x")
        spool.set_aside(file, "test")
    kept = names(agent_home / "spool" / "broken")
    assert len(kept) == spool.MAX_SET_ASIDE
    assert kept[-1] == f"{spool.MAX_SET_ASIDE + 3:012}.batch"


@pytest.mark.usefixtures("agent_home")
def test_what_waited_90_days_for_a_server_that_is_no_longer_set_up_goes() -> None:
    for settings in (HERE, ELSEWHERE, ELSEWHERE):
        spool.put(settings, b"[]", 1)
    old = time.time() - spool.KEPT_FOR_OTHERS_S - 60
    for file in (spool.waiting(HERE)[0], spool.waiting(ELSEWHERE)[0]):
        os.utime(file, (old, old))
    assert len(spool.waiting(HERE)) == 1
    assert len(spool.waiting(ELSEWHERE)) == 1


def test_half_written_files_are_no_entries(agent_home: Path) -> None:
    state.write_bytes(state.path("spool", "000000000001.batch.x.new"), b"x")
    assert spool.waiting(HERE) == []
    assert spool.put(HERE, b"[]", 1)
