"""POST …/claims: take a resource, or learn who holds it."""

from ctrlb.claims import claim
from ctrlb.edge.http import handler_for

handler = handler_for(claim)
