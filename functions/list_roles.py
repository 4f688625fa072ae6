"""GET /ai/roles: the built-in roles and the workspace's own."""

from ctrlb.edge.http import handler_for
from ctrlb.members import list_roles

handler = handler_for(list_roles)
