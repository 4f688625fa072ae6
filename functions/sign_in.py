"""POST /ai/sign-in: trade a one-time code for a person's session; laptop only."""

from ctrlb.edge.http import handler_for
from ctrlb.sign_in import sign_in

handler = handler_for(sign_in)
