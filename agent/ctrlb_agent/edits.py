"""Which files a tool call is about to edit, and how an agent that claims one would spell it.

Nothing here asks a server. `relative_to` looks at the disk, since only the disk knows what a link leads to and
whether it tells `Repo` from `repo`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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


def relative_to(root: str, path: str, ignores_case: Callable[[str], bool] | None = None, *, follow: bool = True) -> str:
    """The path as agents claim it: relative to the real path `root`, with `/`; outside of it, absolute.

    Links in its parents are followed, if `follow`. Where the disk ignores case the name has the case that it has on
    disk. `ignores_case` says of a folder whether its disk does; unless given, the disk is asked.
    """
    root = root.rstrip("/") or "/"
    whole = os.path.normpath(os.path.join(root, path))
    if follow:
        whole = real_place(whole)
    inside = _below(root, whole)
    folds = (ignores_case or disk_ignores_case)(root)
    if inside is None and folds:
        inside = _below(root, whole, _folded)
    if inside is None:
        return whole
    if folds:
        inside = spelled_on_disk(root, inside)
    return f"./{inside}" if ":" in inside.partition("/")[0] else inside  # else `name:x/y` would be read as a name


def real_place(path: str) -> str:
    """The path with the links in its parents followed, its own name kept: where an edit would find or make it."""
    parent, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(parent), name)


def disk_ignores_case(folder: str) -> bool:
    """Whether `folder` and the same name in the other case are one folder on its disk."""
    other = os.path.join(os.path.dirname(folder), os.path.basename(folder).swapcase())
    try:
        return other != folder and os.path.samefile(folder, other)
    except (OSError, ValueError):
        return False


def spelled_on_disk(
    root: str,
    relative: str,
    names_in: Callable[[str], list[str]] = os.listdir,  # of one folder
) -> str:
    """Each part of the path as its folder lists it, up to the first that is not there yet."""
    folder, parts = root, relative.split("/")
    for index, part in enumerate(parts):
        try:
            names = names_in(folder)
        except OSError:
            break
        if part not in names:
            found = [name for name in names if _folded(name) == _folded(part)]
            if not found:
                break
            parts[index] = found[0]
        folder = os.path.join(folder, parts[index])
    return "/".join(parts)


def _below(root: str, path: str, alike: Callable[[str], str] = str) -> str | None:
    """What of the path is below `root`, or None if it is not; `alike` makes names equal that are to count so."""
    if alike(path) == alike(root):
        return "."
    top, parts = [part for part in root.split("/") if part], path.split("/")[1:]
    inside = [alike(part) for part in parts[: len(top)]] == [alike(part) for part in top]
    return "/".join(parts[len(top) :]) if inside else None


def _folded(name: str) -> str:
    import unicodedata  # most disks tell case apart, and need none of it

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


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
