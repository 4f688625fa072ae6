"""Which run a session is in and what its agent is called, over any history of sessions in two checkouts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from ctrlb_agent.sessions.membership import (
    BY_CHECKOUT,
    SEEN_S,
    Asked,
    Session,
    ended,
    is_live,
    is_settled,
    joined,
    placed,
)

ROOTS = ("/work/app", "/work/library")
MIDNIGHT_S = 1_796_083_200.0
EXPLICIT_RUNS = st.sampled_from(["nightly-1", "nightly-2"])


@dataclass(frozen=True)
class Client:
    """A client that runs: what is true of it, whatever is on file."""

    session_id: str
    root: str
    pid: int
    variable: str = ""
    says_pid: bool = True


@dataclass
class Machine:
    """A clock that is set by hand, a table of processes, and what is on file."""

    now_s: float = MIDNIGHT_S - 600.0
    running: dict[int, str] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    starts: Iterator[int] = field(default_factory=count)

    def new_process(self, but: int = 0) -> int:
        """A process whose id may have been another's, `but` not this one."""
        pid = next(number for number in count(2) if number not in self.running and number != but)
        self.running[pid] = f"{pid} at {next(self.starts)}"
        return pid

    def is_running(self, pid: int, started: str) -> bool:
        return self.running.get(pid) == started

    def hook(self, client: Client, event: str, source: str = "") -> Session:
        """What `identity_of` does, without files."""
        asked = self.asked(client, event, source)
        known = self.sessions.get(client.session_id)
        if known and is_settled(known, asked):
            self.sessions[client.session_id] = known._replace(seen_s=self.now_s)
        else:
            for changed in placed(self.sessions, asked, self.now_s, self.is_running):
                self.sessions[changed.session_id] = changed
        return self.sessions[client.session_id]

    def end(self, client: Client, reason: str) -> None:
        session = self.sessions[client.session_id]
        asked = self.asked(client, "SessionEnd")
        self.sessions[client.session_id] = ended(session, asked, reason, self.now_s, self.is_running)

    def join(self, client: Client, run: str) -> Session:
        session = self.hook(client, "UserPromptExpansion")
        new = joined(self.sessions, session, run, self.asked(client, "UserPromptExpansion"))
        self.sessions[client.session_id] = new
        return new

    def asked(self, client: Client, event: str, source: str = "") -> Asked:
        pid = client.pid if client.says_pid else 0
        return Asked(
            session_id=client.session_id,
            client="claude",
            host="laptop",
            root=client.root,
            event=event,
            source=source,
            run=client.variable,
            agent="",
            pid=pid,
            pid_started=self.running.get(pid, ""),
        )


