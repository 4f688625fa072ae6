"""How the node is put together and started."""

import json
import os
import urllib.request
from pathlib import Path

import pytest

from tests.opensearch import node
from tests.opensearch.node import OpenSearchNode, ToolMissing, assembled

KIBIBYTES_OF_A_GIBIBYTE = 1024 * 1024


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in Maven's place, to be written by the test; the project beside it has a pom.xml and no cache."""
    (tmp_path / "pom.xml").write_text("<project/>")
    monkeypatch.setattr(node, "HERE", tmp_path)
    monkeypatch.setattr(node, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path / "mvn"


def write_maven(script: Path, end: str) -> None:
    """A Maven that brings one library, counts its calls, and ends so."""
    script.write_text(f'#!/bin/sh\nlib="${{6#*=}}"\nmkdir "$lib" && touch "$lib/a.jar"\necho x >> "$0.calls"\n{end}\n')
    script.chmod(0o755)


def test_libraries_are_fetched_once_and_again_when_their_list_changes(maven: Path) -> None:
    write_maven(maven, "exit 0")
    first = assembled()
    assert [path.name for path in first.iterdir()] == ["a.jar"]
    assert assembled() == first
    (maven.parent / "pom.xml").write_text("<project></project>")
    assert assembled() != first
    assert (maven.parent / "mvn.calls").read_text() == "x\n" * 2


def test_libraries_that_were_fetched_in_part_are_not_taken_for_all(maven: Path) -> None:
    write_maven(maven, "echo no network; exit 1")
    with pytest.raises(RuntimeError, match="no network"):
        assembled()
    assert list((maven.parent / "cache").iterdir()) == []
    write_maven(maven, "exit 0")
    assert assembled().is_dir()


@pytest.mark.parametrize(("tool", "name"), [("java", "a Java Development Kit"), ("mvn", "Maven")])
def test_a_tool_that_is_missing_is_named(tool: str, name: str, maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(maven.parent))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ToolMissing, match=f"{name}.*`{tool}`"):
        assembled() if tool == "mvn" else OpenSearchNode(maven.parent)


def test_a_node_that_ends_at_once_is_reported_with_its_log(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_maven(maven, "exit 0")
    java = maven.parent / "java"
    java.write_text("#!/bin/sh\necho wrong flag >&2\n")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeError, match="ended; its log ends with:\nwrong flag"):
        OpenSearchNode(maven.parent)


@pytest.mark.opensearch
def test_a_node_answers_on_the_loopback_address_within_a_gibibyte(opensearch_node: OpenSearchNode) -> None:
    assert opensearch_node.url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(opensearch_node.url) as answer:
        assert json.load(answer)["version"]["distribution"] == "opensearch"
    status = Path(f"/proc/{opensearch_node.pid}/status")
    if status.exists():  # on Linux
        [peak] = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        assert int(peak) < KIBIBYTES_OF_A_GIBIBYTE
