"""Which files a tool call edits, and how an agent would claim them."""

import os
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent.paths import disk_ignores_case, relative_to, spelled_on_disk
from ctrlb_agent.transcripts.edits import edited_paths, patch_paths
from tests.agent.hook_process import recorded

CWD = "/work/app"
PATCH = """*** Begin Patch
*** Update File: src/old name.py
*** Move to: src/new/name.py
@@ def f():
-    return 1
 *** Delete File: a line of the file.py
+*** Add File: a line that is added.py
*** Add File: it's "quoted".txt
+one
  *** Delete File: gone.md
*** End Patch"""
PATCHED = ["src/old name.py", "src/new/name.py", 'it\'s "quoted".txt', "gone.md"]


@pytest.mark.parametrize(
    ("client", "name", "paths"),
    [
        ("claude", "PreToolUse-Write", ["/work/app/notes.txt"]),
        ("claude", "PreToolUse-Edit", ["/work/app/app.py"]),
        ("codex", "PreToolUse-apply_patch", ["/work/app/notes.txt"]),
        ("codex", "PreToolUse-Bash-apply_patch-heredoc", ["/work/app/viashell.txt"]),
        ("codex", "PreToolUse-Bash", []),
        ("claude", "PreToolUse-Read", []),
        ("claude", "PreToolUse-Agent", []),
        ("claude", "PreToolUse-mcp__ctrlb__whoami", []),
    ],
)
def test_what_the_clients_sent_edits_these_files(client: str, name: str, paths: list[str]) -> None:
    sent = recorded(client, name)
    assert edited_paths(sent["tool_name"], sent["tool_input"], sent["cwd"]) == paths


@pytest.mark.parametrize(
    ("tool", "field"),
    [("Write", "file_path"), ("Edit", "file_path"), ("MultiEdit", "file_path"), ("NotebookEdit", "notebook_path")],
)
@pytest.mark.parametrize(
    ("spelled", "path"),
    [
        ("/work/app/a.py", "/work/app/a.py"),
        ("a.py", "/work/app/a.py"),
        ("./src/../a.py", "/work/app/a.py"),
        ("../other/a.py", "/work/other/a.py"),
        ("//work//app/a.py", "/work/app/a.py"),
        ("with space/new\nline.py", "/work/app/with space/new\nline.py"),
        ("cafe\u0301.py", "/work/app/cafe\u0301.py"),
        ("a\u2028b.py", "/work/app/a\u2028b.py"),
    ],
)
def test_an_edit_tool_names_its_file(tool: str, field: str, spelled: str, path: str) -> None:
    assert edited_paths(tool, {field: spelled}, CWD) == [path]


@pytest.mark.parametrize("value", [None, 7, "", "  ", ["a.py"], {"a": 1}, "a\0b", "half \ud800 a pair"])
def test_what_can_be_no_file_is_none(value: object) -> None:
    assert edited_paths("Write", {"file_path": value}, CWD) == []
    assert edited_paths("Write", {}, CWD) == []


def test_a_patch_names_every_file_and_a_move_both() -> None:
    assert patch_paths(PATCH) == PATCHED
    assert edited_paths("apply_patch", {"command": PATCH}, CWD) == [f"{CWD}/{path}" for path in PATCHED]


def test_each_file_is_named_once_however_it_is_spelled() -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+1\n*** Update File: ./a.py\n@@\n-1\n+2\n*** End Patch"
    assert edited_paths("apply_patch", {"command": patch}, CWD) == ["/work/app/a.py"]


