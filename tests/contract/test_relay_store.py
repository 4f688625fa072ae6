"""The port RelayStore, on every adapter: one order for each record, and nothing lost that was answered."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ctrlb.domain.rows import Dataset, Event, Holder, Run
from ctrlb.ports import PREVIEW_CHARS, NumberTaken, RelayStore
from tests.contract.relay_adapters import Opening
from tests.contract.relay_rows import DATASET, LEASE_US, NOW_US, RUN, ending, hold, note

APP = "path:src/app.py"
RIVALS = 16
KEYS = 200
PROCESSES = 4
ACKNOWLEDGED = 400
"""How many appends a process is let make before it is killed."""
ROOT = Path(__file__).parents[2]


def test_a_record_that_has_no_row_has_no_last_one(relay: RelayStore) -> None:
    assert relay.last(RUN, APP) is None
    assert relay.newest(RUN, 10) == []


def test_the_last_row_comes_back_as_it_was_appended(relay: RelayStore) -> None:
    rows = [hold(APP, 0), ending("RELEASE", APP, 1), hold(APP, 2, agent="b", user="bob"), ending("DONE", APP, 3)]
    for row in rows:
        relay.append(RUN, row)
        assert relay.last(RUN, APP) == row


def test_a_number_is_given_once_and_the_loser_writes_nothing(relay: RelayStore) -> None:
    relay.append(RUN, hold(APP, 0, agent="first"))
    with pytest.raises(NumberTaken):
        relay.append(RUN, hold(APP, 0, agent="second"))
    assert relay.last(RUN, APP) == hold(APP, 0, agent="first")
    assert len(relay.newest(RUN, 10)) == 1


def test_the_last_row_is_that_of_the_greatest_number_whatever_the_clocks_said(relay: RelayStore) -> None:
    for number in range(12):
        relay.append(RUN, hold(APP, number, ts_us=NOW_US - number))
    assert relay.last(RUN, APP) == hold(APP, 11, ts_us=NOW_US - 11)


def test_records_of_other_keys_runs_datasets_and_workspaces_are_other_records(relay: RelayStore) -> None:
    scopes = [RUN, Run(DATASET, "night"), Run(DATASET, "nightly2"), Run(Dataset("acme", "other"), "nightly")]
    scopes += [Run(Dataset("acme2", "agent_sessions"), "nightly"), Run(Dataset("acme", "agent_sessions "), "nightly")]
    for index, scope in enumerate(scopes):
        relay.append(scope, hold(APP, 0, agent=str(index)))
        relay.add_events(scope, note(str(index), agent=str(index)))
    for index, scope in enumerate(scopes):
        last = relay.last(scope, APP)
        assert last is not None
        assert last.holder.agent == str(index)
        assert {event.holder.agent for event in relay.newest(scope, 10)} == {str(index)}
    assert relay.last(RUN, "path:src/app.p") is None
    assert relay.last(RUN, "path:SRC/app.py") is None


def test_the_last_of_each_key_comes_in_the_order_of_the_keys(relay: RelayStore) -> None:
    keys = [f"path:{index}" for index in range(64)]
    for key in keys[::2]:
        relay.append(RUN, hold(key, 0))
    expected = [hold(key, 0) if index % 2 == 0 else None for index, key in enumerate(keys)]
    assert relay.last_of_each(RUN, keys) == expected
    assert relay.last_of_each(RUN, [keys[1], keys[0], keys[0]]) == [None, expected[0], expected[0]]
    assert relay.last_of_each(RUN, []) == []


def test_events_and_claim_rows_are_listed_newest_first(relay: RelayStore) -> None:
    relay.add_events(RUN, note("third", ts_us=30))
    relay.append(RUN, replace(hold(APP, 0, ts_us=10), resource="./src/app.py"))
    refused = Event("REFUSED", Holder("bob", "b"), 20, "src/app.py", APP, "")
    relay.add_events(RUN, refused)
    assert relay.newest(RUN, 10) == [
        note("third", ts_us=30),
        refused,
        Event("HOLD", Holder("ann", "a"), 10, "./src/app.py", APP, lease_until_us=10 + LEASE_US),
    ]
    assert relay.newest(RUN, 2) == [note("third", ts_us=30), refused]


def test_what_happened_at_one_moment_is_listed_in_the_order_of_arrival(relay: RelayStore) -> None:
    relay.add_events(RUN, note("1"))
    relay.append(RUN, hold("path:b", 0))
    relay.add_events(RUN, note("2"))
    relay.append(RUN, hold("path:a", 0))
    assert [event.text or event.key for event in relay.newest(RUN, 10)] == ["path:a", "2", "path:b", "1"]


def test_many_events_are_written_at_once(relay: RelayStore) -> None:
    events = [note(str(number), ts_us=NOW_US + number) for number in range(40)]
    relay.add_events(RUN, *events)
    assert relay.newest(RUN, 100) == events[::-1]


def test_two_equal_events_are_two_rows(relay: RelayStore) -> None:
    relay.add_events(RUN, note("again"))
    relay.add_events(RUN, note("again"))
    assert relay.newest(RUN, 10) == [note("again")] * 2


@pytest.mark.parametrize("text", ["", "a\x00b", "日本語 \U0001f600", "'; DROP TABLE rows; --", "x" * 4_101])
def test_any_text_comes_back_as_it_was(relay: RelayStore, text: str) -> None:
    row = replace(hold(f"path:{text}", 0), resource=text, holder=Holder(text, text), request_id=text)
    relay.append(Run(DATASET, text or "run"), row)
    relay.add_events(Run(DATASET, text or "run"), note(text))
    assert relay.last(Run(DATASET, text or "run"), row.key) == row
    (newest,) = relay.newest(Run(DATASET, text or "run"), 1)
    assert newest in (note(text), note(text[:PREVIEW_CHARS]))


@pytest.mark.races
def test_of_sixteen_threads_that_append_one_number_exactly_one_gets_it(relay: RelayStore) -> None:
    start = threading.Barrier(RIVALS)
    won: list[list[str]] = [[] for _ in range(KEYS)]
    failures: list[Exception] = []

    def rival(name: str) -> None:
        try:
            for index in range(KEYS):
                start.wait(timeout=60)
                try:
                    relay.append(RUN, hold(f"path:{index}", 0, agent=name))
                except NumberTaken:
                    # Whoever lost reads the winner's row at once: it was refused because that row is there.
                    assert relay.last(RUN, f"path:{index}") is not None
                    continue
                won[index].append(name)
        except Exception as error:
            failures.append(error)
            start.abort()

    threads = [threading.Thread(target=rival, args=(f"agent-{number}",)) for number in range(RIVALS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [len(winners) for winners in won] == [1] * KEYS
    for index, winners in enumerate(won):
        assert relay.last(RUN, f"path:{index}") == hold(f"path:{index}", 0, agent=winners[0])
    assert len(relay.newest(RUN, 2 * KEYS)) == KEYS


@pytest.mark.races
def test_of_several_processes_that_append_one_number_exactly_one_gets_it(
    relay_adapter: str, open_relay: Opening, tmp_path: Path
) -> None:
    """They open the store at the same moment too, when it does not exist yet."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(relay_process("race", relay_adapter, str(tmp_path), f"process-{number}", str(KEYS)))
            for number in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=60)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * PROCESSES
    winners = {int(line): f"process-{number}" for number, answer in enumerate(answers) for line in answer.split()}
    assert sum(len(answer.split()) for answer in answers) == KEYS == len(winners)
    with open_relay(tmp_path) as relay:
        assert [relay.last(RUN, f"path:{index}") for index in range(KEYS)] == [
            hold(f"path:{index}", 0, agent=winners[index]) for index in range(KEYS)
        ]


@pytest.mark.races
def test_a_killed_process_loses_nothing_that_it_was_answered(
    relay_adapter: str, open_relay: Opening, tmp_path: Path
) -> None:
    with relay_process("write", relay_adapter, str(tmp_path), "4") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(ACKNOWLEDGED)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    acknowledged: dict[str, list[int]] = {}
    for line in lines:
        if line.endswith("\n"):  # the kill may have cut the last one
            thread, number = line.split()
            acknowledged.setdefault(thread, []).append(int(number))
    with open_relay(tmp_path) as relay:
        kept = [event.key for event in relay.newest(RUN, 1_000_000)]
        for thread, numbers in acknowledged.items():
            last = relay.last(RUN, f"path:{thread}")
            assert last is not None
            assert last.number >= numbers[-1] == len(numbers) - 1
            assert kept.count(f"path:{thread}") == last.number + 1
        relay.append(RUN, hold("path:after", 0))
        assert relay.last(RUN, "path:after") == hold("path:after", 0)


@contextmanager
def relay_process(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process at work on the store; killed if the test ends before it does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.contract.relay_process", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["shared", "."])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
