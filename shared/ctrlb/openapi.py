"""The OpenAPI 3.1 document of the HTTP interface, made from the models and the table of operations."""

import functools
import re
from typing import Any

from pydantic import BaseModel

from ctrlb import __version__
from ctrlb.models import ErrorAnswer
from ctrlb.operations import OPERATIONS, Operation

_REF = "#/components/schemas/{model}"
_ERRORS = {
    400: "A field fails validation, or a limit is passed.",
    401: "The request carries no user, or its key or session is refused.",
    403: "The role or a dataset grant does not allow the call, or a row names another user.",
    404: "There is no such thing, or none that you may see.",
    413: "The body is larger than 4 MiB.",
    429: "The key or person sends too much; send the same again after Retry-After seconds.",
    503: "A store did not answer in time; send the same again after Retry-After seconds.",
}
_AGENT_HEADER = {
    "name": "X-CtrlB-Agent",
    "in": "header",
    "description": "The agent, where `agent` is left out. Empty or beginning with ${ counts as absent.",
    "schema": {"type": "string"},
}

Json = dict[str, Any]


@functools.cache
def document() -> Json:
    """The document, as JSON values."""
    schemas: Json = {}
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    _schema(ErrorAnswer, schemas, "serialization")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CtrlB",
            "version": __version__,
            "description": "Claims between coding agents, and a memory of what their sessions did. "
            "Times are microseconds since the epoch.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or a person's token."}
            },
        },
    }


def _operation(operation: Operation, schemas: Json) -> Json:
    request = _schema(operation.request, schemas, "validation")
    in_path = re.findall(r"{(\w+)}", operation.path)
    fields = {name: schema for name, schema in request.get("properties", {}).items() if name not in in_path}
    required = [name for name in request.get("required", []) if name in fields]
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": _without_default(request["properties"][name])}
        for name in in_path
    ]
    described: Json = {
        "operationId": operation.name,
        "summary": _first_sentence(operation.request),
        "description": operation.request.__doc__,
        "security": [{"bearer": []}] if operation.asks_who else [],
        "responses": _responses(operation, schemas),
    }
    if operation.method in ("GET", "DELETE"):
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema}
            if operation.method == "DELETE"
            else {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in fields.items()
        ]
    if "agent" in fields:
        parameters.append(_AGENT_HEADER)
    if operation.method != "GET" and fields:
        described["requestBody"] = {
            "required": operation.method != "DELETE",
            "content": {"application/json": {"schema": _body(operation, fields, required)}},
        }
    return {**described, "parameters": parameters}


def _body(operation: Operation, fields: Json, required: list[str]) -> Json:
    if operation.body_field:
        rows: Json = fields[operation.body_field]
        return rows
    schema: Json = {"type": "object", "properties": fields}
    return {**schema, "required": required} if required else schema


def _responses(operation: Operation, schemas: Json) -> Json:
    answer = _schema(operation.answer, schemas, "serialization")
    if operation.http_fields:
        shown = {name: schema for name, schema in answer["properties"].items() if name in operation.http_fields}
        answer = {"type": "object", "properties": shown, "required": sorted(operation.http_fields)}
    else:
        answer = {"$ref": _REF.format(model=operation.answer.__name__)}
    responses: Json = {str(operation.status): _response(operation.answer.__doc__ or "", answer)}
    error = {"$ref": _REF.format(model=ErrorAnswer.__name__)}
    for status, meaning in _ERRORS.items():
        responses[str(status)] = _response(meaning, error)
    return responses


def _response(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _schema(model: type[BaseModel], schemas: Json, mode: Any) -> Json:
    """The model's schema; it and those it refers to join `schemas`."""
    schema = model.model_json_schema(ref_template=_REF, mode=mode)
    for name, definition in schema.pop("$defs", {}).items():
        schemas[name] = definition
    if mode == "serialization":
        schemas[model.__name__] = schema
    return schema


def _without_default(schema: Json) -> Json:
    return {name: value for name, value in schema.items() if name != "default"}


def _first_sentence(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").split(".")[0].strip()
