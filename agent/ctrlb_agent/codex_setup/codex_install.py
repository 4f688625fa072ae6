"""`install.py --codex`: set Codex up, or take out again what this wrote. Says each thing that it does."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from ctrlb_agent import state
from ctrlb_agent.addresses import checked_url
from ctrlb_agent.codex_setup import codex_config, codex_file, codex_program, codex_shown, codex_trust
from ctrlb_agent.codex_setup.codex_block import BEGIN, Refused
from ctrlb_agent.codex_setup.codex_options import codex_home_of, options_of
from ctrlb_agent.codex_setup.codex_program import BROKEN, CodexFailed
from ctrlb_agent.codex_setup.toml_lines import BrokenToml
from ctrlb_agent.settings import settings_of, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctrlb_agent.codex_setup.codex_file import ConfigFile
    from ctrlb_agent.codex_setup.codex_options import Options

DONE, REFUSED = 0, 1
SETUP_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The ctrlb-agent folder, whose hooks Codex is to run."""


def main(arguments: Sequence[str]) -> int:
    """Do what the options say. Returns the exit status."""
    try:
        options = options_of(arguments)
        home = codex_home_of(options, os.environ)
        if options.uninstall:
            return _uninstall(options, home)
        return _install(options, home, os.environ)
    except (Refused, CodexFailed, OSError) as error:
        print(f"install.py: {error}", file=sys.stderr)
        return REFUSED


def _install(options: Options, home: str, environ: Mapping[str, str]) -> int:
    file = codex_file.read(home)
    url = _url(options, environ, file)
    if options.trust and codex_program.found() is None:
        raise Refused("codex is not on PATH, so it cannot be asked to trust the hooks; nothing was changed")
    _check_hook(options)
    change = _changed(file, lambda text: codex_config.with_ours(text, url, SETUP_FOLDER, options.otel, file.names))
    text = change.text if file.exists else change.text.lstrip("\n")
    for remark in change.remarks:
        print(remark)
    if text == file.text:
        print(f"{file.path}: nothing to change")
    else:
        if not options.dry_run:
            os.makedirs(home, mode=0o700, exist_ok=True)
        codex_file.refuse_if_not_writable(file)
        _tried(file, text, home)
    if options.dry_run:
        _show(file, text)
        return DONE
    _keep_for_hooks(url)
    _write(file, text)
    if not environ.get("CTRLB_KEY"):
        print("CTRLB_KEY is not set here: export it where you start Codex, which else leaves the server out silently")
    return _trusted(options, home)


def _uninstall(options: Options, home: str) -> int:
    file = codex_file.read(home)
    if not file.exists:
        print(f"{file.path} is not there: nothing to change")
        return DONE
    change = _changed(file, lambda text: codex_config.without_ours(text, file.names))
    for remark in change.remarks:
        print(remark)
    if change.text == file.text:
        print(f"{file.path}: nothing to change")
        return DONE
    codex_file.refuse_if_not_writable(file)
    _tried(file, change.text, home)
    if options.dry_run:
        _show(file, change.text)
    elif not change.text and file.text.startswith(BEGIN) and not file.is_link:
        print(f"removed {file.path}, which held nothing else; it is kept as {codex_file.remove(file)}")
    else:
        _write(file, change.text)
    return DONE


def _changed(file: ConfigFile, change: Callable[[str], codex_config.Change]) -> codex_config.Change:
    """The change of the file's text. Raises Refused with the file's name and line."""
    try:
        return change(file.text)
    except BrokenToml as broken:
        shown = codex_shown.line_of(file.text, broken.line)
        raise Refused(
            f"{file.path} is not TOML, so Codex does not start with it either. Line {broken.line}: {broken.reason}\n"
            f"    {shown}"
        ) from broken
    except Refused as refused:
        raise Refused(f"{file.path}, {refused}") from refused


def _url(options: Options, environ: Mapping[str, str], file: ConfigFile) -> str:
    """The server's address: as given, set, kept, or in the block already. Raises Refused when there is none."""
    kept = state.folder()
    url = options.url or value_of(environ, "CTRLB_URL")
    if not url and os.path.isdir(kept):
        url = settings_of(environ).url
    if not url:
        ours = codex_config.installed(os.path.dirname(file.path))
        url = ours.mcp_url if ours else ""
    if not url:
        raise Refused("CtrlB's address is not known. Give it: --url https://ctrlb.example.com, or set CTRLB_URL")
    try:
        return checked_url(url)
    except ValueError as error:
        raise Refused(f"the address {url!r} (CTRLB_URL, or config.json in {kept}) {error}") from error


