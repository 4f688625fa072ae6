"""The agents' side of CtrlB: hooks for Claude Code and Codex, and `python3 -m ctrlb_agent` for scripts and people.

Standard library only, Python 3.9 and newer. Nothing here may cost a user a turn: what fails is written to the
log, and the client goes on.
"""

__version__ = "0.1.0"
