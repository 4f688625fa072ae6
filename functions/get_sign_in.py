"""GET /ai/sign-in: how people sign in here, and where."""

from ctrlb.edge.http import handler_for
from ctrlb.sign_in import get_sign_in

handler = handler_for(get_sign_in)
