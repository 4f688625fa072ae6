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

MAX_PATH_CHARS = 4_096  # of one that a system takes
MAX_COMMAND_CHARS = 1 << 20  # no system hands a longer command to a shell

_BEGIN, _END, _MARK = "*** Begin Patch", "*** End Patch", "*** "

# The texts are anybody's, and no alarm interrupts a match: what may repeat is never what the part before it ends with.
_HEADER = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to): ?(.*)")
_APPLIES = re.compile(r"(?<![\w./-])apply_?patch(?![\w.-])")
_CD = re.compile(r"(?:^|[;&|(\n])[ \t]*cd[ \t]+(?:'([^'\n]*)'|\"([^\"\n]*)\"|([^\s;&|'\"]+))[ \t\r]*(?=&&|;|\n)")


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
    whole = [patch[begin:end] for begin, end in _patches(patch)] or [patch]
    return list(dict.fromkeys(path for part in whole for path in _header_paths(part)))


def _is_name(path: str) -> bool:
    """Whether a file can have this name at all."""
    try:
        return len(path) <= MAX_PATH_CHARS and bool(path.strip()) and b"\0" not in os.fsencode(path)
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
    command = command[:MAX_COMMAND_CHARS]
    patches = list(_patches(command))
    starts, ends = [begin for begin, _ in patches], [end for _, end in patches]
    between = [command[end:begin] for end, begin in zip([0, *ends], [*starts, len(command)])]
    if not patches or not any(_APPLIES.search(part) for part in between):
        return []
    paths: list[str] = []
    folder, read = "", 0
    for begin, end in patches:
        for quoted, double_quoted, bare in _CD.findall(command, read, begin):
            folder = os.path.join(folder, quoted or double_quoted or bare)
            if len(folder) > MAX_PATH_CHARS:
                return paths  # the shell would not get there either
        paths += [os.path.join(folder, path) for path in _header_paths(command[begin:end])]
        read = end
    return paths


def _patches(text: str) -> Iterator[tuple[int, int]]:
    """Where each patch in the text begins and ends. One that does not end takes all that follows."""
    begin = text.find(_BEGIN)
    while begin >= 0:
        end = text.find(_END, begin + len(_BEGIN))
        end = len(text) if end < 0 else end + len(_END)
        yield begin, end
        begin = text.find(_BEGIN, end)


def _header_paths(patch: str) -> Iterator[str]:
    """What the header lines name. Within an update a line with a space in front is a line of the file."""
    updating = False
    for line in _marked_lines(patch):
        found = _HEADER.fullmatch(line.rstrip() if updating else line.strip())
        if found:
            updating = found.group(1) in ("Update File", "Move to")
            if found.group(2).strip():
                yield found.group(2).strip()


def _marked_lines(patch: str) -> Iterator[str]:
    """The lines that can be headers, found without a look at each of the others."""
    read = 0
    while (mark := patch.find(_MARK, read)) >= 0:
        end = patch.find("\n", mark)
        end = len(patch) if end < 0 else end
        yield patch[patch.rfind("\n", read, mark) + 1 or read : end]
        read = end
