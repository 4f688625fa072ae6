"""The contract's "Resource keys": the vectors, and what holds for every text that a caller may send."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctrlb.domain.errors import Invalid
from ctrlb.domain.resource_keys import MAX_CHARS, resource_key

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "resource_keys.json").read_text(encoding="utf-8")
)["cases"]
CWD = "/work/app"

# Pieces that meet a rule, so that chance puts the rules beside each other.
PIECES = [
    *("/", "\\", "//", ".", "..", "./", "../", "c:", "C:/", " ", "\t", "\u2003", "\x00"),
    *("path:", "name:", "task:", ".py", ".7z", "e", "\u0301", "J\u030c", "\u0130", "\u03a3", "\u212a", CWD),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=10).map("".join)
cwds = st.none() | st.sampled_from([CWD, "C:\\work", "c:/", "/"]) | texts

NAMES = ["src", "App", "a.b", "x y", "...", "café"]
segments = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[list[str], str]:
    """The segments of a path inside CWD, and one of the ways to write it."""
    parts = draw(segments)
    text = draw(st.sampled_from(["", "./", f"{CWD}/", f"{CWD}//./", "../app/", "\\work\\app\\"]))
    for part in parts[:-1]:
        text += part + draw(st.sampled_from(["/", "//", "/./", "/up/../", "\\", "\\.\\", "/up/and/../../"]))
    return parts, text + parts[-1] + draw(st.sampled_from(["", "/", "/.", "/up/..", " ", "\n"]))


@pytest.mark.parametrize("case", VECTORS, ids=[ascii((case["resource"], case.get("cwd"))) for case in VECTORS])
def test_the_vectors_decide(case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(Invalid, match=r"^resource: "):
            resource_key(case["resource"], case.get("cwd"))
    else:
        assert resource_key(case["resource"], case.get("cwd")) == case["key"]


@settings(derandomize=True, max_examples=2_000, deadline=None)
@given(texts, cwds)
@example("./C:/x", None)
@example("/work/app/ x", CWD)
@example("./c:/y", "c:/")
@example("/work/app/a /", CWD)
def test_a_key_is_its_own_key_with_and_without_the_cwd_or_the_text_is_refused(resource: str, cwd: str | None) -> None:
    try:
        key = resource_key(resource, cwd)
    except Invalid as refused:
        named = refused.message.startswith(("resource: ", "cwd: "))
        assert named
        return
    assert key.startswith(("path:", "name:"))
    assert resource_key(key, cwd) == key
    assert resource_key(key) == key


@settings(derandomize=True, max_examples=500, deadline=None)
@given(spellings())
def test_every_spelling_of_a_file_has_one_key(spelling: tuple[list[str], str]) -> None:
    parts, text = spelling
    assert resource_key(f"path:{text}", CWD) == "path:" + "/".join(parts)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(segments, segments)
def test_two_files_have_two_keys(one: list[str], other: list[str]) -> None:
    same_key = resource_key("path:" + "/".join(one), CWD) == resource_key("path:" + "/".join(other), CWD)
    assert same_key == (one == other)


@pytest.mark.parametrize("resource", ["E:\\x", "E:/x", "e:/x", "e:\\\\x\\", "path:E:\\x"])
def test_a_drive_letter_is_the_same_in_both_cases(resource: str) -> None:
    assert resource_key(resource) == "path:e:/x"


@pytest.mark.parametrize(
    ("resource", "key"),
    [
        ("PATH:Makefile", "path:Makefile"),
        ("path: src/app.py", "path:src/app.py"),
        (" src/app.py\n", "path:src/app.py"),
        ("name:src/app.py", "name:src/app.py"),
        ("a.extensions1", "name:a.extensions1"),
        ("a.extension1", "path:a.extension1"),
        ("план.док", "path:план.док"),
        ("/../x.py", "path:/x.py"),
        ("src/..", "path:."),
        ("../../x.py", "path:../../x.py"),
        ("a/../../x.py", "path:../x.py"),
    ],
)
def test_spellings_beside_the_vectors(resource: str, key: str) -> None:
    assert resource_key(resource) == key


@pytest.mark.parametrize("cwd", ["", "  ", "app", "../app"])
def test_a_cwd_that_does_not_say_where_it_is_changes_nothing(cwd: str) -> None:
    assert resource_key("../x.py", cwd) == "path:../x.py"
    assert resource_key("/work/app/x.py", cwd) == "path:/work/app/x.py"


@pytest.mark.parametrize("text", ["a" * MAX_CHARS, "a/" * (MAX_CHARS // 2)])
@pytest.mark.parametrize("prefix", ["", "path:", "name:"])
def test_4096_characters_are_allowed_and_not_one_more(prefix: str, text: str) -> None:
    assert resource_key(resource_key(prefix + text)) == resource_key(prefix + text)
    with pytest.raises(Invalid, match=r"^resource: it is over 4,096 characters"):
        resource_key(f"{prefix}{text}a")


def test_a_key_that_a_long_cwd_makes_too_long_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^resource: it is over 4,096 characters"):
        resource_key("../x.py", "/a" * (MAX_CHARS // 2))


@pytest.mark.parametrize("cwd", ["/" + "a" * MAX_CHARS, "/a\nb", "/\ud800"])
def test_a_bad_cwd_is_named_as_such(cwd: str) -> None:
    with pytest.raises(Invalid, match=r"^cwd: "):
        resource_key("x.py", cwd)


@pytest.mark.parametrize("resource", ["a\ud800.py", "\udfff", "name:\udc00"])
def test_half_of_a_surrogate_pair_is_refused(resource: str) -> None:
    with pytest.raises(Invalid, match=r"^resource: "):
        resource_key(resource)