class Histories(RuleBasedStateMachine):
    """Clients start, act, are cleared, end, crash and come back in any order; after each step the promises hold."""

    alive = Bundle("alive")
    over = Bundle("over")

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine()
        self.clients: dict[str, Client] = {}
        self.told: dict[str, tuple[str, str]] = {}
        self.clearing: set[str] = set()
        self.names = count(1)

    def started(self, client: Client, source: str) -> Client:
        session = self.machine.hook(client, "SessionStart", source)
        self.clients[client.session_id] = client
        self.told[client.session_id] = (session.run, session.agent)
        return client

    def stopped(self, client: Client) -> None:
        self.machine.running.pop(client.pid)
        self.clients.pop(client.session_id)
        self.clearing.discard(client.session_id)

    def current(self, client: Client) -> Client | None:
        """The client, unless it has stopped, or has gone on as another session."""
        found = self.clients.get(client.session_id)
        return found if found == client and client.session_id not in self.clearing else None

    @rule(target=alive, root=st.sampled_from(ROOTS), source=st.sampled_from(["startup", "fork"]), says=st.booleans())
    def starts(self, root: str, source: str, says: bool) -> Client:
        pid = self.machine.new_process()
        return self.started(Client(f"session-{next(self.names)}", root, pid, says_pid=says), source)

    @rule(target=alive, root=st.sampled_from(ROOTS), run=EXPLICIT_RUNS)
    def starts_in_a_run_of_its_own(self, root: str, run: str) -> Client:
        pid = self.machine.new_process()
        return self.started(Client(f"session-{next(self.names)}", root, pid, variable=run), "startup")

    @rule(client=alive, event=st.sampled_from(["PreToolUse", "Stop", "SubagentStop", "UserPromptExpansion"]))
    def acts(self, client: Client, event: str) -> None:
        if self.current(client):
            self.machine.hook(client, event)

    @rule(client=alive)
    def is_compacted(self, client: Client) -> None:
        if self.current(client):
            self.machine.hook(client, "SessionStart", "compact")

    @rule(client=alive)
    def begins_to_clear(self, client: Client) -> None:
        if self.current(client) and client.says_pid:
            self.machine.end(client, "clear")
            self.clearing.add(client.session_id)

    @rule(target=alive, client=alive, event=st.sampled_from(["SessionStart", "UserPromptSubmit"]))
    def goes_on_after_clear(self, client: Client, event: str) -> Any:
        if client.session_id not in self.clearing or self.clients.get(client.session_id) != client:
            return multiple()
        return self._goes_on(client, event)

    @rule(target=alive, client=alive)
    def is_cleared_without_a_known_process(self, client: Client) -> Any:
        if not self.current(client) or client.says_pid or client.variable:
            return multiple()
        self.machine.end(client, "clear")
        return self._goes_on(client, "SessionStart")

    def _goes_on(self, client: Client, event: str) -> Client:
        successor = replace(client, session_id=f"session-{next(self.names)}")
        self.clients.pop(client.session_id)
        self.clearing.discard(client.session_id)
        self.clients[successor.session_id] = successor
        self.told[successor.session_id] = self.told[client.session_id]
        self.machine.hook(successor, event, "clear" if event == "SessionStart" else "")
        return successor

    @rule(target=over, client=consumes(alive), crashes=st.booleans())
    def ends(self, client: Client, crashes: bool) -> Any:
        if not self.current(client):
            return multiple()
        if not crashes:
            self.machine.end(client, "other")
        self.stopped(client)
        return client

    @rule(target=alive, client=consumes(over), says_start=st.booleans())
    def comes_back(self, client: Client, says_start: bool) -> Any:
        if client.session_id in self.clients:
            return multiple()
        before = self.machine.sessions[client.session_id]
        shared = self.run_of(client.root)
        back = replace(client, pid=self.machine.new_process(but=client.pid))
        if says_start or not client.says_pid:  # else its start was missed, and the process tells
            self.started(back, "resume")
        else:
            self.machine.hook(back, "PreToolUse")
        self.clients[back.session_id] = back
        after = self.machine.sessions[client.session_id]
        self.told[back.session_id] = (after.run, after.agent)
        if not client.variable and before.run_by == BY_CHECKOUT:
            assert after.run == (shared or before.run)
        if after.run == before.run and before.agent not in {session.agent for session in self.live(but=client)}:
            assert after.agent == before.agent or self._was_crashed_with(before)
        return back

    def run_of(self, root: str) -> str:
        """The run of the checkout's live agents, and of those that may be so for all one knows."""
        others = self.machine.sessions.values()
        live = [one for one in others if is_live(one, self.machine.now_s, self.machine.is_running)]
        return next((one.run for one in live if one.root == root and one.run_by == BY_CHECKOUT), "")

    def _was_crashed_with(self, before: Session) -> bool:
        """Whether a session that never ended has the name, so that it may come back with it."""
        return any(
            (one.run, one.agent) == (before.run, before.agent) and not one.ended_s and one is not before
            for one in self.machine.sessions.values()
        )

    @rule(client=alive, run=EXPLICIT_RUNS)
    def joins_a_run(self, client: Client, run: str) -> None:
        if self.current(client):
            session = self.machine.join(client, run)
            assert session.run == run
            self.told[client.session_id] = (session.run, session.agent)

    @rule(seconds=st.sampled_from([1.0, 50.0, 700.0, SEEN_S - 1.0, 90_000.0]))
    def time_passes(self, seconds: float) -> None:
        self.machine.now_s += seconds
        for client in list(self.clients.values()):
            if not client.says_pid and seconds < SEEN_S:
                self.machine.hook(client, "PreToolUse")
            elif not client.says_pid:
                self.stopped(client)  # nobody can tell an agent that idles unseen from one that is gone

    def live(self, but: Client | None = None) -> Iterable[Session]:
        return [self.machine.sessions[one] for one in self.clients if but is None or one != but.session_id]

    @invariant()
    def no_two_live_agents_of_a_run_have_one_id(self) -> None:
        names = [(session.run, session.agent) for session in self.live()]
        assert len(names) == len(set(names))

    @invariant()
    def the_agents_of_a_checkout_share_a_run(self) -> None:
        for root in ROOTS:
            runs = {one.run for one in self.live() if one.root == root and one.run_by == BY_CHECKOUT}
            assert len(runs) <= 1

    @invariant()
    def whoever_was_told_its_ids_keeps_them(self) -> None:
        for session_id in self.clients:
            session = self.machine.sessions[session_id]
            assert self.told[session_id] == (session.run, session.agent)

    @invariant()
    def checkouts_have_runs_of_their_own(self) -> None:
        runs = {(one.run, one.root) for one in self.machine.sessions.values() if one.run_by == BY_CHECKOUT}
        assert len(runs) == len({run for run, _ in runs})


TestAnyHistory = Histories.TestCase
TestAnyHistory.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
