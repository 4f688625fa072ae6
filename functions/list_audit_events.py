"""GET /ai/audit: who changed what in the workspace, newest first."""

from ctrlb.audit import list_audit_events
from ctrlb.edge.http import handler_for

handler = handler_for(list_audit_events)
