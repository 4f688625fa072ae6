"""A process beside others on one relay store: it races for numbers, or writes until it is killed.

    python relay_process.py race <adapter> <folder> <name> <keys>
    python relay_process.py write <adapter> <folder> <threads>

`race` says "ready", waits for a line, appends row 0 of every key and prints those that it got. `write` prints
each number once its append has returned.
"""

import itertools
import sys
import threading
from pathlib import Path

from ctrlb.ports import NumberTaken, RelayStore
from tests import server_limits
from tests.contract.relay_adapters import RELAY_ADAPTERS
from tests.contract.relay_rows import RUN, hold


def race(store: RelayStore, name: str, keys: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    for index in range(keys):
        try:
            store.append(RUN, hold(f"path:{index}", 0, agent=name))
        except NumberTaken:
            continue
        print(index)


def write(store: RelayStore, threads: int) -> None:
    def append_forever(thread: int) -> None:
        for number in itertools.count():
            store.append(RUN, hold(f"path:{thread}", number))
            sys.stdout.write(f"{thread} {number}\n")
            sys.stdout.flush()

    writers = [threading.Thread(target=append_forever, args=(thread,)) for thread in range(threads)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def main(what: str, adapter: str, folder: str, *rest: str) -> None:
    with RELAY_ADAPTERS[adapter](Path(folder)) as store:
        if what == "race":
            race(store, rest[0], int(rest[1]))
        else:
            write(store, int(rest[0]))


if __name__ == "__main__":
    server_limits.extend()
    main(*sys.argv[1:])
