"""The reader of TOML that keeps places: it agrees with Python's own, and loses no character."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent.codex_setup.toml_lines import BrokenToml, Moment, quoted, statements_of
from ctrlb_agent.codex_setup.toml_meaning import meaning_of

DOCUMENTS = [
    "",
    "# only a comment",
    'a = 1\nb = "x" # [not.a.header]\n',
    'a = """\n[not.a.header]\n# not a comment\n"""\nb = 2\n',
    "a = '''\n'[x]'''\nb = 2\n",
    'a = """two ""quotes"" inside"""\nb = """"four""""\n',
    'a = """one \\\n   line"""\n',
    'a = "\\u00e9\\t\\"\\\\"\nb = \'C:\\path\'\n',
    "a = [\n  1, # one\n  [2, 3],\n]\nb = []\n",
    'a = { x = 1, y.z = "2" }\nb = {}\n',
    "a = 0x1F\nb = -1_000\nc = 1.5e3\nd = -inf\ne = true\nf = +7\n",
    "a.b = 1\na.c.d = 2\n\"q.r\" = 3\n's' . t = 4\n",
    "[a]\nx = 1\n[a.b]\ny = 2\n[a.b.c]\n",
    "[a.b.c]\nx = 1\n[a]\ny = 2\n",
    "[[h.e]]\nm = 1\n[[h.e.hooks]]\nc = 1\n[[h.e.hooks]]\nc = 2\n[[h.e]]\n[[h.e.hooks]]\n[h.state.'k:0:0']\nv = 1\n",
    "  [ a . 'b c' ]  # note\r\n\tx = 1\r\n",
    "a = 1 \r\n\r\n# x\r\n[b]\r\n",
]
BROKEN = [
    ("a = 1\nb = \n", 2),
    ("[a\n", 1),
    ('a = "x\nb = 1\n', 1),
    ('ok = 1\na = """x\ny\n', 2),
    ("a = 1 b = 2\n", 1),
    ("a\n", 1),
    ("a = [1\n", 2),
    ("a = yes\n", 1),
    ("a = 1\nb = 0b9\n", 2),
    ("a = 0x_\n", 1),
    pytest.param(f"a = {'9' * 5_000}\n", 1, id="more digits than Python reads"),
    ('a = "\\q"\n', 1),
    ('a = "\\uD800"\n', 1),
    ("[a]\n\n[a]\n", 3),
    ("a = 1\n[a]\n", 2),
    ("a = 1\na = 2\n", 2),
    ("a = {}\n[a.b]\n", 2),
    ("[a]\n[[a]]\n", 2),
    ("a = []\n[[a]]\n", 2),
    ("a.b = 1\n[a]\n", 2),
    ("a = 1\n\n\nb = [\n1,\n2 3]\n", 6),
    ("a = " + "[" * 100 + "]" * 100, 1),
]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_means_what_pythons_reader_says(text: str) -> None:
    statements = statements_of(text)
    assert "".join(statement.text for statement in statements) == text
    assert meaning_of(statements).tree == tomllib.loads(text)


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_a_broken_document_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(BrokenToml) as refused:
        meaning_of(statements_of(text))
    assert refused.value.line == line


def test_an_inline_table_may_take_several_lines_as_codex_allows() -> None:
    assert meaning_of(statements_of("a = {\n  x = 1, # one\n  y = 2,\n}\n")).tree == {"a": {"x": 1, "y": 2}}


def test_a_time_is_no_string() -> None:
    (statement,) = statements_of("a = 1979-05-27 07:32:00")
    assert statement.value != "1979-05-27 07:32:00"
    assert statement.value == Moment("1979-05-27 07:32:00")


def test_every_statement_knows_its_line() -> None:
    text = "\ufeffa = [\n1,\n]\n# c\n\n[t]\n"
    assert [(item.kind, item.line) for item in statements_of(text)] == [
        ("key", 1),
        ("comment", 4),
        ("blank", 5),
        ("table", 6),
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_can_be_quoted_and_read_back(text: str) -> None:
    written = f"a = {quoted(text)}\n"
    assert tomllib.loads(written)["a"] == text
    assert statements_of(written)[0].value == text


@given(st.text("[]{}\"'=.,#\\ab1 \t\r\n", max_size=30))
def test_what_this_reader_takes_and_what_pythons_takes_mean_the_same(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        expected = None
    try:
        statements = statements_of(text)
        found = meaning_of(statements).tree
    except BrokenToml:
        assert expected is None
    else:
        assert "".join(statement.text for statement in statements) == text
        assert expected in (None, found)
