"""The wire of claims, notes and peers."""

from typing import Annotated, Literal

from pydantic import Field

from ctrlb.domain.rows import EnforceMode, EventKind
from ctrlb.models.fields import MAX_PATHS, MAX_RESOURCE_CHARS, AgentRequest, Answer, Cwd, Resource, Whole


class ClaimRequest(AgentRequest):
    """Take an exclusive claim on a file path or task name before working on it.

    Work on it only when `held` is true. A refusal is a normal answer that names the holder: pick other
    work, do not retry the same resource in a loop. Claim again to renew a claim during long work.
    """

    resource: Resource
    cwd: Cwd = ""


class ClaimAnswer(Answer):
    """The claim is yours, or who has the resource."""

    held: bool
    resource: str
    key: str = Field(description="What the claim is decided on.")
    lease_until: int | None = Field(default=None, description="When the claim ends unless renewed, µs since the epoch.")
    renewed: bool | None = Field(default=None, description="You held it already; the lease was renewed.")
    held_by: str | None = Field(default=None, description="The agent that holds it.")
    finished_by: str | None = Field(default=None, description="The agent that finished it.")
    message: str | None = None


class ReleaseRequest(AgentRequest):
    """Give a claim back, or mark it done.

    Call it when your work on the resource is over: finished=true marks it done for the rest of the run,
    finished=false hands it back for another agent.
    """

    resource: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_RESOURCE_CHARS + len("path:"),
            description="The resource as you claimed it, or the key the claim answered.",
        ),
    ]
    finished: bool = Field(
        default=True, description="true: done for good, later claims are refused. false: free for another agent."
    )
    cwd: Annotated[
        str,
        Field(max_length=MAX_RESOURCE_CHARS, description="The working directory the claim was made with, if any."),
    ] = ""


class ReleaseAnswer(Answer):
    """How many of your live holds ended: 0 when you held none, and then nothing was written."""

    released: int
    finished: bool
    resource: str
    key: str


class CheckRequest(AgentRequest):
    """Ask, before an edit, whether another agent of the run holds one of the files."""

    paths: list[Annotated[str, Field(min_length=1, max_length=MAX_RESOURCE_CHARS)]] = Field(
        max_length=MAX_PATHS, description="The files that the edit touches."
    )
    cwd: Cwd = ""


class Conflict(Answer):
    """A path that another agent holds."""

    path: str
    key: str
    held_by: str
    lease_until: int


class CheckAnswer(Answer):
    """The enforce mode, and whether it lets the edit through."""

    mode: EnforceMode
    allowed: bool
    conflicts: list[Conflict]


class PostRequest(AgentRequest):
    """Post a short note to the other agents of the run: what you are taking, or what you finished."""

    text: str = Field(min_length=1, description="The note. Cut at 2,000 characters.")


class PostAnswer(Answer):
    """The note is in the run's record."""

    ok: Literal[True]
    run_id: str
    agent: str


class PeersRequest(AgentRequest):
    """See what the other agents of the run have posted, claimed and released, newest first.

    Call it before you choose a task.
    """

    limit: Whole = Field(default=40, ge=1, le=500, description="How many events.")


class PeerEvent(Answer):
    """One thing an agent did."""

    agent: str
    kind: EventKind
    resource: str
    key: str
    text: str
    age_s: int
    ts: int


class PeersAnswer(Answer):
    """The run's newest events."""

    you: str | None
    events: list[PeerEvent]
