"""The documents name all that there is, and nothing that there is not."""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from ctrlb import answers
from ctrlb.__main__ import _parser
from ctrlb.domain import errors
from ctrlb.domain.access import ROLES
from ctrlb.domain.detectors import Detector
from ctrlb.domain.resource_keys import resource_key
from ctrlb.domain.rows import Settings
from ctrlb.domain.words import has_term, parse_term, plain, words_of
from ctrlb.models import Record, SettingsAnswer
from ctrlb.operations import MCP_PATH, OPERATIONS, Operation
from tests.documents import DOCUMENTS, PROJECT, anchors, links, prose, sections, table

API = (PROJECT / "docs" / "api.md").read_text()
README = (PROJECT / "README.md").read_text()
OPERATING = (PROJECT / "docs" / "operating.md").read_text()
CODE = re.compile(r"MCP_[A-Z]+(?:_[A-Z]+)*")
EACH_DOCUMENT = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
EACH_OPERATION = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def section_of(operation: Operation) -> str:
    return sections(API, 3)[operation.name]


def facts(operation: Operation) -> str:
    """The line of an operation's section that says where it is and who may call it."""
    return " · ".join(
        [
            f"`{operation.method} {operation.path}`",
            "MCP tool" if operation.tool else "HTTP only",
            *(["persons only"] if operation.persons_only else []),
            *(["laptop mode only"] if operation.laptop_only else []),
            *([f"needs `{operation.permission}`"] if operation.permission else []),
            *([] if operation.asks_who else ["needs no key"]),
            f"answers {operation.status}",
        ]
    )


def first_cells(rows: list[list[str]]) -> list[str]:
    return [row[0].strip("`") for row in rows]


def answer_fields(schema: dict[str, Any], definitions: dict[str, Any]) -> Iterator[str]:
    """The names of an answer's fields, those of objects in lists as `hits[].seq`."""
    for name, kind in schema["properties"].items():
        item = kind.get("items", {}).get("$ref")
        if item is None:
            yield name
        else:
            inner = definitions[item.rpartition("/")[2]]
            yield from (f"{name}[].{field}" for field in answer_fields(inner, definitions))


def documented_default(name: str, schema: dict[str, Any], operation: Operation | None) -> str:
    if operation and f"{{{name}}}" in operation.path:
        return "path"
    if operation and name in operation.needs:
        return f"`X-CtrlB-{name.title()}`"
    if "default" not in schema:
        return "required"
    return "none" if schema["default"] in ("", None) else f"`{json.dumps(schema['default'])}`"


def bounds(schema: dict[str, Any]) -> set[str]:
    """The numbers and words that a field is limited to, as the documents write them; ids have a table of their own."""
    kinds = [schema, *schema.get("anyOf", []), schema.get("items", {})]
    numbers = {
        kind[bound]
        for kind in kinds
        for bound in ("minimum", "maximum", "exclusiveMaximum", "maxLength", "maxItems")
        if bound in kind and "pattern" not in kind
    }
    return {f"{number:,}" for number in numbers} | {f"`{word}`" for kind in kinds for word in kind.get("enum", ())}


def assert_rows_are_the_models(rows: list[list[str]], model: type[BaseModel], operation: Operation | None) -> None:
    schema = model.model_json_schema()
    fields = schema.get("properties", {})
    assert sorted(first_cells(rows)) == sorted(fields)
    for name, default, meaning in ((row[0].strip("`"), row[1], row[2]) for row in rows):
        assert default == documented_default(name, fields[name], operation), name
        missing = [bound for bound in bounds(fields[name]) if not re.search(rf"(?<![\d,]){bound}(?![\d,]\d)", meaning)]
        assert not missing, f"{name} is limited by {missing}"


def test_each_operation_has_a_section_and_each_section_an_operation() -> None:
    assert sorted(sections(API, 3)) == sorted(
        [operation.name for operation in OPERATIONS]
        + ["Names and limits", "Datasets", "Runs and agents", "Limits", "Codes"]
    )


@EACH_OPERATION
def test_its_route_door_permission_and_status_are_documented(operation: Operation) -> None:
    assert facts(operation) in section_of(operation).splitlines()


@EACH_OPERATION
def test_its_request_fields_are_documented_with_their_defaults_and_limits(operation: Operation) -> None:
    assert_rows_are_the_models(table(section_of(operation), "Field"), operation.request, operation)


@EACH_OPERATION
def test_its_answer_fields_are_documented(operation: Operation) -> None:
    schema = operation.answer.model_json_schema(mode="serialization", by_alias=True)
    expected = list(answer_fields(schema, schema.get("$defs", {})))
    assert first_cells(table(section_of(operation), "Answer")) == expected


@EACH_OPERATION
def test_it_has_an_example(operation: Operation) -> None:
    path = re.sub(r"{\w+}", "[^/?\"' ]+", operation.path)
    assert re.search(rf'\$CTRLB_URL{path}[?"\s]', API)


