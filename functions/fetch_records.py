"""GET …/{session_id}/records: read a stretch of one session."""

from ctrlb.edge.http import handler_for
from ctrlb.sessions import fetch_records

handler = handler_for(fetch_records)
