"""DELETE /ai/keys/{key_id}: end a key."""

from ctrlb.edge.http import handler_for
from ctrlb.keys import revoke_key

handler = handler_for(revoke_key)
