"""POST /ai/members: add a person to the workspace."""

from ctrlb.edge.http import handler_for
from ctrlb.members import invite_member

handler = handler_for(invite_member)
