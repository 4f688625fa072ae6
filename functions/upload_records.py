"""POST …/records: keep the content blocks of sessions."""

from ctrlb.edge.http import handler_for
from ctrlb.sessions import upload_records

handler = handler_for(upload_records)
