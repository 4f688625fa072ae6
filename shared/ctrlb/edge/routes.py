"""The route table of laptop mode, read from template.yaml: the same routes and handlers as in the cloud."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from ctrlb.edge.http import Handler, refuse_unknown
from ctrlb.operations import OPERATIONS


@dataclass(frozen=True, slots=True)
class Route:
    """A method and path, and the module under functions/ that serves it."""

    method: str
    path: str
    module: str


def template_routes(template: Path) -> list[Route]:
    """The HttpApi events of the template's functions, `$default` apart."""
    resources = yaml.load(template.read_text("utf-8"), _TemplateLoader)["Resources"]
    return [
        Route(event["Properties"]["Method"].upper(), event["Properties"]["Path"], _module(function))
        for function in resources.values()
        if function["Type"] == "AWS::Serverless::Function"
        for event in function["Properties"].get("Events", {}).values()
        if event["Type"] == "HttpApi" and "Path" in event.get("Properties", {})
    ]


def laptop_routes() -> list[Route]:
    """The routes that only laptop mode has."""
    return [
        Route(operation.method, operation.path, operation.name) for operation in OPERATIONS if operation.laptop_only
    ]


class Router:
    """From a method and raw path to a handler, as API Gateway matches: literal segments first."""

    def __init__(self, routes: list[Route], functions: Path) -> None:
        self._load = _loader(functions)
        self._routes = sorted(
            ((route.path.split("/"), route) for route in routes), key=lambda pair: pair[1].path.count("{")
        )

    def find(self, method: str, raw_path: str) -> tuple[Handler, dict[str, str]]:
        """The handler and the path's parameters, decoded. Raises UnicodeDecodeError for a path that is not UTF-8."""
        asked = [unquote(segment, errors="strict") for segment in raw_path.split("/")]
        for segments, route in self._routes:
            if route.method in (method, "ANY") and _fits(segments, asked):
                parameters = {
                    known[1:-1]: given for known, given in zip(segments, asked, strict=True) if known.startswith("{")
                }
                return self._load(route.module), parameters
        return refuse_unknown, {}

    def load_all(self) -> None:
        """Import every handler, so that no request waits for it."""
        for _, route in self._routes:
            self._load(route.module)


def _fits(segments: list[str], asked: list[str]) -> bool:
    return len(segments) == len(asked) and all(
        known == given or (known.startswith("{") and given != "") for known, given in zip(segments, asked, strict=True)
    )


def _loader(functions: Path) -> Callable[[str], Handler]:
    handlers: dict[str, Handler] = {}

    def load(module: str) -> Handler:
        if module not in handlers:
            spec = importlib.util.spec_from_file_location(f"functions.{module}", functions / f"{module}.py")
            assert spec is not None
            assert spec.loader is not None  # the name comes from the template
            loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            handlers[module] = loaded.handler
        return handlers[module]

    return load


def _module(function: dict[str, Any]) -> str:
    handler: str = function["Properties"]["Handler"]
    return handler.partition(".")[0]


class _TemplateLoader(yaml.SafeLoader):
    """YAML with CloudFormation's tags (!Ref, !Sub, …), whose values no route needs."""


_TemplateLoader.add_multi_constructor("!", lambda loader, suffix, node: None)
