"""Who may import whom. The arrows keep the rules pure, the doors thin and the SDKs in their adapters."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "shared" / "ctrlb"
OPERATIONS = frozenset(
    {"audit", "claims", "ingest", "keys", "members", "notes", "runs", "service", "sessions", "settings", "sign_in"}
)
BY_EVERYBODY = frozenset({"ctrlb"})  # the package itself, for its version

MAY_IMPORT: dict[str, frozenset[str]] = {
    "domain": frozenset({"domain"}),
    "ports": frozenset({"domain", "ports"}),
    "models": frozenset({"domain", "models", "pydantic", "pydantic_core"}),
    "operations of the table": frozenset({"decisions", "domain", "ports", "models", "notes", "openapi"}),
    "decisions": frozenset({"domain", "ports"}),
    "operation": frozenset({"domain", "models"}),
    "operations": frozenset({"models", "operation", *OPERATIONS}),
    "openapi": frozenset({"models", "operations", "pydantic"}),
    "answers": frozenset({"domain", "models", "operations", "ports", "pydantic"}),
    "adapters": frozenset({"domain", "ports", "adapters", "botocore", "jwt", "urllib3"}),
    "wiring": frozenset({"adapters", "domain", "ports"}),
    "edge": frozenset(
        {"answers", "domain", "edge", "models", "operations", "ports", "sign_in", "wiring"}
        | {"aws_lambda_powertools", "mangum", "mcp", "mcp_types", "pydantic_core", "uvicorn", "yaml"}
    ),
    "workspaces": frozenset({"domain", "members", "ports"}),
    "laptop": frozenset({"domain", "edge", "keys", "models", "ports", "sign_in", "workspaces"}),
    "__main__": frozenset({"domain", "edge", "keys", "laptop", "models", "ports", "wiring", "workspaces", "pydantic"}),
    "functions": frozenset({"edge", *OPERATIONS}),
}


def layer_of(path: Path) -> str:
    if path.parent == PROJECT / "functions":
        return "functions"
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "operations of the table" if name in OPERATIONS else name


def imported(path: Path) -> Iterator[str]:
    """The layers and packages that the module imports, the standard library apart."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "ctrlb":
            names = [
                f"ctrlb.{alias.name}" if (PACKAGE / f"{alias.name}.py").exists() else "ctrlb" for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            parts = name.split(".")
            if parts[0] not in sys.stdlib_module_names:
                yield parts[1] if parts[0] == "ctrlb" and len(parts) > 1 else parts[0]


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]
MODULES += sorted((PROJECT / "functions").glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    assert set(imported(path)) - BY_EVERYBODY <= MAY_IMPORT[layer_of(path)]


def test_the_mcp_sdk_is_imported_by_its_door_alone() -> None:
    """It costs a second to import."""
    users = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if {"mcp", "mcp_types"} & set(imported(path))]
    assert [str(path) for path in users] == ["edge/mcp.py"]


def parts_imported(path: Path) -> Iterator[str]:
    """The parts of the agents' side that the module imports: packages, and the modules beside them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "ctrlb_agent":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ctrlb_agent."):
            yield node.module.split(".")[1]


AGENT_MODULES = sorted((PROJECT / "agent").rglob("*.py"))


AGENT_MAY_IMPORT: dict[str, frozenset[str]] = {
    "transcripts": frozenset({"json_values", "paths"}),
    "redacting": frozenset({"state"}),
    "sessions": frozenset({"paths", "settings", "state"}),
    "uploading": frozenset(
        {"calls", "client_folders", "connection", "json_values", "paths"}
        | {"redacting", "sessions", "settings", "state", "transcripts"}
    ),
    "edit_check": frozenset(
        {"calls", "complaints", "connection", "hook", "json_values", "paths"}
        | {"sessions", "settings", "state", "transcripts"}
    ),
    "codex_setup": frozenset({"addresses", "client_folders", "redacting", "json_values", "settings", "state"}),
    "command_line": frozenset(
        {"addresses", "calls", "client_folders", "codex_setup", "connection", "json_values", "paths"}
        | {"sessions", "settings", "state", "uploading"}
    ),
}
"""What the parts of the agents' side know of each other."""


def test_what_runs_on_a_users_machine_is_looked_at() -> None:
    assert {path.parent.name for path in AGENT_MODULES} >= AGENT_MAY_IMPORT.keys()


@pytest.mark.parametrize("part", AGENT_MAY_IMPORT)
def test_a_part_of_the_agents_side_imports_only_what_it_may(part: str) -> None:
    modules = [path for path in AGENT_MODULES if path.parent.name == part]
    known = {name for path in modules for name in parts_imported(path)}

    assert known - {part, "__version__"} <= AGENT_MAY_IMPORT[part]


@pytest.mark.parametrize("path", AGENT_MODULES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_what_runs_on_a_users_machine_needs_the_standard_library_alone(path: Path) -> None:
    assert set(imported(path)) <= {"ctrlb_agent"}


@pytest.mark.parametrize("path", AGENT_MODULES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_what_runs_on_a_users_machine_is_read_by_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))
