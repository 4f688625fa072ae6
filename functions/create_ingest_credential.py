"""POST /ai/ingest-credentials: make a credential that sends logs to one dataset."""

from ctrlb.edge.http import handler_for
from ctrlb.ingest import create_ingest_credential

handler = handler_for(create_ingest_credential)
