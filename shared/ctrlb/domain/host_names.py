"""Host names, in the one form in which they are compared: of the address that was called, and of those in a setting."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from ctrlb.domain.errors import Invalid
from ctrlb.domain.key_format import WORKSPACE_PATTERN

_NAME = re.compile(r"[a-z0-9._-]+")


def host_name(called: str) -> str:
    """The name in `called`, which may have a port: small letters, ASCII, no final dot; empty where there is none."""
    try:
        name = (urlsplit(f"//{called}").hostname or "").rstrip(".")
        name = name if name.isascii() else name.encode("idna").decode()
    except ValueError:
        return ""
    return name if _NAME.fullmatch(name) else ""


def read_workspace_hosts(text: str) -> Mapping[str, str]:
    """The workspaces by host name that `host=workspace,host=workspace` says. Raises Invalid.

    A name that no call could have, because it is not in the form of `host_name`, would bind its address to nothing.
    """
    hosts: dict[str, str] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        host, _, workspace = pair.partition("=")
        if not host or host_name(host) != host:
            written = host_name(host) or "acme.example.com"
            raise Invalid(f"{pair}: {host or 'nothing'} is no host name as it is called; write it like {written}")
        if not re.fullmatch(WORKSPACE_PATTERN, workspace):
            raise Invalid(f"{pair}: {workspace or 'nothing'} is no workspace's name; write {host}=<workspace>")
        if hosts.setdefault(host, workspace) != workspace:
            raise Invalid(f"{pair}: {host} serves {hosts[host]} already")
    return hosts
