"""What is read of a transcript that grows, breaks off, is rewritten or goes away."""

import io
import json
import os
import time
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent import state
from ctrlb_agent.json_values import object_in
from ctrlb_agent.settings import Settings
from ctrlb_agent.uploading import cursor
from ctrlb_agent.uploading.cursor import Cursor, Line

HERE = Settings("http://here.example", "key", "agent_sessions")
ELSEWHERE = HERE._replace(url="http://elsewhere.example")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CONTENT = st.one_of(
    TEXTS.map(lambda text: json.dumps({"text": text}, ensure_ascii=False).encode()),
    st.sampled_from([b"", b"[1]", b"{", b'{"text": "\xff\xc3"}', b"\xf0\x9f\x98", b'{"text": "a"}\r']),
).map(lambda content: content + b"\n")


def read_on(stream: IO[bytes], kept: Cursor) -> tuple[list[Line], Cursor]:
    """The new lines, and the cursor behind them."""
    place = cursor.resumed(stream, kept)
    found = list(cursor.lines(stream, place.offset, place.number))
    end, number = (found[-1].end, found[-1].number) if found else (place.offset, place.number)
    return found, cursor.moved(stream, place, end, number, {"lines": number})


def start_of(path: Path) -> Cursor:
    return cursor.fresh(str(path), "claude", HERE)


def values(lines: list[Line]) -> list[Any]:
    return [one.value for one in lines]


@given(st.lists(CONTENT, max_size=12), st.lists(st.integers(0, 400), max_size=8))
def test_however_a_file_grows_its_lines_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], cuts: list[int]
) -> None:
    whole = b"".join(contents)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    path = tmp_path_factory.mktemp("grown") / "t.jsonl"
    path.touch()
    at_once = list(cursor.lines(io.BytesIO(whole), 0, 0))
    kept, found = start_of(path), []
    for start, end in zip([0, *places], places, strict=False):
        with path.open("ab") as stream:
            stream.write(whole[start:end])
        with path.open("rb") as stream:
            lines, kept = read_on(stream, kept)
        found += lines
    assert found == at_once
    assert [one.number for one in found] == list(range(1, len(contents) + 1))
    assert (kept.offset, kept.number) == (len(whole), len(contents))


def test_a_line_without_an_end_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": ')
    with path.open("rb") as stream:
        first, kept = read_on(stream, start_of(path))
    with path.open("ab") as stream:
        stream.write(b"2}\n")
    with path.open("rb") as stream:
        second, _ = read_on(stream, kept)
    assert values(first) == [{"a": 1}]
    assert second == [Line(2, {"b": 2}, 9, 18)]


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    assert object_in(b'{"a": "x\xffy"}') == {"a": "x\ufffdy"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b"[" * 100_000, b"\x00"])
def test_what_is_no_json_object_is_none(content: bytes) -> None:
    assert object_in(content) is None


def test_of_a_huge_line_only_the_length_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "MAX_LINE_BYTES", 20)
    monkeypatch.setattr(cursor, "PIECE_BYTES", 7)
    fits = b'{"a": "' + b"x" * 10 + b'"}\n'
    huge = b'{"a": "' + b"x" * 11 + b'"}\n'
    found = list(cursor.lines(io.BytesIO(fits + huge + b'{"b": 1}\n' + huge[:-1]), 0, 0))
    assert [(one.size, one.is_too_long) for one in found] == [(20, False), (21, True), (9, False)]
    assert values(found) == [{"a": "x" * 10}, None, {"b": 1}]


class GrowsWhileRead(io.BytesIO):
    """A file whose last line is finished between two reads."""

    rest = b""

    def readline(self, size: int | None = -1, /) -> bytes:
        found = super().readline(size)
        place = self.tell()
        self.seek(0, os.SEEK_END)
        self.write(self.rest)
        self.rest = b""
        self.seek(place)
        return found


def test_a_line_that_is_finished_while_it_is_read_is_whole() -> None:
    stream = GrowsWhileRead(b'{"a": ')
    stream.rest = b"1}\n"
    assert list(cursor.lines(stream, 0, 0)) == [Line(1, {"a": 1}, 9, 9)]


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": 1}\n',  # cut
        b"",
        b'{"A": 1}\n{"b": 2}\n{"c": 3}\n',  # another beginning
        b'{"a": 1}\n{"B": 2}\n{"c": 3}\n',  # another end
    ],
)
def test_a_file_that_is_not_the_one_that_was_read_is_read_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": 2}\n')
    with path.open("rb") as stream:
        _, kept = read_on(stream, start_of(path))
    path.write_bytes(content)
    with path.open("rb") as stream:
        place = cursor.resumed(stream, kept)
        lines, _ = read_on(stream, kept)
    assert (place.offset, place.number, place.memory) == (0, 0, {})
    assert values(lines) == [json.loads(one) for one in content.splitlines()]


