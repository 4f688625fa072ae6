"""The scripts beside the template: what a build is finished with, and what a restore ends with."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra import copy_table
from infra.finish_build import CONSOLE, DIGEST, LAYER, WEB, finish
from tests.aws.stores import client, made_table, table_name


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build with one function, and a layer with some services and a package."""
    packages = tmp_path / LAYER / "python"
    for service in ("dynamodb", "s3", "ec2"):
        (packages / "botocore" / "data" / service).mkdir(parents=True)
    (packages / "botocore" / "data" / "endpoints.json").write_text("{}")
    (packages / "greeting.py").write_text("WORD = 'hello'\n")
    (tmp_path / "GreetFunction").mkdir()
    (tmp_path / "GreetFunction" / "greet.py").write_text("from greeting import WORD\nhandler = WORD.upper\n")
    return tmp_path


def test_only_the_services_that_are_called_are_kept(build: Path) -> None:
    finish(build)
    data = build / LAYER / "python" / "botocore" / "data"
    assert {path.name for path in data.iterdir()} == {"dynamodb", "s3", "endpoints.json"}


def test_the_console_is_built_with_its_files_as_they_are_now(build: Path) -> None:
    finish(build)
    (build / CONSOLE / "web" / "old.js").write_text("of the build before")
    finish(build)
    built = {path.name: path.read_bytes() for path in (build / CONSOLE / "web").iterdir()}
    assert built == {path.name: path.read_bytes() for path in WEB.iterdir()}


def test_what_is_compiled_needs_no_look_at_its_source_and_runs(build: Path) -> None:
    finish(build)
    (build / LAYER / "python" / "greeting.py").write_text("WORD = 'changed, and not looked at'\n")
    code = "import sys; sys.path[:0] = sys.argv[1:]; import greet; print(greet.handler())"
    paths = [str(build / "GreetFunction"), str(build / LAYER / "python")]
    done = subprocess.run([sys.executable, "-ISc", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout == "HELLO\n"


def test_a_change_of_the_layer_or_a_parameter_changes_each_functions_code_and_a_second_finish_does_not(
    build: Path,
) -> None:
    def finished(*parameters: str) -> str:
        finish(build, *parameters)
        return (build / "GreetFunction" / DIGEST).read_text()

    first = finished("Stage=prod", "SearchMode=off")
    assert finished("SearchMode=off", "Stage=prod") == first
    assert finished("Stage=prod") != first
    (build / LAYER / "python" / "greeting.py").write_text("WORD = 'servus'\n")
    assert finished("Stage=prod", "SearchMode=off") != first


def test_a_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="build first"):
        finish(tmp_path)


@pytest.mark.usefixtures("on_moto")
def test_a_copy_writes_the_items_of_a_prefix_beside_those_that_are_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in (source, target):
        made_table("SessionsTable", folder)
    names = [table_name("SessionsTable", folder) for folder in (source, target)]
    for number in range(60):
        put(names[0], f"acme#{number % 2}", number)
    put(names[1], "kept", 0)
    assert copy_table.main(["--from", names[0], "--to", names[1], "--pk-prefix", "acme#1"]) == 0
    found = client("dynamodb").scan(TableName=names[1])["Items"]
    assert sorted(item["pk"]["S"] for item in found) == ["acme#1"] * 30 + ["kept"]


def put(table: str, pk: str, number: int) -> Any:
    item = {"pk": {"S": pk}, "sk": {"S": f"row#{number:04}"}}
    return client("dynamodb").put_item(TableName=table, Item=item)
