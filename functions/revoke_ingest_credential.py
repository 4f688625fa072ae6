"""DELETE /ai/ingest-credentials/{credential_id}: end an ingest credential."""

from ctrlb.edge.http import handler_for
from ctrlb.ingest import revoke_ingest_credential

handler = handler_for(revoke_ingest_credential)
