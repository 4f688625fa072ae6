"""Which files a tool call is about to edit."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATH_FIELDS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
PATCH_TOOLS = frozenset({"apply_patch", "applypatch"})
SHELL_TOOLS = frozenset({"Bash", "shell", "shell_command", "local_shell", "exec_command", "container.exec"})

_HEADER = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to): ?(.*)")
_PATCH = re.compile(r"\*\*\* Begin Patch.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_APPLIES = re.compile(r"(?<![\w./-])apply_?patch(?![\w.-])")
_CD = re.compile(r"(?:^|[;&|(\n])\s*cd\s+(?:'([^'\n]*)'|\"([^\"\n]*)\"|([^\s;&|'\"]+))\s*(?:&&|;|\n)")


def edited_paths(tool_name: str, tool_input: Mapping[str, Any], cwd: str) -> list[str]:
    """The absolute paths that the call edits, in its order and each once; none of a call that is no edit.

    `.` and `..` are resolved as words, as the clients do. Of a shell command, only patches that it applies are known.
    """
    if tool_name in PATH_FIELDS:
        named: list[Any] = [tool_input.get(PATH_FIELDS[tool_name])]
    elif tool_name in PATCH_TOOLS:
        named = list(patch_paths(_command(tool_input)))
    elif tool_name in SHELL_TOOLS:
        named = _shell_paths(_command(tool_input))
    else:
        return []
    paths = [os.path.join(cwd, path) for path in named if isinstance(path, str) and _is_name(path)]
    return list(dict.fromkeys(os.path.normpath("/" + path.lstrip("/")) for path in paths))


def patch_paths(patch: str) -> list[str]:
    """The paths that a patch in the format of apply_patch adds, updates, deletes and moves to, as it spells them.

    Text in front of a patch and behind it is passed over, and several patches in one text count together.
    """
    whole = _PATCH.findall(patch) or [patch]
    return list(dict.fromkeys(path for part in whole for path in _header_paths(part)))


def _is_name(path: str) -> bool:
    """Whether a file can have this name at all."""
    try:
        return bool(path.strip()) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _command(tool_input: Mapping[str, Any]) -> str:
    """The command or patch of a call. One that is a list of words is taken as its words, a line each."""
    for field in ("command", "cmd", "input", "patch"):
        value = tool_input.get(field)
        if isinstance(value, list):
            return "\n".join(word for word in value if isinstance(word, str))
        if isinstance(value, str):
            return value
    return ""


def _shell_paths(command: str) -> list[str]:
    """The paths of every patch that the command applies, each in the folder that a `cd` before it went to."""
    if "*** Begin Patch" not in command or not _APPLIES.search(_PATCH.sub("", command)):
        return []
    paths = []
    folder, read = "", 0
    for patch in _PATCH.finditer(command):
        for quoted, double_quoted, bare in _CD.findall(command, read, patch.start()):
            folder = os.path.join(folder, quoted or double_quoted or bare)
        paths += [os.path.join(folder, path) for path in _header_paths(patch.group())]
        read = patch.end()
    return paths


def _header_paths(patch: str) -> Iterator[str]:
    """What the header lines name. Within an update a line with a space in front is a line of the file."""
    updating = False
    for line in patch.split("\n"):
        found = _HEADER.fullmatch(line.rstrip() if updating else line.strip())
        if found:
            updating = found.group(1) in ("Update File", "Move to")
            if found.group(2).strip():
                yield found.group(2).strip()