def test_a_patch_with_the_line_ends_of_windows_names_the_same_files() -> None:
    assert patch_paths(PATCH.replace("\n", "\r\n")) == PATCHED


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("apply_patch <<'EOF'\n{}\nEOF", ""),
        ("apply_patch '{}'", ""),
        ("cat <<EOF | apply_patch\n{}\nEOF", ""),
        ("applypatch <<EOF\n{}\nEOF\n", ""),
        ("cd src && apply_patch <<'EOF'\n{}\nEOF", "src/"),
        ("cd 'my src' && apply_patch <<'EOF'\n{}\nEOF", "my src/"),
        ('cd "my src"; apply_patch <<EOF\n{}\nEOF', "my src/"),
        ("set -e\ncd src\napply_patch <<EOF\n{}\nEOF", "src/"),
    ],
)
@pytest.mark.parametrize("tool", ["Bash", "shell", "exec_command"])
def test_a_shell_command_edits_what_it_hands_to_apply_patch(tool: str, command: str, folder: str) -> None:
    field = "cmd" if tool == "exec_command" else "command"
    assert edited_paths(tool, {field: command.replace("{}", PATCH)}, CWD) == [
        f"{CWD}/{folder}{path}" for path in PATCHED
    ]


def test_a_command_given_as_words_is_read_like_one_given_as_text() -> None:
    words = ["bash", "-lc", f"cd src && apply_patch <<'EOF'\n{PATCH}\nEOF"]
    assert edited_paths("shell", {"command": words}, CWD) == [f"{CWD}/src/{path}" for path in PATCHED]
    assert edited_paths("shell", {"command": ["apply_patch", PATCH]}, CWD) == [f"{CWD}/{path}" for path in PATCHED]


def test_two_patches_of_a_command_are_read_each_in_its_folder() -> None:
    one, two = (f"*** Begin Patch\n*** Add File: {name}\n+1\n*** End Patch" for name in ("one.py", "two.py"))
    command = f"cd a && apply_patch <<'E'\n{one}\nE\ncd ../b && apply_patch <<'E'\n{two}\nE"
    assert edited_paths("Bash", {"command": command}, CWD) == ["/work/app/a/one.py", "/work/app/b/two.py"]


@pytest.mark.parametrize(
    "command", [f"cat > example.txt <<EOF\n{PATCH}\nEOF", "grep -r 'apply_patch' .", "echo '*** Add File: x'", ""]
)
def test_a_command_that_only_speaks_of_patches_edits_nothing(command: str) -> None:
    assert edited_paths("Bash", {"command": command}, CWD) == []


def test_of_several_changes_of_folder_each_counts() -> None:
    command = f"cd src\n cd app &&cd x\r\n\n\tapply_patch <<'EOF'\n{PATCH}\nEOF"
    assert edited_paths("Bash", {"command": command}, CWD)[0] == f"{CWD}/src/app/x/src/old name.py"


LONG = 300_000
PATIENCE_S = 60.0  # of which a moment is needed, and hours if the time grew with the square of the length


REPEATED = {
    "space": ["\n", " ", "\n ", "\t", "\r\n"],
    "changes of folder": ["cd ", "cd a;", "cd a\n", "cd '", '(cd "', "(cd (", "\ncd\n", "\ncd \n", "&", "a/"],
    "patches": [
        "*** ",
        "*** Begin Patch",
        "*** Begin Patch\n*** End Patch\n",
        "*** Add File: ",
        "*** Add File: a\n",
        "*",
    ],
    "words": ["apply_patch", "apply"],
}


