"""GET /ai/ingest-credentials: the workspace's ingest credentials."""

from ctrlb.edge.http import handler_for
from ctrlb.ingest import list_ingest_credentials

handler = handler_for(list_ingest_credentials)
