"""Which run a session belongs to and what its agent is called: the rules, without clock, files or processes.

Agents of one checkout (a host and a repository's root) share a run for as long as one of them is live; the next agent
after that begins another. Within a run no two live sessions have one agent id. What a person said outright wins, the
latest first: `/ctrlb-agent:relay <run>` in the session, or the variables `CTRLB_RUN` and `CTRLB_AGENT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent.sessions.names import agent_name, id_fault, new_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    IsRunning = Callable[[int, str], bool]  # of a process, by its id and when it started

MAX_PID = (1 << 31) - 1
SEEN_S = 30 * 60  # how long a session counts as live after its last hook, whatever is known of its process
CLEARED_S = 60  # how long a cleared session of an unknown process waits for its successor

BY_CHECKOUT, BY_VARIABLE, BY_PERSON = "checkout", "variable", "person"
AFTERWARDS = frozenset({"Stop", "SubagentStop", "SessionEnd"})  # hooks that may come when a session is over


class Session(NamedTuple):
    """A session of a client, as it is kept. Times are seconds since the epoch; 0 stands for never."""

    session_id: str
    client: str
    host: str
    root: str
    run: str
    agent: str
    run_by: str  # BY_CHECKOUT, BY_VARIABLE or BY_PERSON
    variable: str  # what CTRLB_RUN was when the run was decided
    pid: int  # the client's process, 0 when it could not be found
    pid_started: str
    seen_s: float
    ended_s: float = 0.0
    cleared_s: float = 0.0


class Asked(NamedTuple):
    """What a hook says of its session. `run` and `agent` are the variables' values, empty when they have none."""

    session_id: str
    client: str
    host: str
    root: str
    event: str
    source: str
    run: str
    agent: str
    pid: int
    pid_started: str


def is_whole(session: Session) -> bool:
    """Whether every field of a session that was kept can be what it is to be: anything may be in its file."""
    texts = (session.session_id, session.client, session.host, session.root, session.run, session.agent)
    if not all(isinstance(one, str) for one in (*texts, session.run_by, session.variable, session.pid_started)):
        return False
    if not all(isinstance(one, (int, float)) for one in (session.seen_s, session.ended_s, session.cleared_s)):
        return False
    if not isinstance(session.pid, int) or not 0 <= session.pid <= MAX_PID:
        return False
    return session.root.startswith("/") and not id_fault(session.run) and not id_fault(session.agent)


def is_live(session: Session, now_s: float, is_running: IsRunning) -> bool:
    """Whether the session may still act: it has not ended, and its process runs or was heard of lately."""
    if session.ended_s:
        return False
    if session.pid and is_running(session.pid, session.pid_started):
        return True
    if session.cleared_s:
        return abs(now_s - session.cleared_s) < CLEARED_S
    return abs(now_s - session.seen_s) < SEEN_S  # the clock may have been set back since


def is_settled(known: Session, asked: Asked) -> bool:
    """Whether the hook changes nothing about the session, so that its identity can be told from its own file."""
    if asked.event == "SessionStart":
        return False
    if known.ended_s or known.cleared_s:
        return asked.event in AFTERWARDS
    if asked.pid and asked.pid != known.pid:
        return False
    if asked.agent and asked.agent != known.agent:
        return False
    return not asked.run or asked.run == (known.variable if known.run_by == BY_PERSON else known.run)


def placed(sessions: Mapping[str, Session], asked: Asked, now_s: float, is_running: IsRunning) -> list[Session]:
    """The session of the hook, first, as it is now to be kept, and the one that it takes over from, if any."""
    known = sessions.get(asked.session_id)
    before = known or cleared_for(sessions.values(), asked, now_s, is_running)
    others = [other for other in sessions.values() if other is not before and other is not known]
    root = before.root if before and not _is_elsewhere(before, asked) else asked.root
    live = [other for other in others if is_live(other, now_s, is_running)]
    run, run_by = _run_of(before, asked._replace(root=root), live, others, now_s, is_running)
    process = asked if asked.pid else known if known and not known.ended_s else None
    session = Session(
        session_id=asked.session_id,
        client=asked.client,
        host=asked.host,
        root=root,
        run=run,
        agent=_agent_of(before, asked, run, others),
        run_by=run_by,
        variable=asked.run or (before.variable if before and run_by == BY_PERSON else ""),
        pid=process.pid if process else 0,
        pid_started=process.pid_started if process else "",
        seen_s=now_s,
    )
    return [session] if before is None or before is known else [session, before._replace(ended_s=now_s)]


