"""GET /ai/relay/settings: the workspace's Relay settings."""

from ctrlb.edge.http import handler_for
from ctrlb.settings import get_settings

handler = handler_for(get_settings)
