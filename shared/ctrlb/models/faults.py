"""What is wrong with a request, in words for whoever sent it."""

from pydantic import ValidationError

_WORDS = {
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "float_type": "should be a number",
    "greater_than_equal": "should be {ge:,} or more",
    "int_parsing": "should be a whole number",
    "int_parsing_size": "should be a whole number of fewer digits",
    "int_type": "should be a whole number",
    "less_than": "should be below {lt:,}",
    "less_than_equal": "should be {le:,} or less",
    "list_type": "should be an array",
    "model_type": "should be an object",
    "string_too_long": "should have at most {max_length:,} characters",
    "string_too_short": "should not be empty",
    "string_type": "should be text",
    "string_unicode": "should be text, and holds half of a surrogate pair",
    "too_long": "should have at most {max_length:,} items, not {actual_length:,}",
}
"""By the validator's name for the fault; what is not here is said in its own words. No least length is over 1."""


def first_fault(error: ValidationError, rows: str | None = None) -> str:
    """`row 3: seq is required`, `resource: should be text`, `paths[2]: …`; `rows` fills a whole body."""
    fault = error.errors(include_url=False, include_input=False)[0]
    path = list(fault["loc"])
    row = ""
    if rows and path[:1] == [rows]:
        row = f"row {path[1]}: " if len(path) > 1 else ""
        path = path[2:]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if fault["type"] == "missing":
        return f"{row}{name} is required"
    if fault["type"] in _WORDS:
        what = _WORDS[fault["type"]].format(**fault.get("ctx", {}))
    else:
        what = fault["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return f"{row}{name}: {what}" if name else f"{row}{what}"