def joined(sessions: Mapping[str, Session], session: Session, run: str, asked: Asked) -> Session:
    """The session in the run that its person named, under its own agent id if nobody in that run ever had it."""
    others = [other for other in sessions.values() if other.session_id != session.session_id]
    return session._replace(run=run, run_by=BY_PERSON, variable=asked.run, agent=_agent_of(session, asked, run, others))


def ended(session: Session, asked: Asked, reason: str, now_s: float, is_running: IsRunning) -> Session:
    """The session after its SessionEnd. One that was cleared waits for the session that goes on in its process.

    One that meanwhile goes on in another process is left as it is.
    """
    moved = asked.pid and session.pid and asked.pid != session.pid
    if session.ended_s or (moved and is_running(session.pid, session.pid_started)):
        return session
    return session._replace(cleared_s=now_s) if reason == "clear" else session._replace(ended_s=now_s)


def cleared_for(sessions: Iterable[Session], asked: Asked, now_s: float, is_running: IsRunning) -> Session | None:
    """The session that a new one takes over from: `/clear` gives another session id to the same process."""
    near = [
        session
        for session in sessions
        if (session.client, session.host) == (asked.client, asked.host) and is_live(session, now_s, is_running)
    ]
    here = [session for session in near if asked.pid and session.pid == asked.pid]
    waiting = [session for session in here if session.cleared_s]
    if not waiting and asked.source == "clear":
        likely = [one for one in near if one.cleared_s and not one.pid and one.root == asked.root] or here
        waiting = likely if len(likely) == 1 else []  # a wrong guess would swap two agents
    return max(waiting, key=lambda session: session.seen_s, default=None)


def checkout_run(live: Iterable[Session], host: str, root: str) -> str:
    """The run that the live sessions of a checkout share, or an empty text when there is none."""
    runs = sorted(one.run for one in live if (one.host, one.root, one.run_by) == (host, root, BY_CHECKOUT))
    return max(runs, key=runs.count) if runs else ""


def _run_of(
    before: Session | None,
    asked: Asked,
    live: list[Session],
    others: list[Session],
    now_s: float,
    is_running: IsRunning,
) -> tuple[str, str]:
    if before and before.run_by == BY_PERSON and asked.run in ("", before.variable):
        return before.run, BY_PERSON
    if asked.run:
        return asked.run, BY_VARIABLE
    at_home = before is not None and before.root == asked.root
    if before and at_home and _goes_on(before, asked, now_s, is_running):
        return before.run, before.run_by
    shared = checkout_run(live, asked.host, asked.root)
    if shared:
        return shared, BY_CHECKOUT
    if before and at_home:
        return before.run, BY_CHECKOUT
    return new_run(asked.host, asked.root, now_s, (other.run for other in others)), BY_CHECKOUT


def _agent_of(before: Session | None, asked: Asked, run: str, others: list[Session]) -> str:
    """Whoever held a name in a run may still hold claims under it, so a session takes only names that were its own."""
    if asked.agent:
        return asked.agent
    in_run = [other for other in others if other.run == run]
    if before and before.agent not in {one.agent for one in in_run if before.run != run or not one.ended_s}:
        return before.agent
    return agent_name(asked.client, asked.session_id, (other.agent for other in in_run))


def _goes_on(before: Session, asked: Asked, now_s: float, is_running: IsRunning) -> bool:
    """Whether the hook belongs to the same stretch of the session: one that idled for long has been told its run."""
    if before.ended_s:
        return False
    same_process = not asked.pid or not before.pid or asked.pid == before.pid
    return is_live(before, now_s, is_running) or (same_process and asked.event != "SessionStart")


def _is_elsewhere(before: Session, asked: Asked) -> bool:
    """Whether the session was started anew in another checkout. Changing folder on the way moves nobody."""
    return asked.event == "SessionStart" and asked.source in ("startup", "resume", "fork") and before.root != asked.root
