"""GET /ai/keys: the caller's keys, without their secrets."""

from ctrlb.edge.http import handler_for
from ctrlb.keys import list_keys

handler = handler_for(list_keys)
