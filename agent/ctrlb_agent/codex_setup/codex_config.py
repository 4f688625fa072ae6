"""Changes of Codex's config.toml as text: what we write goes in or out, and every other line stays.

Pure, except for `installed`, which reads the file. Nothing is written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent.codex_setup import codex_file, codex_tables, codex_trust_keys
from ctrlb_agent.codex_setup.codex_block import BEGIN, END, NOTE, Block, Chunk, Refused, block_in, chunks_of
from ctrlb_agent.codex_setup.codex_by_hand import by_hand, value_at
from ctrlb_agent.codex_setup.codex_tables import EXPORTER, OTEL, SERVER, Otel, Table, is_our_command, rendered
from ctrlb_agent.codex_setup.toml_lines import BOM, BrokenToml, Statement, statements_of
from ctrlb_agent.codex_setup.toml_meaning import meaning_of
from ctrlb_agent.json_values import text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

OUR_NOTE = NOTE + "install.py --codex wrote these tables. It keeps what is added to them; --uninstall removes them."


class Change(NamedTuple):
    """A file's text as it is to be, and remarks on what is not as one might expect, each a line for a person."""

    text: str
    remarks: list[str]


class Installed(NamedTuple):
    """What of ours a config.toml has: the server's address with /mcp, each event's command, and whether it exports."""

    mcp_url: str
    commands: dict[str, str]
    otel: bool


def installed(codex_home: str) -> Installed | None:
    """What of ours is in the folder's config.toml, in the block or by hand. None: nothing, or no TOML."""
    try:
        return installed_in(codex_file.read(codex_home).text)
    except (BrokenToml, Refused):
        return None


def installed_in(text: str) -> Installed | None:
    """What of ours is in the text. Raises BrokenToml, or Refused for two blocks."""
    statements = statements_of(text)
    tree = meaning_of(statements).tree
    url = value_at(tree, (*SERVER, "url"))
    commands = {
        event: str(handler["command"])
        for event, _, handler in codex_trust_keys.handlers_in(tree)
        if is_our_command(handler.get("command"))
    }
    owned = _owned(statements, block_in(statements))
    if not commands and not owned:
        return None
    return Installed(text_of(url), commands, OTEL in owned or EXPORTER in owned)


def with_ours(text: str, url: str, folder: str, otel: Otel | None, config_paths: Collection[str]) -> Change:
    """The text with our tables, of the ctrlb-agent in `folder`; the same text when they are there already.

    Without `otel` an export that was set up before stays. `config_paths` are the names of this file by which Codex may
    know it. Raises BrokenToml when the text is none, and Refused when tables that others wrote are in the way.
    """
    statements = statements_of(text)
    meaning_of(statements)
    block = block_in(statements)
    chunks = _chunks(statements, block)
    tables = codex_tables.wanted_tables(url, folder, otel)
    adopted, remarks = by_hand(meaning_of(_others(statements, block, chunks)), tables)
    tables = [table for table in tables if table.path not in adopted]
    if otel is None:
        chunks = [chunk._replace(owned=None) if chunk.owned in (OTEL, EXPORTER) else chunk for chunk in chunks]
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    parts = list(_updated(chunks, tables, newline))
    if block is None:
        return Change(_appended(text, parts, newline) if parts else text, remarks)
    if block.is_whole and parts == [_ended(chunk.text, newline) for chunk in chunks if chunk.text]:
        return Change(text, remarks)
    before, after = _around(statements, block)
    marked = _marked(parts, newline)
    if not after and not text.endswith("\n"):
        marked = marked[: -len(newline)]
    return Change(codex_trust_keys.moved(text, before + marked + after, config_paths), remarks)


def without_ours(text: str, config_paths: Collection[str]) -> Change:
    """The text without our block; what others wrote in it stays in its place.

    What `with_ours` had made of a text becomes that text again, byte for byte, also if Codex trusted our hooks since.
    Raises BrokenToml and Refused.
    """
    statements = statements_of(text)
    block = block_in(statements)
    if block is None:
        return Change(text, _left_by_hand(statements))
    chunks = _chunks(statements, block)
    after = _around(statements, block)[1]
    kept = [chunk.text if chunk.owned is None else chunk.comments for chunk in chunks]
    newline = "\r\n" if statements[block.begin].text.endswith("\r\n") else "\n"
    middle = newline.join(_ended(part, newline) for part in kept if part)
    before = _before_the_block(statements, block)
    remarks = [
        f"removed with our tables: {statement.text.strip()}"
        for chunk in chunks
        for statement in _settings_of_the_users(chunk)
    ]
    if middle:
        middle = (newline if before else "") + middle
    rest = codex_trust_keys.moved(text, before + middle + after, config_paths)
    if rest == before and not text.endswith("\n"):
        rest = before[: -len(newline)]  # its last line had no end, see `_appended`
    if SERVER in _owned(statements, block):
        rest, lost = _without_subtables(rest)
        remarks += lost
    return Change(rest, [*remarks, *_left_by_hand(statements_of(rest))])


