"""`python -m ctrlb`: serve laptop mode and look after its keys; make the first key of a deployment in AWS; rebuild the
search index of either.
"""

import argparse
import contextlib
import datetime
import errno
import os
import signal
import socket
import sys
from pathlib import Path

from pydantic import ValidationError

from ctrlb import __version__, laptop
from ctrlb.domain.access import Caller
from ctrlb.domain.errors import CtrlbError, NotFound
from ctrlb.domain.rows import Dataset
from ctrlb.keys import create_key, list_keys, revoke_key
from ctrlb.models import CreateKeyRequest, KeyInfo, ListKeysRequest, RevokeKeyRequest
from ctrlb.models.faults import first_fault
from ctrlb.ports import Ports
from ctrlb.wiring import (
    DATA_FOLDER,
    deployed,
    embedded,
    embedded_search_rebuild,
    ports,
    search_rebuild,
    workspace_hosts,
)
from ctrlb.workspaces import admin_of

PROJECT = Path(__file__).resolve().parents[2]
PORT = 8321
FOLDER = ".ctrlb"
BACKLOG = 512


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns the process's exit status: 0 done, 1 refused, 2 misused."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.command(options)
    except (laptop.FolderFault, CtrlbError) as error:
        print(f"ctrlb: {error}", file=sys.stderr)
        return 1
    except ValidationError as error:
        print(f"ctrlb: {first_fault(error)}", file=sys.stderr)
        return 1
    return status


