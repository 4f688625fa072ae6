"""GET …/runs: the dataset's runs, newest started first."""

from ctrlb.edge.http import handler_for
from ctrlb.runs import list_runs

handler = handler_for(list_runs)
