"""GET /health: whether this deployment answers, and its version."""

from ctrlb.edge.http import handler_for
from ctrlb.service import health

handler = handler_for(health)
