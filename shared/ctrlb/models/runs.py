"""The wire of the Runs page."""

from typing import Annotated, Literal

from pydantic import Field

from ctrlb.models.fields import Answer, DatasetRequest, RunRequest, Whole
from ctrlb.models.relay import PeerEvent

RunStatus = Literal["live", "done"]


class ListRunsRequest(DatasetRequest):
    """List the runs that you have a row in, newest started first."""

    status: Literal["live", "done", "all"] = "all"
    cursor: Annotated[str, Field(max_length=1_000)] = Field(default="", description="next_cursor of the page before.")
    limit: Whole = Field(default=50, ge=1, le=200)


class RunListItem(Answer):
    """A run in the list."""

    run_id: str
    status: RunStatus
    started: int
    last: int
    agents: int
    events: int
    held: int


class ListRunsAnswer(Answer):
    """One page of runs."""

    runs: list[RunListItem]
    next_cursor: str | None


class GetRunRequest(RunRequest):
    """Read one run: its agents, events, resources and detectors."""


class RunAgent(Answer):
    """An agent of the run."""

    agent: str
    user_name: str
    first: int
    last: int
    silent: bool
    sessions: list[str]


class RunResource(Answer):
    """What became of a claimed resource."""

    resource: str
    key: str
    state: Literal["held", "expired", "released", "done"]
    agent: str
    ts: int
    lease_until: int | None


class DetectorRow(Answer):
    """A row that proves a finding."""

    agent: str
    ts: int
    session_id: str
    seq: int | None
    block_idx: int | None


class DetectorFinding(Answer):
    """Something a person should look at."""

    detector: str
    key: str
    agents: list[str]
    message: str
    rows: list[DetectorRow]


class GetRunAnswer(Answer):
    """One run. At most 500 agents, events and resources, the newest, and how many there are."""

    run_id: str
    status: RunStatus
    started: int
    last: int
    agents: list[RunAgent]
    agents_total: int
    events: list[PeerEvent]
    events_total: int
    resources: list[RunResource]
    resources_total: int
    detectors: list[DetectorFinding]
