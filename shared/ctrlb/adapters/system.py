"""The machine's clock and randomness."""

import secrets
import time
import uuid

from ctrlb.domain.key_format import ALPHABET, KEY_ID_CHARS, SECRET_CHARS


class SystemClock:
    """The port Clock by the system's own clocks."""

    def now_us(self) -> int:
        """Microseconds since the epoch."""
        return time.time_ns() // 1_000

    def elapsed_s(self) -> float:
        """Seconds on the monotonic clock."""
        return time.monotonic()

    def wait_ms(self, ms: int) -> None:
        """Sleep; other threads go on."""
        time.sleep(ms / 1_000)


class SystemRandomness:
    """The port Randomness by the operating system's generator."""

    def request_id(self) -> str:
        """A random UUID in hex."""
        return uuid.uuid4().hex

    def key_id(self) -> str:
        """12 letters and digits."""
        return _text(KEY_ID_CHARS)

    def secret(self) -> str:
        """43 letters and digits: 256 random bits."""
        return _text(SECRET_CHARS)


def _text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
