"""PUT /ai/roles/{role}: define a role of the workspace's own."""

from ctrlb.edge.http import handler_for
from ctrlb.members import change_role

handler = handler_for(change_role)
