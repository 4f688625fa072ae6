"""POST /ai/keys: make an MCP key, shown this once."""

from ctrlb.edge.http import handler_for
from ctrlb.keys import create_key

handler = handler_for(create_key)
