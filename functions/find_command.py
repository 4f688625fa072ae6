"""GET …/commands: find past tool calls by the text of their command."""

from ctrlb.edge.http import handler_for
from ctrlb.sessions import find_command

handler = handler_for(find_command)
