"""PUT /ai/members/{user_name}: change a person's role, grants or status."""

from ctrlb.edge.http import handler_for
from ctrlb.members import change_member

handler = handler_for(change_member)
