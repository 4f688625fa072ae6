"""The stream of the sessions table: the search index follows the rows."""

from ctrlb.edge.stream import index_rows_handler

handler = index_rows_handler()
