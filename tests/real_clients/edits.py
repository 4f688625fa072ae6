"""One edit of a file, as the models of each client write it."""

import json
from pathlib import Path

from tests.real_clients.script import Call

NOTEBOOK = json.dumps(
    {
        "cells": [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": ["x = 1"]}],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
)


def read(path: Path) -> Call:
    """Claude's Read, without which it edits no file that exists."""
    return Call("Read", {"file_path": str(path)})


def notebook_edit(path: Path, source: str) -> Call:
    """Claude's NotebookEdit of the first cell."""
    return Call("NotebookEdit", {"notebook_path": str(path), "cell_id": "cell-0", "new_source": source})


def write(path: Path, text: str) -> Call:
    """Claude's Write."""
    return Call("Write", {"file_path": str(path), "content": text})


def edit(path: Path, old: str, new: str) -> Call:
    """Claude's Edit."""
    return Call("Edit", {"file_path": str(path), "old_string": old, "new_string": new})


def patch(path: str, line: str) -> str:
    """A patch that adds the file."""
    return f"*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch"


def direct_patch(path: str, line: str) -> Call:
    """Codex's apply_patch, called by the model."""
    return Call("apply_patch", patch(path, line))


def patch_by_script(path: str, line: str) -> Call:
    """Codex's apply_patch, called from JavaScript."""
    text = json.dumps(patch(path, line))
    return Call("exec", f"const done = await tools.apply_patch({text});\ntext(JSON.stringify(done));")


def patch_by_shell(path: str, line: str) -> Call:
    """Codex's apply_patch, as a command of the shell."""
    return Call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch(path, line)}\nEOF"})
