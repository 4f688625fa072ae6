"""The marked block in config.toml, and which of the tables in it are ours.

Codex writes its own tables into the block: the trust in hooks below the hooks, further servers below the first. So a
table is ours not because it stands there, but because it stands there and has the name of one that we write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctrlb_agent.codex_setup.codex_tables import EXPORTER, OTEL, SERVER, is_our_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctrlb_agent.codex_setup.toml_lines import Statement

BEGIN = "# >>> ctrlb-agent >>>"
END = "# <<< ctrlb-agent <<<"
NOTE = "# ctrlb-agent: "
"""What comments of ours begin with."""

_FAMILIES = ("hooks", "otel", "mcp_servers")
LEFTOVER = ("",)
"""Owned, but to be written elsewhere: our hook in a group to which the user added another."""


class Refused(Exception):
    """The file is left as it is. The text says why, and what to do."""


class Block(NamedTuple):
    """The place of the block: the statements from `begin` up to, without, `end`, marks included if it is whole."""

    begin: int
    end: int
    is_whole: bool


class Chunk(NamedTuple):
    """A table in the block: its header, the comments right above, and its lines. `owned` is its path if it is ours.

    The first chunk has no header: it is what stands above the first table.
    """

    above: list[Statement]
    header: Statement | None
    body: list[Statement]
    owned: tuple[str, ...] | None = None

    @property
    def statements(self) -> list[Statement]:
        return [*self.above, *([self.header] if self.header else []), *self.body]

    @property
    def text(self) -> str:
        return "".join(statement.text for statement in self.statements)

    @property
    def comments(self) -> str:
        """The user's comments on a table of ours."""
        return "".join(statement.text for statement in (*self.above, *self.body) if statement.kind == "comment")


def block_in(statements: Sequence[Statement]) -> Block | None:
    """Where the block is, or None when there is none. Raises Refused for two.

    `codex mcp remove` can take one of the marks away, with the table that it stood above. Then the block reaches as far
    as the tables are of kinds that we write.
    """
    begins = [at for at, statement in enumerate(statements) if _is(statement, BEGIN)]
    ends = [at for at, statement in enumerate(statements) if _is(statement, END)]
    if len(begins) > 1 or len(ends) > 1 or (begins and ends and begins[0] > ends[0]):
        lines = ", ".join(str(statements[at].line) for at in sorted(begins + ends))
        raise Refused(
            f"the marks of ctrlb-agent stand in lines {lines}: one pair is expected. Remove all but one block."
        )
    if begins and ends:
        return Block(begins[0], ends[0] + 1, is_whole=True)
    if begins:
        others = (at for at in range(begins[0], len(statements)) if _is_of_another(statements[at]))
        return Block(begins[0], next(others, len(statements)), is_whole=False)
    if ends:
        first = ends[0]
        for at in range(ends[0] - 1, -1, -1):
            if _is_of_another(statements[at]):
                break
            if statements[at].kind in ("table", "array"):
                first = at
        while first and statements[first - 1].text.startswith(NOTE):
            first -= 1
        return Block(first, ends[0] + 1, is_whole=False)
    return None


def chunks_of(statements: Sequence[Statement]) -> list[Chunk]:
    """The block's tables in order, without our marks and notes, and without blank lines around them."""
    chunks = [Chunk([], None, [])]
    for statement in statements:
        if statement.kind in ("table", "array"):
            above = _taken_comments(chunks[-1].body)
            chunks.append(Chunk(above, statement, []))
        elif not (_is(statement, BEGIN) or _is(statement, END) or statement.text.startswith(NOTE)):
            chunks[-1].body.append(statement)
    for chunk in chunks:
        while chunk.body and chunk.body[0].kind == "blank":
            del chunk.body[0]
        while chunk.body and chunk.body[-1].kind == "blank":
            del chunk.body[-1]
    owned = dict(_owned(chunks))
    return [chunk._replace(owned=owned.get(at)) for at, chunk in enumerate(chunks)]


def _is(statement: Statement, mark: str) -> bool:
    return statement.kind == "comment" and statement.text.strip() == mark


def _is_of_another(statement: Statement) -> bool:
    return statement.kind in ("table", "array") and statement.path[0] not in _FAMILIES


def _taken_comments(body: list[Statement]) -> list[Statement]:
    """The comments at the end of a table's lines, which belong to the next table. They are taken away there."""
    first = len(body)
    while first and body[first - 1].kind == "comment":
        first -= 1
    taken = body[first:]
    del body[first:]
    return taken


def _owned(chunks: Sequence[Chunk]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The numbers of the chunks that are ours, each with its path."""
    for at, chunk in enumerate(chunks):
        if chunk.header is None:
            continue
        path = chunk.header.path
        if chunk.header.kind == "table" and path in (SERVER, OTEL, EXPORTER):
            yield at, path
        elif chunk.header.kind == "array" and len(path) == 2 and path[0] == "hooks":
            yield from _owned_in_group(chunks, at)


def _owned_in_group(chunks: Sequence[Chunk], at: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Of the group of hooks that begins there: it and its hook, if that is ours and alone; else only our hook."""
    handlers = []
    path = _path(chunks[at])
    for number in range(at + 1, len(chunks)):
        if _path(chunks[number]) == path:
            break
        if _path(chunks[number]) == (*path, "hooks"):
            handlers.append(number)
    ours = [number for number in handlers if _is_our_hook(chunks[number])]
    others = len(handlers) > len(ours) or any(statement.path == ("hooks",) for statement in chunks[at].body)
    whole = not others and len(ours) == 1
    if ours and not others:
        yield at, path if whole else LEFTOVER
    for number in ours:
        yield number, (*path, "hooks") if whole else LEFTOVER


def _path(chunk: Chunk) -> tuple[str, ...]:
    return chunk.header.path if chunk.header else ()


def _is_our_hook(chunk: Chunk) -> bool:
    return any(statement.path == ("command",) and is_our_command(statement.value) for statement in chunk.body)
