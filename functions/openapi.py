"""GET /openapi.json: the HTTP interface, described for machines."""

from ctrlb.edge.http import handler_for
from ctrlb.service import openapi

handler = handler_for(openapi)
