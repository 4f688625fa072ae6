"""PUT /ai/relay/settings: change them; a person's call, never a key's."""

from ctrlb.edge.http import handler_for
from ctrlb.settings import change_settings

handler = handler_for(change_settings)
