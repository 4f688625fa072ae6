"""Opening files of which only the name is known."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO


def opened(path: str) -> IO[bytes]:
    """The file, for reading. Raises OSError, also for what is no regular file: a pipe may block for ever."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise NotAFile(errno.EINVAL, "Not a regular file", path)
    return os.fdopen(number, "rb")


class NotAFile(OSError):
    """A pipe, a socket or a device."""
