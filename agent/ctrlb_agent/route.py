"""How a server is reached: straight, or through the proxy that the environment names."""

from __future__ import annotations

import http.client
import socket
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

if TYPE_CHECKING:
    import ssl


PORTS = {"http": 80, "https": 443}
PROXY_PORT = 8080


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
    server = urlsplit(url)
    if server.scheme not in PORTS or not server.hostname:
        raise Unusable("is no address of a server: it should begin with http:// or https://")
    encrypted = server.scheme == "https"
    kind = partial(http.client.HTTPSConnection, context=_trust()) if encrypted else http.client.HTTPConnection
    port = server.port or PORTS[server.scheme]
    proxy = _proxy_for(server)
    prefix, headers = "", dict[str, str]()
    if proxy is None:
        connection = kind(server.hostname, port, timeout=timeout_s)
    else:
        connection = kind(proxy.hostname or "", proxy.port or PROXY_PORT, timeout=timeout_s)
        if encrypted:
            connection.set_tunnel(server.hostname, port, _sign_in(proxy))
        else:
            prefix, headers = f"http://{server.netloc.rpartition('@')[2]}", _sign_in(proxy)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Route(connection, prefix, headers)


def _proxy_for(server: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for the server, if it means one for it."""
    from urllib.request import getproxies, proxy_bypass

    named = None if proxy_bypass(server.hostname or "") else getproxies().get(server.scheme)
    return urlsplit(named if "//" in named else f"//{named}") if named else None


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