def test_a_file_that_takes_anothers_place_is_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "t.jsonl", tmp_path / "other.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    with path.open("rb") as stream:
        _, kept = read_on(stream, start_of(path))
    other.write_bytes(b'{"a": 1}\n{"b": 2}\n')
    other.replace(path)
    with path.open("rb") as stream:
        assert cursor.resumed(stream, kept).offset == 0


def test_a_file_that_only_grew_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": "%s"}\n' % (b"x" * 3_000))
    with path.open("rb") as stream:
        _, kept = read_on(stream, start_of(path))
    with path.open("ab") as stream:
        stream.write(b'{"b": 2}\n')
    with path.open("rb") as stream:
        place = cursor.resumed(stream, kept)
    assert (place, place.memory) == (kept, {"lines": 1})


def test_a_cursor_is_kept_as_it_was(agent_home: Path, tmp_path: Path) -> None:
    kept = start_of(tmp_path / "t.jsonl")._replace(offset=3, number=1, memory={"seen": {"ä": 1}}, head="h", tail="t")
    file = cursor.file_of(kept.path, HERE)
    cursor.save(file, kept)
    assert cursor.load(file) == kept
    assert Path(file).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"offset": 1}', "\0"])
def test_a_cursor_that_cannot_be_understood_is_none(agent_home: Path, content: str) -> None:
    file = Path(cursor.file_of("/t.jsonl", HERE))
    file.write_text(content)
    assert cursor.load(str(file)) is None


def test_a_cursor_with_a_value_of_another_kind_is_none(agent_home: Path) -> None:
    file = cursor.file_of("/t.jsonl", HERE)
    wrongs: list[dict[str, Any]] = [{"offset": "1"}, {"offset": -1}, {"memory": []}, {"path": 1}, {"number": None}]
    for wrong in wrongs:
        state.write_json(file, {**start_of(Path("/t.jsonl"))._asdict(), **wrong})
        assert cursor.load(file) is None


def test_one_file_has_one_cursor_for_each_server(agent_home: Path, tmp_path: Path) -> None:
    path, link = tmp_path / "t.jsonl", tmp_path / "link.jsonl"
    path.touch()
    link.symlink_to(path)
    assert cursor.file_of(str(link), HERE) == cursor.file_of(str(path), HERE)
    assert cursor.file_of(str(path), ELSEWHERE) != cursor.file_of(str(path), HERE)


def test_a_transcript_is_remembered_before_it_is_written(agent_home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    cursor.note(str(path), "codex", HERE)
    assert cursor.unfinished(HERE) == []
    path.write_bytes(b"{}\n")
    assert [(one.path, one.client) for one in cursor.unfinished(HERE)] == [(str(path), "codex")]


def test_noting_a_transcript_again_keeps_its_cursor(agent_home: Path, tmp_path: Path) -> None:
    kept = start_of(tmp_path / "t.jsonl")._replace(offset=3)
    cursor.save(cursor.file_of(kept.path, HERE), kept)
    cursor.note(kept.path, "claude", HERE)
    assert cursor.load(cursor.file_of(kept.path, HERE)) == kept


def test_what_grew_shrank_or_was_replaced_is_unfinished(agent_home: Path, tmp_path: Path) -> None:
    for name in ("done", "grew", "shrank", "replaced", "elsewhere"):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(b"{}\n{}\n")
        with path.open("rb") as stream:
            _, kept = read_on(stream, start_of(path))
        server = ELSEWHERE if name == "elsewhere" else HERE
        cursor.save(cursor.file_of(str(path), server), kept._replace(url=server.url))
    for name, content in (("grew", b"{}\n{}\n{"), ("shrank", b"{}\n"), ("elsewhere", b"")):
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    (tmp_path / "new").write_bytes(b"{}\n{}\n")
    (tmp_path / "new").replace(tmp_path / "replaced.jsonl")
    for age, name in enumerate(("grew", "shrank", "replaced")):
        os.utime(tmp_path / f"{name}.jsonl", (1_000 + age, 1_000 + age))
    assert [Path(one.path).stem for one in cursor.unfinished(HERE)] == ["grew", "shrank", "replaced"]


def test_the_cursor_of_a_file_that_is_gone_is_forgotten_after_90_days(agent_home: Path, tmp_path: Path) -> None:
    files = {name: cursor.file_of(str(tmp_path / name), HERE) for name in ("old", "recent", "there")}
    (tmp_path / "there").write_bytes(b"{}\n")
    for name in files:
        cursor.note(str(tmp_path / name), "claude", HERE)
    long_ago = time.time() - cursor.KEPT_AFTER_FILE_GONE_S - 60
    for name in ("old", "there"):
        os.utime(files[name], (long_ago, long_ago))
    cursor.unfinished(HERE)
    assert [name for name, file in files.items() if Path(file).exists()] == ["recent", "there"]
    assert not Path(cursor.lock_of(files["old"])).exists()
