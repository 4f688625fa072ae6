"""DELETE /ai/roles/{role}: remove a role of the workspace's own that nobody has."""

from ctrlb.edge.http import handler_for
from ctrlb.members import remove_role

handler = handler_for(remove_role)
