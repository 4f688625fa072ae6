"""The file config.toml: read whole, and replaced in one step, through links, with a copy of what was there."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from typing import NamedTuple

from ctrlb_agent.codex_setup.codex_block import Refused

NAME = "config.toml"
OWNER_ONLY = 0o600
MAX_BYTES = 16 << 20


class ConfigFile(NamedTuple):
    """What was read. `path` is the name in Codex's folder; `target` the file itself, if that is a link to it."""

    path: str
    target: str
    content: bytes
    exists: bool
    mode: int

    @property
    def is_link(self) -> bool:
        return os.path.islink(self.path)

    @property
    def text(self) -> str:
        """Its text. Raises Refused when it is not UTF-8."""
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            raise Refused(f"{self.path}, line {line}, is not UTF-8, so Codex cannot read it either") from error

    @property
    def names(self) -> set[str]:
        """The names by which Codex may call it: its folder's links are resolved, its own is not."""
        absolute = os.path.abspath(self.path)
        return {absolute, os.path.join(os.path.realpath(os.path.dirname(absolute)), NAME), self.target}


def read(codex_home: str) -> ConfigFile:
    """The folder's config.toml, empty when there is none. Raises Refused when it cannot be read."""
    path = os.path.join(codex_home, NAME)
    target = os.path.realpath(path)
    try:
        # A pipe would let `open` wait for somebody who writes to it.
        with open(os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"{path} cannot be read: it is no file")
            mode = stat.S_IMODE(status.st_mode)
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return ConfigFile(path, target, b"", exists=False, mode=OWNER_ONLY)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise Refused(f"{path} is larger than {MAX_BYTES >> 20} MiB")
    return ConfigFile(path, target, content, exists=True, mode=mode)


def refuse_if_not_writable(file: ConfigFile) -> None:
    """Raises Refused when the file, or the folder in which it is to be replaced, is not to be written."""
    folder = os.path.dirname(file.target)
    if file.exists and not (file.mode & stat.S_IWUSR and os.access(file.target, os.W_OK)):
        raise Refused(f"{file.target} is read-only. If you are to change it, make it writable: chmod u+w {file.target}")
    if file.is_link and not os.path.isdir(folder):
        raise Refused(f"{file.path} links to {file.target}, whose folder is not there")
    if os.path.isdir(folder) and not os.access(folder, os.W_OK):
        raise Refused(f"{folder} is read-only, so {NAME} in it cannot be replaced")


def replace(file: ConfigFile, text: str, *, holds_secret: bool) -> str | None:
    """Replace the file with the text, keeping its mode, less others' rights when it holds a secret.

    Returns the path of the copy of what was there, if anything was. Raises Refused when the file has changed since it
    was read, or the disk says no; then nothing was replaced.
    """
    mode = file.mode & OWNER_ONLY if holds_secret else file.mode
    try:
        copy = _kept(file) if file.exists else None
        number, written = tempfile.mkstemp(prefix=f".{NAME}.", dir=os.path.dirname(file.target))
        try:
            with os.fdopen(number, "wb") as stream:
                stream.write(text.encode("utf-8"))
                stream.flush()
                os.fsync(stream.fileno())
                os.fchmod(stream.fileno(), mode)
                _keep_owner(file, stream.fileno())
            _refuse_if_changed(file, copy)
            os.replace(written, file.target)
        except BaseException:
            os.unlink(written)
            raise
    except OSError as error:
        raise Refused(f"{file.target} cannot be replaced: {error.strerror}") from error
    return copy


def remove(file: ConfigFile) -> str:
    """Remove the file, and return the path of its copy. Raises Refused, as `replace` does."""
    try:
        copy = _kept(file)
        _refuse_if_changed(file, copy)
        os.unlink(file.target)
    except OSError as error:
        raise Refused(f"{file.target} cannot be removed: {error.strerror}") from error
    return copy


def _kept(file: ConfigFile) -> str:
    """Write a copy beside the file, for its user only, under a name that is not taken."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in range(1, 1000):
        copy = f"{file.path}.ctrlb-backup-{stamp}{f'-{number}' if number > 1 else ''}"
        try:
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(file.content)
        return copy
    raise Refused(f"there are too many copies beside {file.path}: remove some")


def _refuse_if_changed(file: ConfigFile, copy: str | None) -> None:
    now = read(os.path.dirname(file.path))
    if (now.target, now.content, now.exists) != (file.target, file.content, file.exists):
        if copy:
            os.unlink(copy)
        raise Refused(f"{file.path} has just been changed by somebody else: run this again")


def _keep_owner(file: ConfigFile, number: int) -> None:
    """Give the new file to the old one's owner, where that is allowed: root may install for another."""
    owner = os.stat(file.target if file.exists else os.path.dirname(file.target))
    if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(number, owner.st_uid, owner.st_gid)
        except PermissionError:
            return  # it is ours to read in any case
