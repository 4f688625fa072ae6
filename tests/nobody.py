"""An address of this machine at which nobody listens, and nobody else can begin to while the tests run."""

import atexit
import socket

_held = socket.socket()
_held.bind(("127.0.0.1", 0))  # without listening: a connection is refused, and the port is nobody else's
atexit.register(_held.close)

NOBODY = f"http://127.0.0.1:{_held.getsockname()[1]}"
