"""GET …/search: find rows by a word or a phrase."""

from ctrlb.edge.http import handler_for
from ctrlb.sessions import search_sessions

handler = handler_for(search_sessions)
