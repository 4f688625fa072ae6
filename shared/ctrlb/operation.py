"""One operation of the table: what it is called, asks, answers, needs, and where it is found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ctrlb import models
from ctrlb.domain.rows import Permission


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a caller can ask for, through either door."""

    run: Callable[..., models.Answer]
    """(request, caller, ports) -> answer"""
    request: type[models.Request]
    answer: type[models.Answer]
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    permission: Permission | None
    """What the caller's role must allow; None for the few operations that need nothing of it."""
    status: int = 200
    writes: bool = False
    tool: bool = False
    """Also a tool of the MCP server."""
    needs: tuple[str, ...] = ()
    """Fields that may come from a header, and must come from somewhere."""
    persons_only: bool = False
    """Refused to a key, whatever its role: a key could otherwise widen its own rights."""
    body_field: str | None = None
    """The field that a bare JSON body fills; otherwise the body is an object of fields."""
    http_fields: frozenset[str] | None = None
    """The fields of the answer that HTTP shows, where the contract's HTTP answer is shorter than the tool's."""
    laptop_only: bool = False
    """Served by laptop mode alone: elsewhere people sign in with an OpenID provider."""

    @property
    def asks_who(self) -> bool:
        """Whether only a caller who is known may call it: all but what anyone may."""
        return self.permission is not None or self.persons_only

    @property
    def lets_in(self) -> bool:
        """Whether it takes a secret from somebody who is not known yet: wrong ones are guesses, and counted."""
        return self.writes and not self.asks_who

    @property
    def name(self) -> str:
        """One name everywhere: function, handler module, tool, heading."""
        return self.run.__name__
