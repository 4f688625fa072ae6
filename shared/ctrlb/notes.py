"""What agents of a run tell each other: short notes, and everything that happened, newest first."""

from collections.abc import Iterable

from ctrlb.domain.access import Caller
from ctrlb.domain.rows import Event, Holder, Run
from ctrlb.models import PeerEvent, PeersAnswer, PeersRequest, PostAnswer, PostRequest, fitting
from ctrlb.ports import PREVIEW_CHARS, Ports

NOTE_CHARS = 2_000


def post(request: PostRequest, caller: Caller, ports: Ports) -> PostAnswer:
    """Keep the note's first 2,000 characters in the run's record."""
    run = Run(caller.dataset_to_write(request.dataset), request.run_id)
    note = Event("NOTE", Holder(caller.user, request.agent), ports.clock.now_us(), text=request.text[:NOTE_CHARS])
    ports.relay.add_events(run, note)
    return PostAnswer(ok=True, run_id=request.run_id, agent=request.agent)


def peers(request: PeersRequest, caller: Caller, ports: Ports) -> PeersAnswer:
    """The run's newest events, whoever wrote them: exclusion that hides the other holder is none."""
    run = Run(caller.dataset_to_read(request.dataset), request.run_id)
    events = ports.relay.newest(run, request.limit)
    return PeersAnswer(you=request.agent or None, events=peer_events(events, ports.clock.now_us()))


def peer_events(events: Iterable[Event], now_us: int) -> list[PeerEvent]:
    """Events as the wire shows them, texts cut at 300 characters; as many as fit in an answer."""
    return fitting(
        PeerEvent(
            agent=event.holder.agent,
            kind=event.kind,
            resource=event.resource,
            key=event.key,
            text=event.text[:PREVIEW_CHARS],
            age_s=max(0, now_us - event.ts_us) // 1_000_000,
            ts=event.ts_us,
        )
        for event in events
    )
