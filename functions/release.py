"""DELETE …/claims: give a claim back, or mark the resource done."""

from ctrlb.claims import release
from ctrlb.edge.http import handler_for

handler = handler_for(release)
