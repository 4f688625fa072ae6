"""What requests and answers are made of: the bases, the kinds of fields, and their limits."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import to_json

from ctrlb.domain.ids import DATASET_PATTERN, MAX_ID_CHARS, dataset_fault, id_fault

MAX_RECORDS = 500
MAX_PATHS = 64
MAX_RESOURCE_CHARS = 4_096
MAX_NAME_CHARS = 1_024
MAX_TERM_CHARS = 1_000
MAX_COMMAND_CHARS = 10_000
MIN_TIMESTAMP_US = 946_684_800_000_000
"""2000-01-01."""
MAX_TIMESTAMP_US = 4_102_444_800_000_000
"""2100-01-01."""
MAX_LIST_BYTES = 700_000
"""Of a list in an answer whose items can be long. A function in AWS answers with at most 6 MB, all escapes counted."""
MAX_SEQ = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""


def _id(value: str) -> str:
    if fault := id_fault(value):
        raise ValueError(fault)
    return value


def _optional_id(value: str) -> str:
    return value and _id(value)


def _dataset(value: str) -> str:
    if fault := dataset_fault(value):
        raise ValueError(fault)
    return value


def no_flag(value: Any) -> Any:
    """The value, unless it is true or false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


def _printable(value: str) -> str:
    """The text, unless a list of it would not show what it is."""
    if not value.isprintable():
        raise ValueError("should hold printable characters only")
    return value


def without_nul(value: str) -> str:
    """The text, unless it holds a NUL character."""
    if "\x00" in value:
        raise ValueError("may not hold a NUL character")
    return value


def _whole(value: Any) -> Any:
    """Accept 1.0 for 1: clients are told to write numbers as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_ID_SCHEMA: dict[str, Any] = {"minLength": 1, "maxLength": MAX_ID_CHARS, "pattern": r"^[^/\\\u0000-\u001f\u007f]*$"}

Id = Annotated[str, AfterValidator(_id), Field(json_schema_extra=_ID_SCHEMA)]
OptionalId = Annotated[str, AfterValidator(_optional_id), Field(json_schema_extra={**_ID_SCHEMA, "minLength": 0})]
DatasetName = Annotated[str, AfterValidator(_dataset), Field(json_schema_extra={"pattern": DATASET_PATTERN})]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARS), AfterValidator(without_nul)]
Label = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]
"""What a person calls a thing of theirs, so that they know it again in a list."""
Whole = Annotated[int, BeforeValidator(_whole)]


class Wire(BaseModel):
    """What all models share. Building their validators waits for their first use, for a fast start."""

    model_config = ConfigDict(frozen=True, defer_build=True, allow_inf_nan=False)


class Request(Wire):
    """What a caller asks."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and None in fields.values():
            return {name: value for name, value in fields.items() if value is not None}
        return fields


class Answer(Wire):
    """What a caller gets. Fields that are not set are left out of the answer."""


AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


def fitting(items: Iterable[AnyAnswer]) -> list[AnyAnswer]:
    """The items from the first on, as many as take MAX_LIST_BYTES."""
    taken: list[AnyAnswer] = []
    left_bytes = MAX_LIST_BYTES
    for item in items:
        left_bytes -= len(to_json(item))
        if left_bytes < 0:
            break
        taken.append(item)
    return taken


class DatasetRequest(Request):
    """A call on a sessions dataset."""

    dataset: DatasetName = Field(
        default="", validate_default=False, description="The sessions dataset; left out, the workspace's."
    )


class RunRequest(DatasetRequest):
    """A call on a run."""

    run_id: Id = Field(default="", validate_default=False, description="The run; left out, the X-CtrlB-Run header's.")


class AgentRequest(RunRequest):
    """A call of an agent of a run."""

    agent: Id = Field(
        default="",
        validate_default=False,
        description="Your agent id, unique in the run; left out, the X-CtrlB-Agent header's.",
    )


Resource = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_RESOURCE_CHARS,
        description="A file path, for example src/app.py, or a task name.",
    ),
]
Cwd = Annotated[
    str,
    Field(
        max_length=MAX_RESOURCE_CHARS,
        description="Your working directory. An absolute path under it is keyed relative to it.",
    ),
]
