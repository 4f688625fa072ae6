"""How an agent that claims a file would spell its path: relative to the root of its checkout.

Only the disk knows what a link leads to, and whether it tells `Repo` from `repo`: so it is asked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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


def root_of(cwd: str) -> str:
    """The real path of the nearest folder at or above `cwd` that has a `.git`; of `cwd` itself when there is none.

    Where the disk ignores case it is spelled as on the disk, so that all who mean one checkout name it alike.
    """
    real = os.path.realpath(cwd or ".")
    if disk_ignores_case(real):
        real = "/" + spelled_on_disk("/", real[1:])
    folder = real
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return real
        folder = parent
    return folder


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
