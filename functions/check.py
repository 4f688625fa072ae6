"""POST …/check: ask before an edit whether another agent holds the paths."""

from ctrlb.claims import check
from ctrlb.edge.http import handler_for

handler = handler_for(check)
