"""ANY /console/…: the console's files, for people."""

from pathlib import Path

from ctrlb.edge.console import console_handler

handler = console_handler(Path(__file__).parent)