def test_the_columns_of_a_row_are_documented_with_their_defaults_and_limits() -> None:
    section = sections(API, 3)["upload_records"]
    assert_rows_are_the_models(table(section, "Row"), Record, None)


def test_every_status_of_an_error_is_documented_and_no_other() -> None:
    documented = first_cells(table(sections(API, 2)["Errors"], "status"))
    assert documented == [str(status) for status in sorted({500, *answers.STATUSES.values()})]


def test_every_code_of_an_error_is_documented_with_its_status() -> None:
    expected = {kind.code: answers.refuse(kind("")).status for kind in _coded(errors.CtrlbError)}
    documented = {row[0].strip("`"): int(row[1]) for row in table(sections(API, 2)["Errors"], "code")}
    assert documented == expected


def _coded(kind: type[errors.CtrlbError]) -> Iterator[type[errors.CtrlbError]]:
    for each in kind.__subclasses__():
        if each.code is not None:
            yield each
        yield from _coded(each)


def test_every_permission_and_role_is_documented() -> None:
    rows = table(sections(API, 2)["Who may do what"], "permission")
    documented = {
        role: {row[0].strip("`") for row in rows if row[column] == "yes"} for column, role in enumerate(ROLES, start=2)
    }
    assert documented == {role: set(permissions) for role, permissions in ROLES.items()}
    assert {operation.permission for operation in OPERATIONS} - {None} <= set(first_cells(rows))


def test_every_tool_of_the_mcp_server_is_documented() -> None:
    rows = table(sections(API, 2)["The MCP server"], "tool")
    documented = {row[0].strip("`"): row[1] for row in rows}
    assert documented == {
        operation.name: "writes" if operation.writes else "reads" for operation in OPERATIONS if operation.tool
    }


def test_every_setting_is_documented_with_its_default() -> None:
    defaults = SettingsAnswer(**asdict(Settings())).model_dump(by_alias=True)
    documented = {row[0].strip("`"): row[2] for row in table(sections(API, 3)["change_settings"], "Field")}
    for name, default in defaults.items():
        written = default if isinstance(default, str) else json.dumps(default)
        assert re.search(rf"a new workspace has `?{written}`?$", documented[name]), name


def test_every_detector_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`:", sections(API, 3)["get_run"]))
    assert documented == set(get_args(Detector))


def test_the_examples_of_resource_keys_are_keyed_so() -> None:
    for resource, cwd, key in table(API, "resource"):
        assert resource_key(resource.strip("`"), cwd.strip("`") or None) == key.strip("`"), resource


def test_the_examples_of_words_are_found_so() -> None:
    for text, terms, found in table(API, "text"):
        for term in re.findall(r"`([^`]+)`", terms):
            words = words_of(plain(text.strip("`")))
            assert has_term(words, parse_term(term)) == found.startswith("yes"), (text, term)


@EACH_DOCUMENT
def test_every_route_that_a_document_names_is_there(document: Path) -> None:
    named = set(re.findall(r"`(GET|POST|PUT|DELETE) (/[^\s`?]*)`", document.read_text()))
    served = {(operation.method, operation.path) for operation in OPERATIONS} | {("POST", MCP_PATH)}
    assert named - served == set()


@EACH_DOCUMENT
def test_every_code_that_a_document_names_is_there(document: Path) -> None:
    assert set(CODE.findall(document.read_text())) <= {kind.code for kind in _coded(errors.CtrlbError)}


@EACH_DOCUMENT
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in links(document.read_text()):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.is_relative_to(PROJECT), f"{link} leads out of the project"
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target.read_text()), f"{link} names no heading"


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):.*## ", (PROJECT / "Makefile").read_text(), re.MULTILINE))


@EACH_DOCUMENT
def test_every_make_target_that_a_document_names_is_there(document: Path) -> None:
    named = re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", document.read_text(), re.MULTILINE)
    assert set(named) - make_targets() == set()


def test_every_make_target_is_documented() -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z0-9-]*)", README + OPERATING))
    assert make_targets() - named == set()


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Each command of the command line, as its words, with its options."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for group in groups:
        for word, inner in group.choices.items():
            yield from commands(inner, (*words, word))
    if not groups:
        options = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
        yield " ".join(words), options - {"--help"}


@EACH_DOCUMENT
def test_every_command_line_in_a_document_is_understood(document: Path) -> None:
    for line in re.findall(r"-m ctrlb ((?:index|keys|serve|sign-in|workspace)\b[^|`)#\n]*)", document.read_text()):
        _parser().parse_args(shlex.split(line))


def test_every_command_and_option_of_the_command_line_is_documented() -> None:
    rows = table(OPERATING, "command")
    documented = {
        re.sub(r"[`<].*", "", row[0].strip("`")).strip(): set(re.findall(r"--[a-z-]+", row[1])) for row in rows
    }
    assert documented == dict(commands(_parser()))


@EACH_DOCUMENT
def test_no_document_names_a_place_on_somebodys_machine(document: Path) -> None:
    assert not re.search(r"/home/|/Users/|/tmp/|/root/", prose(document.read_text()))