@pytest.mark.parametrize("repeated", REPEATED.values(), ids=REPEATED)
def test_no_text_is_so_repetitive_that_it_takes_long_to_read(repeated: list[str]) -> None:
    began_s = time.monotonic()
    for filling in (text * (LONG // len(text)) for text in repeated):
        for text in (f"{filling} apply_patch\n{PATCH}", f"apply_patch\n{PATCH}\ncd {filling}\n{PATCH}", f"x{filling}"):
            for tool in ("apply_patch", "Bash"):
                edited_paths(tool, {"command": text}, CWD)
        edited_paths("apply_patch", {"command": f"*** Begin Patch\n*** Update File: {filling}\n{filling}"}, CWD)
    assert time.monotonic() - began_s < PATIENCE_S


def test_blank_lines_before_a_patch_hide_none_of_its_files() -> None:
    command = "cd src" + "\n" * LONG + f"apply_patch <<'EOF'\n{PATCH}\nEOF"
    assert edited_paths("Bash", {"command": command}, CWD) == [f"{CWD}/src/{path}" for path in PATCHED]


@given(st.text(), st.text())
def test_no_text_is_too_odd_to_be_read(text: str, cwd: str) -> None:
    for tool in ("Write", "apply_patch", "Bash"):
        paths = edited_paths(tool, {"file_path": text, "command": f"apply_patch\n*** Begin Patch\n{text}"}, cwd)
        assert all(path.startswith("/") and path == os.path.normpath(path) for path in paths)


def test_a_path_is_claimed_relative_to_the_root(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    assert relative_to(root, f"{root}/src/app.py") == "src/app.py"
    assert relative_to(root, "src/app.py") == "src/app.py"
    assert relative_to(root, root) == "."
    assert relative_to("/", "/etc/hosts.d/x") == "etc/hosts.d/x"


def test_a_path_outside_of_the_root_stays_absolute(tmp_path: Path) -> None:
    root = f"{os.path.realpath(tmp_path)}/app"
    assert relative_to(root, f"{root}-two/a.py") == f"{root}-two/a.py"
    assert relative_to(root, "../a.py") == f"{tmp_path.resolve()}/a.py"


def test_a_linked_root_and_the_real_one_give_one_path(tmp_path: Path) -> None:
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    root = os.path.realpath(tmp_path / "real")
    assert relative_to(root, str(tmp_path / "link" / "src" / "new.py")) == "src/new.py"


def test_a_link_keeps_its_own_name(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    (tmp_path / "target.py").touch()
    (tmp_path / "link.py").symlink_to("target.py")
    assert relative_to(root, f"{root}/link.py") == "link.py"


def test_the_spelling_is_kept_if_the_links_are_not_to_be_followed(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    (tmp_path / "libs").mkdir()
    (tmp_path / "packages").symlink_to("libs")
    assert relative_to(root, f"{root}/packages/a.py") == "libs/a.py"
    assert relative_to(root, f"{root}/packages/a.py", follow=False) == "packages/a.py"


def test_a_folder_that_is_named_like_the_beginning_of_a_key_is_still_a_folder(tmp_path: Path) -> None:
    assert relative_to(os.path.realpath(tmp_path), "name:x/a.py") == "./name:x/a.py"


def test_where_the_disk_ignores_case_the_name_is_as_the_disk_has_it(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    (tmp_path / "Src" / "Inner").mkdir(parents=True)
    (tmp_path / "Src" / "App.py").touch()

    def claimed(path: str) -> str:
        return relative_to(root, path, lambda folder: True)

    assert claimed(f"{root}/src/app.PY") == "Src/App.py"
    assert claimed(f"{root}/SRC/inner/New.py") == "Src/Inner/New.py"
    assert claimed(f"{Path(root).parent}/{Path(root).name.upper()}/src/app.py") == "Src/App.py"
    assert relative_to(root, f"{root}/src/app.PY", lambda folder: False) == "src/app.PY"


def test_a_decomposed_name_is_found_under_its_composed_one() -> None:
    listing = {"/r": [unicodedata.normalize("NFD", "Café")], "/r/" + unicodedata.normalize("NFD", "Café"): ["A.py"]}
    found = spelled_on_disk("/r", "café/a.py", lambda folder: listing[folder])
    assert unicodedata.normalize("NFC", found) == "Café/A.py"


def test_a_disk_that_tells_case_apart_is_known_by_asking_it(tmp_path: Path) -> None:
    lower, upper = tmp_path / "folder", tmp_path / "FOLDER"
    lower.mkdir()
    ignores_case = upper.exists()
    assert disk_ignores_case(str(lower)) == ignores_case
    upper.mkdir(exist_ok=True)
    assert disk_ignores_case(str(lower)) == ignores_case
    assert not disk_ignores_case(str(tmp_path / "missing"))
