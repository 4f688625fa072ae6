"""Set up CtrlB for Codex: `python3 -I install.py --codex`. `--help` says the rest."""

import io
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python leaves the script's folder out

if sys.version_info < (3, 9):  # noqa: UP036 - said in words, before something fails
    sys.exit("install.py: Python 3.9 or newer is needed")

from ctrlb_agent.codex_setup.codex_install import main

if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a folder's name may be in no encoding
    sys.exit(main(sys.argv[1:]))
