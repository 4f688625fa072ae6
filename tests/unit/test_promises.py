"""Every promise of the contract has a test that names it, and no test names a promise that there is not."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
LATER = "later"


def promises() -> dict[str, list[str]]:
    """The ids of each document, as they stand in its sections."""
    documents = tomllib.loads((TESTS / "promises.toml").read_text())
    return {name: [id for section in sections.values() for id in section] for name, sections in documents.items()}


def named_in_tests() -> set[str]:
    """The ids that markers of tests name."""
    return {id for path in TESTS.rglob("*.py") for id in _named_in(ast.parse(path.read_text()), path)}


def _named_in(tree: ast.Module, path: Path) -> Iterator[str]:
    for test in ast.walk(tree):
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in filter(_is_promise, test.decorator_list):
                assert isinstance(call, ast.Call)
                assert test.name.startswith("test_"), f"{path.name}: {test.name} is no test"
                for argument in call.args:
                    assert isinstance(argument, ast.Constant), f"{path.name}: {test.name} computes its promise"
                    yield str(argument.value)


def _is_promise(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.promise"


def test_every_promise_is_named_by_a_test() -> None:
    kept = {id for document, ids in promises().items() if document != LATER for id in ids}
    assert kept - named_in_tests() == set()


def test_every_promise_that_a_test_names_is_one_that_is_kept() -> None:
    kept = {id for document, ids in promises().items() if document != LATER for id in ids}
    assert named_in_tests() - kept == set()


def test_no_two_promises_have_one_id() -> None:
    counted = Counter(id for ids in promises().values() for id in ids)
    assert [id for id, times in counted.items() if times > 1] == []


def test_every_promise_is_a_sentence() -> None:
    documents = tomllib.loads((TESTS / "promises.toml").read_text())
    sentences = [text for sections in documents.values() for section in sections.values() for text in section.values()]
    assert [text for text in sentences if not text.endswith(".")] == []
