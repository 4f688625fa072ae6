"""The wire of what the service says about itself, errors included."""

from typing import Literal

from pydantic import ConfigDict

from ctrlb.models.fields import Answer, Request


class HealthRequest(Request):
    """Ask whether the service answers."""


class HealthAnswer(Answer):
    """It does."""

    ok: Literal[True]
    version: str


class OpenApiRequest(Request):
    """Read the description of the HTTP interface."""


class OpenApiAnswer(Answer):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow")

    openapi: str


class ErrorAnswer(Answer):
    """The one shape of an error."""

    error: str
    code: str | None = None
