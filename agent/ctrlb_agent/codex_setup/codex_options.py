"""The options of install.py, and what is refused in them before any file is read."""

from __future__ import annotations

import argparse
import base64
import os
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from ctrlb_agent import client_folders
from ctrlb_agent.addresses import checked_url, is_endpoint, is_utf8
from ctrlb_agent.codex_setup.codex_block import Refused
from ctrlb_agent.codex_setup.codex_tables import Otel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)=[ \t]*([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])[ \t]*")
_MCP_KEY = re.compile(r"ctrlb_[a-z0-9-]+_\w{12}_|ctrlbs_\w{12}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}")
_HEX = re.compile(r"[0-9A-Fa-f]{32,}")
_MAX_CODINGS = 4
"""So many times a key may be encoded to be still found."""

DESCRIPTION = """\
Set up CtrlB for Codex: hooks that check edits and upload sessions, and the MCP server with the session and Relay tools.
They are written into one marked block of config.toml in Codex's folder; everything else in the file stays as it is."""

EPILOG = """\
Before the file is replaced, the result is tried with Codex itself, if `codex` is on PATH, and the old file is kept
beside it as config.toml.ctrlb-backup-<time>. Running this again changes nothing, or what is new.

Codex runs hooks only after you have trusted them: answer yes when asked, give --trust, or type /hooks in Codex.
Start Codex with CTRLB_KEY set to your key; it is not written into config.toml.

Exit status: 0 done, 1 refused (nothing was changed, or --trust could not trust the hooks), 2 wrong options.
Hooks that you choose not to trust are no failure."""


class Options(NamedTuple):
    """What was asked for. `trust` is None when nothing was said of it."""

    codex_home: str | None
    url: str | None
    otel: Otel | None
    dry_run: bool
    uninstall: bool
    trust: bool | None


def options_of(arguments: Sequence[str]) -> Options:
    """The options. Exits with status 2 and the usage when they are wrong. Raises Refused for a key in a header."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.codex:
        parser.error("say what to set up: --codex (Claude Code has a plugin: see README.md)")
    if given.uninstall and (given.otel or given.url or given.trust is not None):
        parser.error("--uninstall goes with --codex-home and --dry-run only")
    url = None
    if given.url is not None:
        try:
            url = checked_url(given.url)
        except ValueError as error:
            parser.error(f"--url {error}")
    return Options(given.codex_home, url, _otel(parser, given), given.dry_run, given.uninstall, given.trust)


def codex_home_of(options: Options, environ: Mapping[str, str]) -> str:
    """Codex's folder. Raises Refused when one was named that is not there; its default need not be."""
    folder = client_folders.codex_folder(environ, options.codex_home)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise Refused(f"{folder} is no folder")
    if folder != client_folders.codex_folder({}) and not os.path.isdir(folder):
        raise Refused(f"there is no folder {folder}. If Codex is to use it, make it first: mkdir -p {folder}")
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="install.py",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--codex", action="store_true", help="set up Codex")
    parser.add_argument("--url", help="CtrlB's address; else CTRLB_URL, or what was given the last time")
    parser.add_argument("--codex-home", metavar="DIR", help="Codex's folder; else CODEX_HOME, or ~/.codex")
    parser.add_argument("--dry-run", action="store_true", help="print the change as a diff, and write nothing")
    parser.add_argument("--uninstall", action="store_true", help="take out what this wrote, and nothing else")
    trust = parser.add_mutually_exclusive_group()
    trust.add_argument("--trust", action="store_true", default=None, help="trust the hooks without asking")
    trust.add_argument("--no-trust", dest="trust", action="store_false", help="do not ask to trust the hooks")
    otel = parser.add_argument_group(
        "OpenTelemetry",
        "Let Codex send its own events too, with prompts and responses. CtrlB's server does not take them yet.",
    )
    otel.add_argument("--otel", action="store_true", help="export to --otel-endpoint with --otel-header")
    otel.add_argument("--otel-endpoint", metavar="URL", help="the OTLP logs endpoint, which ends in /_otel/v1/logs")
    otel.add_argument(
        "--otel-header",
        metavar="NAME=VALUE",
        action="append",
        help='"Authorization=Basic <ingest credential>"; stored in config.toml as given. '
        "Your key is refused here. May be given several times",
    )
    return parser


def _otel(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Otel | None:
    if not given.otel:
        if given.otel_endpoint or given.otel_header:
            parser.error("--otel-endpoint and --otel-header go with --otel")
        return None
    if not given.otel_endpoint or not given.otel_header:
        parser.error("--otel needs --otel-endpoint and --otel-header")
    if not is_endpoint(given.otel_endpoint):
        parser.error("--otel-endpoint is no address: it should be like https://ctrlb.example.com/…/_otel/v1/logs")
    headers: dict[str, str] = {}
    for header in given.otel_header:
        match = _HEADER.fullmatch(header)
        if match is None or not is_utf8(header):
            parser.error('--otel-header should be NAME=VALUE, like "Authorization=Basic <ingest credential>"')
        headers[match.group(1)] = match.group(2)
    if any(holds_mcp_key(text) for text in (given.otel_endpoint, *headers, *headers.values())):
        raise Refused(
            "a key of CtrlB's is in the OTEL options. It would be stored in config.toml, and the endpoint does not "
            "take it: give an ingest credential"
        )
    return Otel(given.otel_endpoint, tuple(headers.items()))


def holds_mcp_key(text: str) -> bool:
    """Whether a key of CtrlB (`ctrlb_…`), or a session (`ctrlbs_…`), is in the text.

    Plain, percent-encoded, in hexadecimal digits or in base64 at whatever offset, and several times so.
    """
    texts = {text}
    for _ in range(_MAX_CODINGS):
        if any(_MCP_KEY.search(one) for one in texts):
            return True
        texts = {decoded for one in texts for decoded in _decodings(one)}
    return any(_MCP_KEY.search(one) for one in texts)


def _decodings(text: str) -> Iterator[str]:
    plain = text
    while plain != unquote(plain):
        plain = unquote(plain)
    if plain != text:
        yield plain
    for token in _BASE64.findall(plain):
        body = token.replace("-", "+").replace("_", "/")
        for offset in range(4):
            part = body[offset:]
            part = part[: len(part) - (len(part) % 4 == 1)]
            yield base64.b64decode(part + "=" * (-len(part) % 4)).decode("utf-8", "replace")
    for digits in _HEX.findall(plain):
        for offset in range(2):
            pairs = digits[offset:]
            yield bytes.fromhex(pairs[: len(pairs) // 2 * 2]).decode("utf-8", "replace")
