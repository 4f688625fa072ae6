"""CtrlB: claims between coding agents, and a memory of what their sessions did."""

__version__ = "0.1.0"
