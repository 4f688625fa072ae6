"""The wire of who changed what."""

from typing import Annotated, Any

from pydantic import Field

from ctrlb.models.fields import Answer, Id, Request, Whole


class ListAuditEventsRequest(Request):
    """List who changed what in the workspace, newest first."""

    user_name: Id | None = Field(default=None, description="Only what this person changed.")
    cursor: Annotated[str, Field(max_length=1_000)] = Field(default="", description="next_cursor of the page before.")
    limit: Whole = Field(default=50, ge=1, le=100)


class AuditEvent(Answer):
    """One change. It holds no secret, nor the hash of one."""

    ts: int
    user_name: str | None = Field(description="Who made it; null for the command line.")
    action: str
    before: dict[str, Any] | None = Field(description="What was there; null for nothing.")
    after: dict[str, Any] | None = Field(description="What is there since; null for nothing.")


class ListAuditEventsAnswer(Answer):
    """One page of changes."""

    events: list[AuditEvent]
    next_cursor: str | None
