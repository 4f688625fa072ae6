"""GET …/{session_id}/next: what happened after one tool call."""

from ctrlb.edge.http import handler_for
from ctrlb.sessions import next_actions

handler = handler_for(next_actions)