def _serve(options: argparse.Namespace) -> int:
    from ctrlb.edge import limits, local, routes

    limits.limits_here()
    workspace_hosts()
    folder = Path(options.data).resolve()
    listener = _listen(options.host, options.port)  # first: a start that is refused here leaves no folder behind
    os.umask(0o077)  # a folder that was there already may be open to others; what is kept in it is not
    laptop.raise_file_limit()
    laptop.collect_seldom()
    laptop.open_folder(folder)
    lock = laptop.lock_folder(folder)
    host = f"[{options.host}]" if ":" in options.host else options.host
    url = f"http://{host}:{listener.getsockname()[1]}"
    os.environ[DATA_FOLDER] = str(folder)
    os.environ["CTRLB_LOG_FILE"] = str(folder / "ctrlb.log")
    stores = ports()
    key = laptop.key_for_scripts(folder, url, stores)
    router = routes.Router(
        routes.template_routes(PROJECT / "template.yaml") + routes.laptop_routes(), PROJECT / "functions"
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `kill` stops it as Ctrl-C does
    greeting = laptop.greeting(url, key, folder, stores)
    ended = local.serve(listener, router, lambda: print(greeting, flush=True))
    print("\nctrlb: stopped; everything is kept in", folder, flush=True)
    lock.close()
    if not ended:
        os._exit(0)  # nobody waits for the threads still at work; what they have not committed is undone
    return 0


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise laptop.FolderFault(
                f"port {port} is in use, maybe by another CtrlB; choose another with PORT=… (0 picks a free one)"
            ) from None
        raise laptop.FolderFault(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener


def _create_workspace(options: argparse.Namespace) -> int:
    if options.table is None:
        with _stores(options) as stores:
            _print_first_key(options, stores)
        return 0
    stores = deployed(options.table)
    try:
        _print_first_key(options, stores)
    except RuntimeError as fault:  # no table of this name, region or credentials, or no leave
        raise laptop.FolderFault(f"the table {options.table} cannot be used: {fault}") from fault
    return 0


def _print_first_key(options: argparse.Namespace, stores: Ports) -> None:
    """Make the Admin, if they are not there, and a key of theirs. Tells when the workspace has other people."""
    caller = admin_of(options.name, options.admin, stores)
    if any(member.user != options.admin for member in stores.identity.members(options.name)):
        _tell(f"there is a workspace {options.name} already; {options.admin} is an Admin of it beside its other people")
    _print_key(options, caller, stores)


def _create_key(options: argparse.Namespace) -> int:
    with _stores(options) as stores:
        _print_key(options, laptop.owner(stores), stores)
    return 0


def _print_key(options: argparse.Namespace, caller: Caller, stores: Ports) -> None:
    """Make the caller a key. It goes to standard output alone, what is said about it does not."""
    made = create_key(CreateKeyRequest(name=options.key_name, expires_days=options.expires_days), caller, stores)
    print(made.key)
    print(f"key {made.key_id} ({made.name}), expires {_day(made.expires)}; it is shown this once", file=sys.stderr)


def _list_keys(options: argparse.Namespace) -> int:
    with _stores(options) as stores:
        keys = list_keys(ListKeysRequest(), laptop.owner(stores), stores).keys
        now_us = stores.clock.now_us()
    for key in keys:
        print(f"{key.key_id}  {_state(key, now_us):20}  last used {_day(key.last_used):10}  {key.name}")
    return 0


def _state(key: KeyInfo, now_us: int) -> str:
    """Until when the key is good, or why it is refused."""
    if key.revoked is not None:
        return f"revoked {_day(key.revoked)}"
    if key.expires is not None and key.expires <= now_us:
        return f"expired {_day(key.expires)}"
    return "stale" if key.stale else f"expires {_day(key.expires)}"


def _revoke_key(options: argparse.Namespace) -> int:
    with _stores(options) as stores:
        try:
            done = revoke_key(RevokeKeyRequest(key_id=options.key_id), laptop.owner(stores), stores)
        except NotFound:
            raise laptop.FolderFault(f"you have no key {options.key_id}; `keys list` lists yours") from None
    print(f"key {done.key_id} is refused from now on")
    return 0


def _sign_in(options: argparse.Namespace) -> int:
    with _stores(options) as stores:
        url = laptop.variables(Path(options.data)).get("CTRLB_URL", "")
        print(laptop.sign_in_link(url, stores, options.workspace, options.person))
    if not laptop.is_served(url):
        _tell("the server is not running: start it, and then open the link")
    return 0


def _rebuild_index(options: argparse.Namespace) -> int:
    """In AWS where the environment names a deployment's stores, else in the folder, whose server is to be stopped."""
    deployment = search_rebuild()
    if deployment is not None:
        if options.workspace is None:
            raise laptop.FolderFault("the environment names stores in AWS: name the workspace, too, with --workspace")
        try:
            deployment.run(Dataset(options.workspace, options.dataset), _tell)
        except KeyboardInterrupt:
            raise laptop.FolderFault("ended; run it again, and it goes on where it was") from None
        return 0
    folder = _folder(options)
    with laptop.lock_folder(folder), embedded_search_rebuild(folder) as rebuild:
        rebuild.run(Dataset(options.workspace or laptop.WORKSPACE, options.dataset), _tell)
    return 0


def _tell(line: str) -> None:
    print(f"ctrlb: {line}", file=sys.stderr, flush=True)


def _stores(options: argparse.Namespace) -> contextlib.AbstractContextManager[Ports]:
    """The stores of a folder that a server has made, beside the server if it runs."""
    return embedded(_folder(options))


def _folder(options: argparse.Namespace) -> Path:
    folder = Path(options.data)
    if not (folder / laptop.ENV_FILE).exists():
        raise laptop.FolderFault(f"there is no data in {folder}; `serve` makes it, or name another with --data")
    return folder


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text}")
    return int(text)


def _day(us: int | None) -> str:
    return "never" if us is None else datetime.datetime.fromtimestamp(us / 1_000_000, datetime.UTC).date().isoformat()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ctrlb", description="Claims between coding agents, and a memory of what their sessions did."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True)
    _add_serve(commands.add_parser("serve", help="serve on this machine, with everything kept in one folder"))
    _add_keys(commands.add_parser("keys", help="make, list and revoke keys"))
    _add_index(commands.add_parser("index", help="look after the search index"))
    _add_sign_in(commands.add_parser("sign-in", help="print a new one-time sign-in link"))
    _add_workspace(commands.add_parser("workspace", help="make a workspace in the folder, or in a deployment in AWS"))
    return parser


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    serve.add_argument("--port", type=_port, default=PORT, help="port; 0 picks a free one (default: %(default)s)")
    _add_data(serve)
    serve.set_defaults(command=_serve)


def _add_keys(keys: argparse.ArgumentParser) -> None:
    commands = keys.add_subparsers(title="commands", required=True)
    create = commands.add_parser("create", help="make a key and print it, once")
    create.add_argument("--name", dest="key_name", metavar="NAME", required=True, help="what the key is for")
    _add_expiry(create)
    _add_data(create)
    create.set_defaults(command=_create_key)
    listing = commands.add_parser("list", help="list keys, without their secrets")
    _add_data(listing)
    listing.set_defaults(command=_list_keys)
    revoke = commands.add_parser("revoke", help="end a key, at once")
    revoke.add_argument("key_id", help="the id that `keys list` shows")
    _add_data(revoke)
    revoke.set_defaults(command=_revoke_key)


def _add_index(index: argparse.ArgumentParser) -> None:
    commands = index.add_subparsers(title="commands", required=True)
    rebuild = commands.add_parser("rebuild", help="make a dataset's search index anew from its stored rows")
    rebuild.add_argument("--dataset", required=True, help="the dataset whose rows are searched in it")
    rebuild.add_argument("--workspace", help="the workspace of the dataset; in laptop mode local, if left out")
    _add_data(rebuild)
    rebuild.set_defaults(command=_rebuild_index)


def _add_sign_in(sign_in: argparse.ArgumentParser) -> None:
    sign_in.add_argument("--workspace", default=laptop.WORKSPACE, help="whose person signs in (default: %(default)s)")
    sign_in.add_argument("--person", default=laptop.FIRST_USER, help="who signs in (default: %(default)s)")
    _add_data(sign_in)
    sign_in.set_defaults(command=_sign_in)


def _add_workspace(workspace: argparse.ArgumentParser) -> None:
    commands = workspace.add_subparsers(title="commands", required=True)
    create = commands.add_parser(
        "create", help="make a workspace's Admin, unless they are there, and a key of theirs, and print that, once"
    )
    create.add_argument("--table", help="the output RelayTable of a deployment in AWS; left out, the folder is meant")
    create.add_argument("--name", required=True, help="the workspace's name: small letters, digits and -")
    create.add_argument("--admin", required=True, help="the person's name")
    _add_expiry(create)
    _add_data(create)
    create.set_defaults(command=_create_workspace, key_name="first key")


def _add_expiry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--expires-days", type=int, choices=(30, 90, 365, 0), default=90, help="0 for never (default: %(default)s)"
    )


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default=FOLDER, help="folder that keeps everything (default: %(default)s)")


if __name__ == "__main__":
    sys.exit(main())
