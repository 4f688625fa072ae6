"""What the service says about itself."""

from ctrlb import __version__
from ctrlb.domain.access import Caller
from ctrlb.models import HealthAnswer, HealthRequest, OpenApiAnswer, OpenApiRequest
from ctrlb.ports import Ports


def health(request: HealthRequest, caller: Caller | None, ports: Ports) -> HealthAnswer:
    """Answer that the service runs; no store is asked."""
    return HealthAnswer(ok=True, version=__version__)


def openapi(request: OpenApiRequest, caller: Caller | None, ports: Ports) -> OpenApiAnswer:
    """The OpenAPI document, made from the models and the table of operations."""
    from ctrlb.openapi import document  # the table imports this module, so the document is looked up late

    return OpenApiAnswer(**document())