def _check_hook(options: Options) -> None:
    """Raises Refused when the hook that Codex is to run is not in this folder, or cannot be named in its config."""
    hook = os.path.join(SETUP_FOLDER, "hooks", "ctrlb-hook")
    try:
        hook.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(f"the name of the folder {SETUP_FOLDER!r} is not UTF-8: move it to another") from None
    if not os.path.isfile(hook):
        raise Refused(f"{hook} is missing: get the ctrlb-agent folder again, whole")
    if not os.access(hook, os.X_OK) and not options.dry_run:
        os.chmod(hook, stat.S_IMODE(os.stat(hook).st_mode) | 0o111)
        print(f"made {hook} executable")


def _tried(file: ConfigFile, text: str, home: str) -> None:
    """Raises Refused when Codex, or a reader of TOML, would think less of the result than of the file as it is."""
    program = codex_program.found()
    if program is None:
        print("codex is not on PATH, so the result was not tried with it")
        _read_as_toml(file, text)
        return
    try:
        before = codex_program.verdict(program, file.text, home)
        after = codex_program.verdict(program, text, home)
    except CodexFailed as failed:
        print(f"the result was not tried with Codex: {failed}")
        _read_as_toml(file, text)
        return
    if after.level > BROKEN and after.level >= before.level:
        return
    if before.level == BROKEN:
        raise Refused(f"Codex does not start with {file.path} as it is. Mend it first: {before.reason}")
    raise Refused(f"Codex would not take the result, so nothing was changed: {after.reason}")


def _read_as_toml(file: ConfigFile, text: str) -> None:
    try:
        import tomllib
    except ImportError:  # Python 3.10 or older
        return
    try:
        tomllib.loads(file.text)
    except tomllib.TOMLDecodeError:
        return  # Codex reads newer TOML than this does
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"the result would be no TOML, so nothing was changed: {error}") from error


def _show(file: ConfigFile, text: str) -> None:
    sys.stdout.write(codex_shown.diff(file.text, text, file.path))
    print("dry run: nothing was written")


def _write(file: ConfigFile, text: str) -> None:
    ours = codex_config.installed_in(text)
    holds_secret = ours is not None and ours.otel
    if text != file.text:
        copy = codex_file.replace(file, text, holds_secret=holds_secret)
        print(f"wrote {file.target}" + (f"; the old one is {copy}" if copy else ""))
    if holds_secret and file.mode & ~codex_file.OWNER_ONLY:
        os.chmod(file.target, file.mode & codex_file.OWNER_ONLY)
        print(f"{file.target} holds a credential, so only you can read it now")


def _keep_for_hooks(url: str) -> None:
    """Write where hooks find the server, when CTRLB_URL is not set, and which Python runs them."""
    kept_in = state.path("config.json")
    kept = state.read_json(kept_in) or {}
    if kept.get("url") != url:
        if kept.get("url"):
            print(f"{kept_in}: the address was {kept['url']}, and is {url} now")
        state.write_json(kept_in, {**kept, "url": url})
    state.keep_python()


def _trusted(options: Options, home: str) -> int:
    """See to it that Codex runs the hooks, or say how."""
    ours = codex_config.installed(home)
    hooks = list(ours.commands) if ours else []
    if options.trust:
        missing = codex_trust.trust(home)
        if missing:
            raise Refused(f"Codex does not run these hooks, though they were trusted: {', '.join(missing)}. {SWITCHED}")
        print(f"Codex trusts the hooks: {', '.join(hooks)}")
        return DONE
    waiting = codex_trust.untrusted(home)
    if waiting == []:
        print(f"Codex trusts the hooks: {', '.join(hooks)}")
        return DONE
    named = ", ".join(hooks if waiting is None else waiting)
    if options.trust is None and waiting is not None and sys.stdin.isatty() and sys.stdout.isatty():
        print(f"Codex runs a hook only after you have trusted it. Of ctrlb-agent it does not run yet: {named}")
        print(f"They run {os.path.join(SETUP_FOLDER, 'hooks', 'ctrlb-hook')}")
        if _agreed("Trust them now? [y/N] "):
            return _trusted(options._replace(trust=True), home)
    print(f"Codex does not run these hooks before you trust them: {named}")
    print("To trust them, type /hooks in Codex, or run this again with --trust.")
    return DONE


SWITCHED = "Are hooks switched off, in [features] or in /hooks?"


def _agreed(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False
