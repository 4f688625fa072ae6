"""Laptop mode's folder: its lock, its first person and key, and the file of variables for scripts."""

import fcntl
import gc
import os
import resource
import shlex
import socket
import sys
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from ctrlb import __version__
from ctrlb.domain.access import Caller
from ctrlb.domain.errors import CtrlbError, Invalid, NotFound
from ctrlb.edge.identity import identify
from ctrlb.keys import create_key
from ctrlb.models import CreateKeyRequest
from ctrlb.ports import MAX_LIVE_KEYS, Ports
from ctrlb.sign_in import new_code
from ctrlb.workspaces import admin_of

WORKSPACE = "local"
FIRST_USER = "admin"
ENV_FILE = "ctrlb.env"

LOOK_S = 1.0
"""How long is waited for a server of this machine to take a connection."""
MAX_OPEN_FILES = 65_536
COLLECT_EVERY_OBJECTS = 10_000
"""Python looks for garbage in cycles each time that there are so many more objects. An upload makes thousands that are
in none: looked through every 700 objects, as Python does by itself, they take a tenth of its time."""


class FolderFault(Exception):
    """The folder cannot be used; the text says why, in one line."""


def raise_file_limit() -> None:
    """Allow as many open files as the system lets this user: each connection is one, and some systems begin at 256."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if most == resource.RLIM_INFINITY else min(most, MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def collect_seldom() -> None:
    """Let Python look for garbage in cycles less often: little of the server's is."""
    gc.set_threshold(COLLECT_EVERY_OBJECTS, *gc.get_threshold()[1:])


def open_folder(folder: Path) -> None:
    """Make the folder, for its owner alone. Raises FolderFault when it cannot be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FolderFault(f"the folder {folder} cannot be written: {error.strerror}") from None


def lock_folder(folder: Path) -> TextIO:
    """Take the folder for this server, until the process ends however it ends. Raises FolderFault."""
    path = folder / "server.lock"
    try:
        lock = path.open("w")
    except OSError as error:
        raise FolderFault(f"{path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FolderFault(
            f"another server is running on the folder {folder}; stop it, or choose another DATA"
        ) from None
    return lock


def owner(ports: Ports) -> Caller:
    """The person whose laptop it is, for the command line. Added to the workspace at the first call."""
    return admin_of(WORKSPACE, FIRST_USER, ports)


def key_for_scripts(folder: Path, url: str, ports: Ports) -> str | None:
    """The key in the folder's file of variables: the one that is there if it still works, else a new one.

    None where the owner may have no more keys. None of theirs is revoked to make room: agents may be using it. The
    file, readable by its owner alone, gets the address of this start.
    """
    key = variables(folder).get("CTRLB_KEY")
    if key is None or not _works(key, ports):
        key = _new_key(ports)
    written = {"CTRLB_URL": url} if key is None else {"CTRLB_URL": url, "CTRLB_KEY": key}
    fresh = folder / f".{ENV_FILE}"
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.writelines(f"{name}={shlex.quote(value)}\n" for name, value in written.items())
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / ENV_FILE)
    return key


def sign_in_link(url: str, ports: Ports, workspace: str = WORKSPACE, user: str = FIRST_USER) -> str:
    """A link that signs a person in, the owner if nobody is named, once, within ten minutes.

    Raises NotFound when the workspace has no such person, or one who is not active.
    """
    owner(ports)
    member = ports.identity.member(workspace, user)
    if member is None or not member.active:
        raise NotFound(f"there is no active person {user} in the workspace {workspace}")
    return f"{url}/console/#code={new_code(workspace, user, ports)}"


def is_served(url: str) -> bool:
    """Whether anybody listens at the address that a server has written to its folder."""
    try:
        parts = urlsplit(url)
        socket.create_connection((parts.hostname or "", parts.port or 0), LOOK_S).close()
    except (OSError, ValueError):  # nobody does, or it is no address
        return False
    return True


def greeting(url: str, key: str | None, folder: Path, ports: Ports) -> str:
    """What the server prints once it serves: where, how a person and agents get in, and where things are kept."""
    for_scripts = f"CTRLB_URL and CTRLB_KEY are in {folder / ENV_FILE}"
    if key is None:
        for_scripts = (
            f"there is no key, since {FIRST_USER} has {MAX_LIVE_KEYS} and may have no more: end one that is not "
            "used, in the console or with `keys list` and `keys revoke`, and start again"
        )
    new_link = f"{shlex.quote(sys.executable)} -m ctrlb sign-in --data {shlex.quote(str(folder))}"
    return f"""ctrlb {__version__} is ready at {url}

Sign in, once, within ten minutes:
  {sign_in_link(url, ports)}
For another link:
  {new_link}

Connect your agents with the plugin and the installer in agent/, or Claude Code with the tools alone:
  claude mcp add --transport http ctrlb "{url}/mcp" --header "Authorization: Bearer {key or "<your key>"}"

For scripts: {for_scripts}
The log is in {folder / "ctrlb.log"}. Ctrl-C stops; everything is kept in {folder}."""


def variables(folder: Path) -> dict[str, str]:
    """What the folder's file of variables says; nothing when there is none. Raises FolderFault."""
    path = folder / ENV_FILE
    try:
        words = shlex.split(path.read_text()) if path.exists() else []
    except (OSError, ValueError) as error:
        raise FolderFault(f"{path} cannot be read ({error}); move it away, and a new one is made") from None
    return dict(word.split("=", 1) for word in words if "=" in word)


def _new_key(ports: Ports) -> str | None:
    request = CreateKeyRequest(name="first key, for scripts", expires_days=0)
    try:
        return create_key(request, owner(ports), ports).key
    except Invalid:  # the request is a good one, so the owner has as many keys as a person may
        return None


def _works(key: str, ports: Ports) -> bool:
    try:
        return identify(f"Bearer {key}", ports).workspace == WORKSPACE
    except CtrlbError:
        return False
