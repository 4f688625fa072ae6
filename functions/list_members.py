"""GET /ai/members: the workspace's people, for who manages them."""

from ctrlb.edge.http import handler_for
from ctrlb.members import list_members

handler = handler_for(list_members)