def _chunks(statements: Sequence[Statement], block: Block | None) -> list[Chunk]:
    return chunks_of(statements[block.begin : block.end]) if block else []


def _owned(statements: Sequence[Statement], block: Block | None) -> set[tuple[str, ...]]:
    return {chunk.owned for chunk in _chunks(statements, block) if chunk.owned}


def _around(statements: Sequence[Statement], block: Block) -> tuple[str, str]:
    before = "".join(statement.text for statement in statements[: block.begin])
    return before, "".join(statement.text for statement in statements[block.end :])


def _others(statements: Sequence[Statement], block: Block | None, chunks: Iterable[Chunk]) -> list[Statement]:
    """The statements that are not in our tables."""
    if block is None:
        return list(statements)
    within = [item for chunk in chunks if chunk.owned is None for item in chunk.statements]
    return [*statements[: block.begin], *within, *statements[block.end :]]


def _updated(chunks: Iterable[Chunk], tables: Sequence[Table], newline: str) -> Iterable[str]:
    """The block's tables: others' as they are, ours as wanted, each in its place; then those that were missing."""
    missing = {table.path: table for table in tables}
    for chunk in chunks:
        table = missing.pop(chunk.owned, None) if chunk.owned else None
        if table is not None:
            more = _lines_of_the_users(chunk, table)
            keys = [statement.path[0] for statement in more if statement.kind == "key"]
            lines = rendered(table, (statement.text.rstrip("\r\n") for statement in more), keys)
            yield "".join(comment.text for comment in chunk.above) + newline.join(lines) + newline
        elif chunk.owned is None and chunk.text:
            yield _ended(chunk.text, newline)
        elif chunk.owned is not None and chunk.comments:
            yield _ended(chunk.comments, newline)
    for table in missing.values():
        yield newline.join(rendered(table)) + newline


def _lines_of_the_users(chunk: Chunk, table: Table) -> list[Statement]:
    fixed = {key for key, _ in table.fixed}
    return [item for item in chunk.body if item.kind == "comment" or (item.path and item.path[0] not in fixed)]


def _settings_of_the_users(chunk: Chunk) -> list[Statement]:
    """Keys in a table of ours that we never write."""
    if not chunk.owned:
        return []
    example = codex_tables.wanted_tables("", "", Otel("", ()))
    ours = {key for table in example for key, _ in (*table.fixed, *table.defaults)}
    return [statement for statement in chunk.body if statement.kind == "key" and statement.path[0] not in ours]


def _marked(parts: Iterable[str], newline: str) -> str:
    return f"{BEGIN}{newline}{OUR_NOTE}{newline}{newline.join(parts)}{END}{newline}"


def _appended(text: str, parts: Iterable[str], newline: str) -> str:
    """The text, an empty line, and the block. A text whose last line has no end takes that of the block's last."""
    marked = _marked(parts, newline)
    if text.endswith("\n") or text in ("", BOM):
        return text + newline + marked
    return text + newline + newline + marked[: -len(newline)]


def _before_the_block(statements: Sequence[Statement], block: Block) -> str:
    """What stood before the block, without the empty line that `_appended` put there."""
    before = "".join(statement.text for statement in statements[: block.begin])
    last = statements[block.begin - 1].text.lstrip(BOM) if block.begin else ""
    return before[: -len(last)] if last in ("\n", "\r\n") else before


def _ended(text: str, newline: str) -> str:
    return text if text.endswith("\n") else text + newline


def _without_subtables(text: str) -> tuple[str, list[str]]:
    """The text without settings of our server's tools, without which Codex does not start once the server is gone."""
    kept: list[str] = []
    remarks: list[str] = []
    dropping = False
    for statement in statements_of(text):
        if statement.kind in ("table", "array"):
            dropping = statement.path[:2] == SERVER and len(statement.path) > 2
            if dropping and kept and not kept[-1].strip():
                del kept[-1]
        if dropping and statement.kind in ("table", "array", "key"):
            remarks.append(f"removed with our server: {statement.text.strip()}")
        else:
            kept.append(statement.text)
    return "".join(kept), remarks


def _left_by_hand(statements: Sequence[Statement]) -> list[str]:
    """Remarks on what of ours stands outside of any block."""
    meaning = meaning_of(statements)
    remarks = []
    if value_at(meaning.tree, SERVER) is not None:
        remarks.append("[mcp_servers.ctrlb] was not written by this installer: left as it is")
    if any(is_our_command(handler.get("command")) for _, _, handler in codex_trust_keys.handlers_in(meaning.tree)):
        remarks.append("hooks that run ctrlb-hook were not written by this installer: left as they are")
    return remarks
