"""How a server is reached: straight, or through the proxy that the environment names."""

from __future__ import annotations

import http.client
import socket
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

if TYPE_CHECKING:
    import ssl


class Unusable(ValueError):
    """What the server's address, or its answer, cannot be. The text follows the address."""


class Route(NamedTuple):
    """An open connection, and what a request has in front of its path, and more in its head, to take it."""

    connection: http.client.HTTPConnection
    target_prefix: str
    headers: dict[str, str]


def opened(url: str, timeout_s: float) -> Route:
    """The way to the URL's host, through the environment's proxy where one is meant for it.

    A proxy passes encrypted bytes on; of plain HTTP it is asked for the whole address, since many pass on nothing else.
    Raises Unusable, or what the network says.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unusable("is no address of a server: it should begin with http:// or https://")
    encrypted = parts.scheme == "https"
    proxy = None if proxy_bypass(parts.hostname) else getproxies().get(parts.scheme)
    via = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else parts
    kind = partial(http.client.HTTPSConnection, context=_trust()) if encrypted else http.client.HTTPConnection
    port = 443 if encrypted else 80
    connection = kind(via.hostname or "", via.port or (port if via is parts else 8080), timeout=timeout_s)
    prefix, headers = "", dict[str, str]()
    if via is not parts and encrypted:
        connection.set_tunnel(parts.hostname, parts.port or port, _sign_in(via))
    elif via is not parts:
        prefix, headers = f"http://{parts.netloc.rpartition('@')[2]}", _sign_in(via)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Route(connection, prefix, headers)


def _sign_in(proxy: SplitResult) -> dict[str, str]:
    """The header by which the proxy knows its user, if its address names one."""
    if proxy.username is None:
        return {}
    from base64 import b64encode

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """The authorities of this machine, read once: it takes longer than a request."""
    import ssl

    return ssl.create_default_context()
