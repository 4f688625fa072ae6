"""The streams of both tables: the list of runs follows claims, events and the rows of sessions."""

from ctrlb.edge.stream import project_runs_handler

handler = project_runs_handler()
