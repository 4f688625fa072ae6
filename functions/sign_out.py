"""POST /ai/sign-out: end the person's session; laptop only."""

from ctrlb.edge.http import handler_for
from ctrlb.sign_in import sign_out

handler = handler_for(sign_out)
