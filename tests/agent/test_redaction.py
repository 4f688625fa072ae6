"""Redaction before upload: every secret goes, the rest stays, JSON stays JSON."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlb_agent.redacting.redaction import IDENTITY, redact, redact_row
from ctrlb_agent.redacting.secret_formats import REDACTED
from tests.agent import secret_corpus
from tests.agent.secret_corpus import Case
from tests.cpu_time import cpu_s

PROJECT = Path(__file__).resolve().parents[2]
SLOW = [unit.replace("§", " ") for unit in (secret_corpus.FOLDER / "slow.txt").read_text(encoding="utf-8").splitlines()]
"""What a text repeats that would make a pattern slow if it were not linear."""
SLOW_LINES = [unit.replace("\\n", "\n") for unit in SLOW if "\\n" in unit]
COLOURED = {
    "\x1b[32mpass\x1b[0mword=hunt\x1b[1mer2\x1b[0m": f"password={REDACTED}",
    ".env:DB_\x1b[01;31m\x1b[KPASSWORD\x1b[m\x1b[K=hunter2": f".env:DB_PASSWORD={REDACTED}",
    '\x1b[34;1m"token"\x1b[0m\x1b[1;39m:\x1b[0m \x1b[0;32m"a1b2c3d4e5f6"\x1b[0m': f'"token": "{REDACTED}"',
    "it said \\u001b[31mPASSWORD\\u001b[0m=hunter2": f"it said PASSWORD={REDACTED}",
}
"""Texts of a terminal in which colours hide a secret, and what they are to become."""
TOKENS = secret_corpus.tokens()
SECRETS = secret_corpus.secrets()
CLEAN = secret_corpus.clean()
SLOW_CHARS = 300_000
SLOW_LIMIT_S = 10.0
"""What so long a text may take that was made to be slow; a pattern that is not linear takes minutes."""


def title_of(case: Case) -> str:
    return case.title


def shape_of(value: Any) -> Any:
    """The value with its strings emptied, keys as well: what is left is how it is built."""
    if isinstance(value, dict):
        return [shape_of(inner) for inner in value.values()]
    if isinstance(value, list):
        return [shape_of(inner) for inner in value]
    return "" if isinstance(value, str) else value


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_of_a_known_form_goes_wherever_it_stands(kind: str) -> None:
    for case in secret_corpus.places(TOKENS[kind]):
        assert redact(case.text) == case.redacted, case.title


@pytest.mark.parametrize("case", SECRETS, ids=title_of)
def test_a_secret_goes_and_what_is_around_it_stays(case: Case) -> None:
    assert redact(case.text) == case.redacted


@pytest.mark.parametrize("case", SECRETS, ids=title_of)
def test_redacting_twice_changes_nothing_more(case: Case) -> None:
    assert redact(case.redacted) == case.redacted


@pytest.mark.parametrize("case", SECRETS, ids=title_of)
def test_no_part_of_a_secret_is_left_in_the_body_of_a_tool_call(case: Case) -> None:
    body = json.dumps({"file_path": "/work/app/x", "content": case.text}, ensure_ascii=False)
    redacted = redact_row({"body": body})["body"]

    assert json.loads(redacted) == {"file_path": "/work/app/x", "content": redact(case.text)}


@pytest.mark.parametrize("case", CLEAN, ids=title_of)
def test_what_only_looks_like_a_secret_stays(case: Case) -> None:
    assert redact(case.text) == case.text


@pytest.mark.parametrize("case", CLEAN, ids=title_of)
def test_what_only_looks_like_a_secret_stays_in_json_and_when_it_is_escaped(case: Case) -> None:
    body = json.dumps({"content": case.text})
    escaped = json.dumps(case.text)[1:-1]

    assert redact(body) == body
    assert redact(f"it said {escaped} and no more") == f"it said {escaped} and no more"


def test_the_corpus_is_as_large_as_was_promised() -> None:
    assert len(SECRETS) >= 120
    assert len(CLEAN) >= 120
    assert len(TOKENS) >= 60
    assert len({case.title for case in [*SECRETS, *CLEAN]}) == len(SECRETS) + len(CLEAN)


def project_files() -> list[Path]:
    """The project's own text that is no test's: source, documents, locks and recorded sessions."""
    folders = ("agent", "shared", "functions", "infra", "docs", "requirements", "web", "tests/data/agent")
    found = [*PROJECT.iterdir(), *(file for folder in folders for file in (PROJECT / folder).rglob("*"))]
    left_out = {"__pycache__", "node_modules"}
    corpus = PROJECT / "tests/data/agent/redaction"
    return [file for file in found if file.is_file() and not left_out & {*file.parts} and corpus not in file.parents]


def test_the_projects_own_text_stays_as_it_is() -> None:
    changed: dict[str, set[str]] = {}
    for file in project_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for line, redacted in zip(text.split("\n"), redact(text).split("\n"), strict=True):
            if line != redacted:
                changed.setdefault(str(file.relative_to(PROJECT)), set()).add(line.strip())

    assert changed == {}


@pytest.mark.parametrize("text", COLOURED)
def test_colours_that_hide_a_secret_go_with_it(text: str) -> None:
    assert redact(text) == COLOURED[text]
    assert json.loads(redact(json.dumps([text]))) == [COLOURED[text]]


@pytest.mark.parametrize("unit", [*SLOW, *SLOW_LINES])
def test_a_long_text_that_was_made_to_be_slow_is_not(unit: str) -> None:
    text = unit * (SLOW_CHARS // len(unit))

    started_s = time.process_time()
    redact(text)

    assert time.process_time() - started_s < cpu_s(SLOW_LIMIT_S)


@pytest.mark.parametrize("newline", ["\n", "\\n"])
def test_a_manifest_with_a_long_gap_in_a_value_is_not_slow(newline: str) -> None:
    text = newline.join(["kind: Secret", "data:", f"  a: x{' ' * 60_000}y", "---", ""]) * 3

    started_s = time.process_time()
    redacted = redact(text)

    assert time.process_time() - started_s < cpu_s(SLOW_LIMIT_S)
    assert redacted == newline.join(["kind: Secret", "data:", f"  a: {REDACTED}", "---", ""]) * 3


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_long_value_of_a_manifest_is_replaced_whole(quote: str) -> None:
    text = f"kind: Secret\ndata:\n  release: {quote}{'SDRzSUFBQUF' * 9_000}{quote}\n"

    assert redact(text) == f"kind: Secret\ndata:\n  release: {quote}{REDACTED}{quote}\n"


def test_a_megabyte_of_base64_stays_as_it_is() -> None:
    text = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 23_000

    assert redact(text) == text


class TestJson:
    """A text that is JSON."""

    def test_is_kept_to_the_byte_but_for_its_secrets(self) -> None:
        text = ' {"a" :1.0,"b": [1e400, -0,\t"x\\/y", "\\u00e9"], "password":"hunter2" ,"a": "two"}\n'

        assert redact(text) == text.replace("hunter2", REDACTED)

    def test_is_looked_at_without_its_escapes(self) -> None:
        assert redact('{"note": "p\\u0061ssword\\u003dhunter2"}') == f'{{"note": "password={REDACTED}"}}'

    def test_keeps_all_its_members_when_keys_are_secrets(self) -> None:
        tokens = [TOKENS["GitHub personal"], TOKENS["GitHub OAuth"], TOKENS["npm"]]
        redacted = json.loads(redact(json.dumps(dict.fromkeys(tokens, 1))))

        assert redacted == {REDACTED: 1, f"{REDACTED}~2": 1, f"{REDACTED}~3": 1}

    def test_is_looked_into_under_the_name_of_a_secret(self) -> None:
        text = json.dumps({"SecretString": json.dumps({"user": "bob", "password": "hunter2"})})

        assert json.loads(json.loads(redact(text))["SecretString"]) == {"user": "bob", "password": REDACTED}

    def test_may_be_nested_deeper_than_python_can_go(self) -> None:
        text = "[" * 100_000 + '"password=hunter2"' + "]" * 100_000

        assert redact(text) == text.replace("hunter2", REDACTED)

    def test_may_have_half_a_character_in_it(self) -> None:
        redacted = redact('{"password": "hunter2", "note": "\\ud83d token=a1b2c3d4"}')

        assert redacted == f'{{"password": "{REDACTED}", "note": "\\ud83d token={REDACTED}"}}'


secret_texts = st.sampled_from([case.text for case in SECRETS] + list(TOKENS.values()))
pieces = st.one_of(
    st.text(max_size=20), secret_texts, st.sampled_from(["\n", " ", '"', "\\", "=", ": ", "password", "token"])
)
texts = st.lists(pieces, max_size=8).map("".join)
names = st.one_of(
    st.text(max_size=8), st.sampled_from(["password", "apiKey", "Authorization", "name", "value", "--token"])
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@given(texts)
def test_redacting_any_text_twice_changes_nothing_more(text: str) -> None:
    redacted = redact(text)

    assert redact(redacted) == redacted


@given(json_values, st.booleans(), st.sampled_from([None, 2]))
def test_any_json_stays_json_of_the_same_shape(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    redacted = redact(text)

    assert shape_of(json.loads(redacted)) == shape_of(value)
    assert redact(redacted) == redacted


@given(st.lists(secret_texts, min_size=1, max_size=3), json_values)
def test_no_token_is_left_in_any_json(secrets: list[str], value: Any) -> None:
    token = "ghp_" + "Zq7Xw6Vu5Ts4Rr3Pp2Nn1Mm0Ll9Kk8Jj7Hh6"
    text = json.dumps([value, {"text": f"see {token} now", "more": json.dumps({"a": token})}, secrets])

    assert token not in redact(text)


class TestRow:
    """A row that is uploaded."""

    def test_has_no_secret_in_any_of_its_text(self) -> None:
        token = TOKENS["GitHub personal"]
        row = redact_row(
            {
                "body": json.dumps({"command": f"export GITHUB_TOKEN={token}", "timeout": 10}),
                "command": f"export GITHUB_TOKEN={token}",
                "paths": json.dumps(["src/app.py", f"keys/{token}.txt"]),
                "cwd": f"/work/{token}",
                "git_branch": f"fix-{token}",
                "note": {"deep": [f"Bearer {token}"]},
                "api_key": "a1b2c3d4e5f6",
            }
        )

        assert row == {
            "body": json.dumps({"command": f"export GITHUB_TOKEN={REDACTED}", "timeout": 10}),
            "command": f"export GITHUB_TOKEN={REDACTED}",
            "paths": json.dumps(["src/app.py", f"keys/{REDACTED}.txt"]),
            "cwd": f"/work/{REDACTED}",
            "git_branch": f"fix-{REDACTED}",
            "note": {"deep": [f"Bearer {REDACTED}"]},
            "api_key": REDACTED,
        }

    def test_is_the_same_row_however_its_identity_looks(self) -> None:
        token = TOKENS["GitHub personal"]
        row = dict.fromkeys(IDENTITY, f"password={token}")

        assert redact_row(row) == row

    def test_keeps_its_numbers_and_flags(self) -> None:
        row = {"_timestamp": 1793000000000000, "seq": 3, "cost_usd": 0.25, "is_error": False, "input_tokens": 12.0}

        assert redact_row(row) == row
        assert redact_row(row) is not row

    @given(st.dictionaries(st.sampled_from([*sorted(IDENTITY), "body", "command", "paths", "cwd", "x"]), json_values))
    def test_is_redacted_whatever_is_in_it(self, row: dict[str, Any]) -> None:
        redacted = redact_row(row)

        assert list(redacted) == list(row)
        assert all(redacted[column] == row[column] for column in row if column in IDENTITY)
        assert redact_row(redacted) == redacted

    @given(st.lists(texts, max_size=4))
    def test_keeps_its_paths_a_list_of_as_many(self, paths: list[str]) -> None:
        redacted = json.loads(redact_row({"paths": json.dumps(paths)})["paths"])

        assert len(redacted) == len(paths)
        assert all(isinstance(path, str) for path in redacted)
