"""What can go wrong, one class for each thing a caller can do something about.

The messages say what was wrong, where, and what to send instead. Which status each class becomes is
decided in one place, `ctrlb.answers`.
"""


class CtrlbError(Exception):
    """Something the caller is told about. Its text is the answer's `error`."""

    code: str | None = None
    """The contract's code, for the refusals of a key; other errors carry none."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(CtrlbError):
    """A field fails validation, or a limit of the contract is passed: send something else."""


class NoCredential(CtrlbError):
    """The request carries no user: send `Authorization: Bearer <key>`."""


class SignInRefused(CtrlbError):
    """A person's token or sign-in code is unknown, used or expired: sign in again."""


class IngestRefused(CtrlbError):
    """The ingest credential is unknown, mistyped, revoked or another dataset's: send the right one."""


class KeyRefused(CtrlbError):
    """The key is not accepted: make a new one."""


class InvalidKey(KeyRefused):
    """No such key, a typo in it, or a wrong secret; the three are not told apart."""

    code = "MCP_INVALID_KEY"


class KeyExpired(KeyRefused):
    """The key's expiry has passed."""

    code = "MCP_KEY_EXPIRED"


class KeyStale(KeyRefused):
    """The person's role, grants or status changed after the key was made."""

    code = "MCP_KEY_STALE"


class KeyRevoked(KeyRefused):
    """Somebody revoked the key."""

    code = "MCP_KEY_REVOKED"


class WorkspaceMismatch(CtrlbError):
    """The key is good, but this address serves another workspace."""

    code = "MCP_WORKSPACE_MISMATCH"


class ForbiddenRole(CtrlbError):
    """The role behind the key lacks `mcp.use`."""

    code = "MCP_FORBIDDEN_ROLE"


class Forbidden(CtrlbError):
    """The role or the dataset grants do not allow this call."""


class NotFound(CtrlbError):
    """There is no such thing, or none that this caller may see; the two are not told apart."""


class MethodNotAllowed(CtrlbError):
    """The path exists, but not with this method."""

    def __init__(self, message: str, allow: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allow = allow


class TooLarge(CtrlbError):
    """The body is larger than the contract allows: send less in one call."""


class TooManyRequests(CtrlbError):
    """The caller sends more than is good for the others: send the same again later."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(CtrlbError):
    """A store did not answer in time: nothing was promised, send the same again later."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AuthUnavailable(Unavailable):
    """The key store did not answer, so nobody can be told who is calling."""

    code = "MCP_AUTH_UNAVAILABLE"
