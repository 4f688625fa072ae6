"""Validate, authorise, run, translate: how every call is answered, whichever door it came through.

This is the only place where an error becomes a status, and the only `except Exception` of the server.
"""

import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from ctrlb.domain import errors
from ctrlb.domain.access import Caller
from ctrlb.models import Answer, ErrorAnswer, Request
from ctrlb.models.faults import first_fault
from ctrlb.operations import Operation
from ctrlb.ports import Ports

_log = logging.getLogger(__name__)
Admitted = TypeVar("Admitted")

STATUSES: dict[type[errors.CtrlbError], int] = {
    errors.Invalid: 400,
    errors.NoCredential: 401,
    errors.SignInRefused: 401,
    errors.IngestRefused: 401,
    errors.KeyRefused: 401,
    errors.WorkspaceMismatch: 403,
    errors.ForbiddenRole: 403,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.TooLarge: 413,
    errors.TooManyRequests: 429,
    errors.Unavailable: 503,
}
"""An error of a class that is not here has the status of its nearest base class that is."""

MISSPELT = 0.8
"""From which likeness to a known field on (difflib's ratio) an unknown one is taken for it: `finish` for `finished`."""
MIN_BEGINNING = 4
"""From how many letters on a field's first words alone are taken for it."""
MAX_NAME_LOOKED_AT = 40
MAX_NAMES_LOOKED_AT = 20
BUG = "something went wrong on our side; it has been logged under the request id"
_FROM_HEADER = {
    "run_id": "run_id is required: pass run_id, or connect with the X-CtrlB-Run header set",
    "agent": "agent is required: pass agent, or connect with the X-CtrlB-Agent header set",
}


@dataclass(frozen=True, slots=True)
class Fields:
    """What a door read from a request: fields by name, and whether they are JSON values or bare text."""

    values: Mapping[str, Any]
    are_text: bool = False
    """Values of a query string, where 5 and "5" look alike."""
    fault: str = ""
    """What is wrong with them as a whole, to be said where no field can be named."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call's outcome, before a door gives it its form."""

    status: int
    answer: Answer
    headers: dict[str, str] = field(default_factory=dict)
    caller: Caller | None = None


def answer(
    operation: Operation,
    identify: Callable[[], Caller],
    read: Callable[[], Fields],
    ports: Ports,
) -> Answered:
    """Do what is asked of the operation, or say why not. Never raises.

    `identify` says who is calling and `read` what they sent; both may raise, and nothing is read of a
    caller who is not known.
    """
    caller: Caller | None = None
    try:
        if operation.asks_who:
            caller = identify()
            authorise(operation, caller)
        request = validate(operation, read())
        return Answered(operation.status, operation.run(request, caller, ports), caller=caller)
    except Exception as error:
        return refuse(error, caller)


def admit(let_in: Callable[[], Admitted]) -> Admitted | Answered:
    """What `let_in` returns, or the answer to one who cannot be let in. Never raises."""
    try:
        return let_in()
    except Exception as error:
        return refuse(error)


def authorise(operation: Operation, caller: Caller) -> None:
    """Raise Forbidden unless the caller's role allows the operation, and a key may call it at all."""
    if operation.persons_only and not caller.is_person:
        raise errors.Forbidden(
            f"{operation.name} is for a person signed in to CtrlB; a key is refused, whatever its role"
        )
    if operation.permission is not None and not caller.may(operation.permission):
        raise errors.Forbidden(f"your role does not allow {operation.name}: it needs {operation.permission}")


def validate(operation: Operation, fields: Fields) -> Request:
    """The request, or Invalid with the first field that is wrong."""
    values = {name: value for name, value in fields.values.items() if value is not None}
    for name in ("dataset", *operation.needs):
        if values.get(name) == "":
            del values[name]
    for name in operation.needs:
        if name not in values:
            raise errors.Invalid(_FROM_HEADER[name])
    _refuse_misspelt(operation, values)
    try:
        if fields.are_text:
            request = operation.request.model_validate_strings(values)
        else:
            request = operation.request.model_validate(values, strict=True)
    except ValidationError as error:
        raise errors.Invalid(first_fault(error, operation.body_field)) from None
    if fields.fault:
        raise errors.Invalid(fields.fault)
    return request


def _refuse_misspelt(operation: Operation, values: dict[str, Any]) -> None:
    """Raise Invalid for a field that is none but looks like one that is not given: what it says would be lost.

    Others that a request does not know are ignored, for clients may be newer than we are.
    """
    known = {field.alias or name for name, field in operation.request.model_fields.items()}
    unknown = [name for name in values if name not in known and len(name) <= MAX_NAME_LOOKED_AT and name.isascii()]
    if not unknown:
        return
    from difflib import get_close_matches  # few requests need it

    left_out = known - values.keys()
    for name in unknown[:MAX_NAMES_LOOKED_AT]:
        begun = [field for field in left_out if _begins(name, field)]
        if meant := begun if len(begun) == 1 else get_close_matches(name, left_out, n=1, cutoff=MISSPELT):
            raise errors.Invalid(f"{name}: there is no such field; {meant[0]} is meant")


def _begins(name: str, field: str) -> bool:
    """Whether the name is the field's first word or words: `expires` of `expires_days`, `lease` of `leaseSeconds`."""
    rest = field.removeprefix(name)
    return len(name) >= MIN_BEGINNING and rest != field and (rest.startswith("_") or rest[:1].isupper())


def refuse(error: Exception, caller: Caller | None = None) -> Answered:
    """The answer to an error. One that nobody foresaw is logged without its text, which may hold a body."""
    if not isinstance(error, errors.CtrlbError):
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        _log.error("bug", extra={"exception_name": type(error).__name__, "where": where})
        return Answered(500, ErrorAnswer(error=BUG), caller=caller)
    status = next(STATUSES[base] for base in type(error).__mro__ if base in STATUSES)
    shown = {} if error.code is None else {"code": error.code}
    return Answered(status, ErrorAnswer(error=error.message, **shown), _headers(error, status), caller)


def _headers(error: errors.CtrlbError, status: int) -> dict[str, str]:
    if isinstance(error, errors.Unavailable | errors.TooManyRequests):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, errors.MethodNotAllowed):
        return {"Allow": ", ".join(error.allow)}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}
