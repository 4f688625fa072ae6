"""ANY /mcp: the eight tools, for agents that speak the Model Context Protocol."""

from ctrlb.edge.mcp import mcp_handler

handler = mcp_handler()
