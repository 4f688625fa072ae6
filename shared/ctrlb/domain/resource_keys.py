"""What a claim is decided on: the key of a resource, one for all spellings of a file or a task.

A path is read as its words mean it, never as a disk would: nothing here looks at the machine. A key can be
given wherever a resource can, with the `cwd` it was made with or without one, and stands for itself.
"""

import re
from dataclasses import dataclass

from ctrlb.domain.errors import Invalid
from ctrlb.domain.normal_form import nfc

MAX_CHARS = 4_096
"""Of a resource, a cwd and a key, each without its `path:` or `name:`."""
MAX_EXTENSION_CHARS = 10

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:/")


def resource_key(resource: str, cwd: str | None = None) -> str:
    """The key that every spelling of the resource shares: `path:…` with its case kept, or `name:…`.

    An absolute path under an absolute `cwd` becomes relative to it, and a relative path that leaves it
    becomes absolute. Raises Invalid when nothing is left of the resource, when it or its key is over
    MAX_CHARS characters, or when it has characters that no path or name should.
    """
    kind, text = _kind_and_text(_readable("resource", resource))
    if not text:
        raise Invalid("resource: it is empty; send a file path or a task name")
    return _path_key(text, cwd) if kind == "path" else _name_key(text)


def _kind_and_text(text: str) -> tuple[str, str]:
    """Whether the text is a path or a name, and what it says without the prefix that told so."""
    head, colon, rest = text.partition(":")
    prefix = head.lower() + colon
    if prefix in ("path:", "name:"):
        return head.lower(), _bounded("resource", rest.strip())
    looks_like_path = prefix != "task:" and ("/" in text or "\\" in text or _has_extension(text))
    return ("path" if looks_like_path else "name"), _bounded("resource", text)


def _has_extension(text: str) -> bool:
    """Whether the text ends like a file name; "release 1.2" does not, its last part is only a number."""
    _, dot, extension = text.rpartition(".")
    return (
        bool(dot)
        and len(extension) <= MAX_EXTENSION_CHARS
        and extension.isalnum()
        and any(character.isalpha() for character in extension)
    )


def _name_key(text: str) -> str:
    name = nfc(" ".join(text.lower().split()))  # lower case can undo NFC: J + caron
    _refuse_control("resource", name)
    return "name:" + _bounded("resource", name)


def _path_key(text: str, cwd: str | None) -> str:
    _refuse_control("resource", text)
    path = _Path.read(text)
    folder = _folder(cwd)
    if folder is not None:
        path = path.seen_from(folder)
    return "path:" + _bounded("resource", str(path))


def _folder(cwd: str | None) -> "_Path | None":
    """The folder that paths are relative to; a relative cwd says nothing about where it is."""
    if cwd is None:
        return None
    text = _bounded("cwd", _readable("cwd", cwd))
    _refuse_control("cwd", text)
    folder = _Path.read(text)
    return folder if folder.root else None


@dataclass(frozen=True, slots=True)
class _Path:
    """A path with `.`, `..` and empty segments resolved; `..` is left only in front of a relative one."""

    root: str
    """`/`, a drive such as `c:/`, or empty for a relative path."""
    segments: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> "_Path":
        """The path as POSIX or Windows would spell it; a drive letter is the same in both cases."""
        text = text.replace("\\", "/")
        drive = _DRIVE.match(text)
        root = drive.group().lower() if drive else text[:1] if text.startswith("/") else ""
        # White space around a segment is more often a slip than a name, and a slip must not open a second key.
        segments = [segment.strip() for segment in text[len(root) :].split("/")]
        return cls(root, _resolved(segments, absolute=bool(root)))

    def seen_from(self, folder: "_Path") -> "_Path":
        """The same file, relative to the folder if it is inside it, else absolute if the folder can tell."""
        path = self
        if not self.root and self.segments[:1] == ("..",):
            path = _Path(folder.root, _resolved([*folder.segments, *self.segments], absolute=True))
        depth = len(folder.segments)
        inside = path.root == folder.root and path.segments[:depth] == folder.segments
        return _Path("", path.segments[depth:]) if inside else path

    def __str__(self) -> str:
        text = self.root + "/".join(self.segments)
        if not self.root and _DRIVE.match(text):
            return "./" + text  # a folder named like a drive must not be read back as one
        return text or "."


def _resolved(segments: list[str], *, absolute: bool) -> tuple[str, ...]:
    done: list[str] = []
    for segment in segments:
        if segment in ("", "."):
            continue
        if segment != ".." or (not absolute and done[-1:] in ([], [".."])):
            done.append(segment)
        elif done:
            done.pop()
    return tuple(done)


def _readable(field: str, text: str) -> str:
    """The text in the one spelling of Unicode that keys use, without white space around it."""
    if _SURROGATE.search(text):
        raise Invalid(f"{field}: it has half of a surrogate pair; send valid Unicode")
    return nfc(text).strip()


def _bounded(field: str, text: str) -> str:
    if len(text) > MAX_CHARS:
        raise Invalid(f"{field}: it is over {MAX_CHARS:,} characters; send a shorter one")
    return text


def _refuse_control(field: str, text: str) -> None:
    found = _CONTROL.search(text)
    if found:
        raise Invalid(f"{field}: it has the control character U+{ord(found.group()):04X}; send it without")
