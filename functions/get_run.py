"""GET …/runs/{run_id}: one run, with its agents, events, resources and detectors."""

from ctrlb.edge.http import handler_for
from ctrlb.runs import get_run

handler = handler_for(get_run)
