"""No answer holds what is not its caller's to see, whatever three users of two workspaces do, in whatever order.

All ids are the same in both workspaces, or crafted to run into one another; each text and agent says who wrote it.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlb.audit import list_audit_events
from ctrlb.claims import check, claim, release
from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.rows import Permission, Settings
from ctrlb.keys import create_key, list_keys
from ctrlb.notes import peers, post
from ctrlb.ports import Ports
from ctrlb.runs import get_run, list_runs
from ctrlb.sessions import fetch_records, find_command, next_actions, search_sessions, upload_records
from ctrlb.wiring import embedded
from tests.doors import Json, asked

ALLOWED: dict[str, frozenset[Permission]] = {**ROLES, "Manager": ROLES["Member"] | {"members.manage"}}
USERS = (("acme", "ann", "Member"), ("acme", "bob", "Manager"), ("beta", "ann", "Admin"))
"""Ann is two people: one name in two workspaces."""
IDS = ("s", "1:s", "s,1:s", "s#0", "acme")
SEQS = range(3)
ALL = {"seq_from": 0, "seq_to": 9}

Step: TypeAlias = tuple[str, int, str, int]
"""What is done, by which user, with which id and seq."""
ACTIONS = (
    "upload",
    "post",
    "claim",
    "release",
    "check",
    "key",
    "audit",
    "search",
    "find",
    "next",
    "fetch",
    "peers",
    "run",
    "runs",
)
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.sampled_from(IDS), st.sampled_from(SEQS)),
    min_size=10,
    max_size=40,
)


def mark(user: int) -> str:
    """The word that stands in all that a user writes."""
    return f"by{user}mark"


@dataclass
class World:
    """Two workspaces as they should be: who wrote what, and so what each user sees."""

    stores: Ports
    callers: list[Caller]
    owners: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of sessions, by workspace and id."""
    rows: dict[tuple[str, str, int], int] = field(default_factory=dict)
    writers: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    """Of runs."""
    notes: dict[tuple[str, str], int] = field(default_factory=dict)
    keys: list[int] = field(default_factory=lambda: [0, 0, 0])

    def sees(self, user: int, owner: int) -> bool:
        """Whether the rows of `owner` are the user's to see."""
        one, other = self.callers[user], self.callers[owner]
        return one.workspace == other.workspace and (user == owner or one.may("relay.read_all"))

    def visible_rows(self, user: int) -> int:
        return sum(self.sees(user, owner) for owner in self.rows.values())

    def wrote(self, user: int, run_id: str) -> None:
        self.writers.setdefault((self.callers[user].workspace, run_id), set()).add(user)

    def do(self, action: str, user: int, name: str, seq: int) -> None:
        """Do one thing, and hold its answer to what the user may see."""
        caller, here = self.callers[user], (self.callers[user].workspace, name)
        # Exclusion that hides the other holder would be none, and who manages people sees what they change.
        shared = {"audit", "peers", "run", "claim", "release", "check"}
        seen = {
            owner
            for owner in range(3)
            if self.sees(user, owner) or (action in shared and self.callers[owner].workspace == caller.workspace)
        }
        status, answer = self._act(action, user, name, seq)
        text = json.dumps(answer)
        assert [owner for owner in set(range(3)) - seen if mark(owner) in text] == [], (action, caller.user, text)
        if action in ("search", "find"):
            assert answer["total"] == self.visible_rows(user)
            assert len(answer["hits" if action == "search" else "occurrences"]) == min(25, answer["total"])
        elif action in ("next", "fetch"):
            is_seen = here in self.owners and self.sees(user, self.owners[here])
            there = (*here, seq) in self.rows if action == "next" else True
            assert status == (200 if is_seen and there else 404)
            if action == "fetch" and is_seen:
                assert len(answer["rows"]) == sum((*here, each) in self.rows for each in SEQS)
        elif action == "peers":
            assert sum(event["kind"] == "NOTE" for event in answer["events"]) == self.notes.get(here, 0)
        elif action == "run":
            assert status == (200 if self._sees_run(user, here) else 404)
        elif action == "runs":
            mine = sorted(run_id for at, run_id in self.writers if self._sees_run(user, (at, run_id)))
            assert sorted(run["run_id"] for run in answer["runs"]) == mine
        elif action == "key":
            assert len(answer["keys"]) == self.keys[user]
        elif action == "audit":
            self._check_audit(user, status, answer)

    def _check_audit(self, user: int, status: int, answer: Json) -> None:
        """Who manages people sees every key that was made in their workspace, and nobody else any."""
        if not self.callers[user].may("members.manage"):
            assert status == 403
            return
        made = [(event["user_name"], event["after"]["name"]) for event in answer["events"]]
        here = [each for each in range(3) if self.callers[each].workspace == self.callers[user].workspace]
        expected = [(self.callers[each].user, mark(each)) for each in here for _ in range(self.keys[each])]
        assert sorted(made) == sorted(expected)

    def _sees_run(self, user: int, run: tuple[str, str]) -> bool:
        return any(self.sees(user, writer) for writer in self.writers.get(run, ()))

    def _act(self, action: str, user: int, name: str, seq: int) -> tuple[int, Json]:
        caller, stores, agent = self.callers[user], self.stores, {"run_id": name, "agent": mark(user)}
        match action:
            case "upload":
                return self._upload(user, name, seq)
            case "post":
                self.wrote(user, name)
                here = (caller.workspace, name)
                self.notes[here] = self.notes.get(here, 0) + 1
                return asked(post, caller, stores, text=mark(user), **agent)
            case "claim":
                self.wrote(user, name)
                return asked(claim, caller, stores, resource=f"file-{seq}", **agent)
            case "release":
                return asked(release, caller, stores, resource=f"file-{seq}", finished=False, **agent)
            case "check":
                status, answer = asked(check, caller, stores, paths=[f"file-{seq}"], **agent)
                if answer["conflicts"]:
                    self.wrote(user, name)
                return status, answer
            case "key":
                self.keys[user] += 1
                asked(create_key, caller, stores, name=mark(user))
                return asked(list_keys, caller, stores)
            case "audit":
                return asked(list_audit_events, caller, stores, limit=100)
            case "search":
                return asked(search_sessions, caller, stores, term="needle", limit=25)
            case "find":
                return asked(find_command, caller, stores, command="needle", limit=25)
            case "next":
                return asked(next_actions, caller, stores, session_id=name, seq=seq)
            case "fetch":
                return asked(fetch_records, caller, stores, session_id=name, **ALL)
            case "peers":
                return asked(peers, caller, stores, run_id=name, limit=500)
            case "run":
                return asked(get_run, caller, stores, run_id=name)
            case _:
                return asked(list_runs, caller, stores, limit=100, status="all")

    def _upload(self, user: int, name: str, seq: int) -> tuple[int, Json]:
        caller = self.callers[user]
        here = (caller.workspace, name)
        command = {"block_type": "tool_use", "command": f"needle {mark(user)}"}
        record = {"session_id": name, "seq": seq, "run_id": name, "agent": mark(user), **command}
        status, answer = asked(upload_records, caller, self.stores, records=[record])
        assert status == (202 if self.owners.get(here, user) == user else 403)
        if status == 202:
            self.owners[here] = self.rows[*here, seq] = user
            self.wrote(user, name)
        return status, answer


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """Stores that keep what all examples wrote; each example has two workspaces of its own."""
    with embedded(tmp_path_factory.mktemp("isolation")) as ports:
        yield ports


_examples = itertools.count()


@pytest.mark.promise("isolation")
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(steps=STEPS)
def test_no_answer_ever_holds_anothers_row_id_or_count(everything: Ports, steps: list[Step]) -> None:
    example = next(_examples)
    callers = [
        Caller(f"{workspace}{example}", user, ALLOWED[role], Settings(wait_ms=1), token_sha256="a person's")
        for workspace, user, role in USERS
    ]
    world = World(everything, callers)
    for step in steps:
        world.do(*step)
    for user, action in itertools.product(range(3), ACTIONS):  # and in the end everybody looks everywhere
        if action in ("audit", "search", "find", "fetch", "peers", "run", "runs"):
            world.do(action, user, IDS[0], 0)
