"""The entry point of every hook: `main([client, event])`, the hook's input on stdin. It always ends with status 0.

An agent waits for this process before each edit, so it asks the background process (`daemon`) and imports nothing but
what the interpreter has in itself: no `os`, no `json`, no `typing`. All else is done here, with imports made late:
every other event, and an edit for which no background process answers.

Not for Windows, whose Python has no such sockets.
"""

import _socket
import _thread
import posix
import sys
import time

from ctrlb_agent import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal

STARTED_S = time.monotonic()
TOTAL_S = 0.95  # of an edit check; with the interpreter's own start it stays about a second
ACK_S = 0.4  # a background process that lives says so at once, however slow the server is
MAX_INPUT_BYTES = 16 << 20  # what can be read in a second: no alarm interrupts the reading of JSON
MAX_MESSAGE_BYTES = 2 << 20  # of input that the background process takes
MAX_SAID_BYTES = 1 << 20
START_AGAIN_S = 3.0  # so long one background process has to start before another is tried
CHUNK_BYTES = 1 << 16

SOCKET = f"daemon-{__version__}.sock".encode()  # with the version, so that an upgrade starts its own
LOCK = f"daemon-{__version__}.lock".encode()
ACK = b"."
DECLINED = b"-"

SENT_ALONG = (b"CTRLB_", b"CLAUDE_PID=", b"CLAUDE_PLUGIN_OPTION_", b"CLAUDE_PROJECT_DIR=")
"""How the variables begin that the check may need: who asks, which server, which key."""
OF_CONNECTIONS = (b"HTTP_PROXY", b"HTTPS_PROXY", b"ALL_PROXY", b"NO_PROXY", b"SSL_CERT_FILE", b"SSL_CERT_DIR")
"""Variables, in either case, that connections are made by."""
OF_THE_DAEMON = (b"HOME", b"CTRLB_AGENT_HOME", b"CTRLB_AGENT_IDLE_S", b"PATH", b"TMPDIR", b"LANG", b"LC_ALL")

START = """import sys
sys.path.insert(0, sys.argv[1])
from ctrlb_agent.edit_check import daemon
daemon.main()"""


def main(arguments: "list[str]") -> None:
    """Run the hook, print what it answers and end the process with status 0, whatever happens."""
    try:
        client, event = arguments
        _end_in(TOTAL_S)
        _settle_state_folder()
        data = _read_stdin()
        printed = before_tool(client, data) if event == "PreToolUse" else other_event(client, event, data)
        _print(printed)
    except BaseException as error:
        _complain(f"hook: {type(error).__name__}: {error}")
    posix._exit(0)


def before_tool(client: str, data: bytes) -> bytes:
    """What to print before a tool call: what the background process says, else what is found out here."""
    said = ask_daemon(client, data)
    if said[:1] == ACK:
        length, newline, answer = said[1:].partition(b"\n")
        if newline and length == str(len(answer)).encode():
            return answer
    elif said != DECLINED:
        start_daemon()
        keep_interpreter()
    return _beside(lambda: _checked_here(client, data))


def other_event(client: str, event: str, data: bytes) -> bytes:
    """What to print when a session starts or ends, and at whatever else clients call hooks for. It limits itself."""
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    if event == "SessionStart":
        start_daemon()
        keep_interpreter()
    import json

    from ctrlb_agent import session_hooks

    hook = json.loads(data)
    return session_hooks.run(client, event, hook, _environ()) if isinstance(hook, dict) else b""


def ask_daemon(client: str, data: bytes) -> bytes:
    """What the background process says: ACK, then the length of the answer, a line break and the answer; or DECLINED.

    Less when it is not there, or dies, or has said nothing for ACK_S seconds. Raises nothing.
    """
    folder = _state_folder()
    here = None
    try:
        here = posix.open(".", posix.O_RDONLY)
        posix.chdir(folder)  # the path of a socket may have a hundred bytes, that of a folder more
        owned = posix.stat(".")
        user = posix.geteuid()
        if owned.st_uid != user or owned.st_mode & 0o022 or posix.stat(SOCKET).st_uid != user:
            return DECLINED  # anybody could listen there
        return _exchange(client, data) if len(data) <= MAX_MESSAGE_BYTES else DECLINED
    except OSError:
        return b""
    finally:
        if here is not None:
            posix.fchdir(here)


def _exchange(client: str, data: bytes) -> bytes:
    said = b""
    daemon = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    daemon.settimeout(ACK_S)
    daemon.connect(SOCKET)
    try:
        daemon.sendall(message(client, data, posix.environ))
        while len(said) < MAX_SAID_BYTES:
            chunk = daemon.recv(CHUNK_BYTES)
            if not chunk:
                break
            said += chunk
            daemon.settimeout(TOTAL_S)  # the alarm is sooner
    except OSError:
        pass  # it died, or is stuck: what it said so far tells
    finally:
        daemon.close()
    return said


def message(client: str, data: bytes, environ: "dict[bytes, bytes]") -> bytes:
    """What the background process is sent: fields that end with a NUL, an empty one, and the hook's input.

    The fields: client, the seconds that are left, the length of the input, and the variables, as NAME=value.
    """
    fields = [client.encode(), b"%.3f" % (STARTED_S + TOTAL_S - time.monotonic()), b"%d" % len(data)]
    for name, value in environ.items():
        variable = name + b"=" + value
        if variable.startswith(SENT_ALONG) or name.upper() in OF_CONNECTIONS:
            fields.append(variable)
    return b"\0".join(fields) + b"\0\0" + data


def start_daemon() -> None:
    """Start the background process, apart from this one in every respect. It ends at once where one runs already."""
    try:
        if 0 <= time.time() - posix.stat(_state_folder() + b"/" + LOCK).st_mtime < START_AGAIN_S:
            return
    except OSError:
        pass  # none was ever started
    environ = {
        name: value
        for name, value in posix.environ.items()
        if name in OF_THE_DAEMON or name.upper() in OF_CONNECTIONS  # no key, which it would keep to itself for hours
    }
    null = [(posix.POSIX_SPAWN_OPEN, number, "/dev/null", posix.O_RDWR, 0) for number in (0, 1, 2)]
    package = sys.path[0]
    try:
        if not package.startswith("/"):
            package = f"{posix.getcwd()}/{package}"  # it works from another folder
        arguments = [sys.executable, "-I", "-S", "-c", START, package]
        try:
            posix.posix_spawn(sys.executable, arguments, environ, file_actions=null, setsid=True)
        except NotImplementedError:  # it leaves the session itself, a little later
            posix.posix_spawn(sys.executable, arguments, environ, file_actions=null)
    except OSError as error:
        _complain(f"hook: the background process could not be started: {error}")


def keep_interpreter() -> None:
    """Write down which Python this is, for `ctrlb-hook`, unless it knows one that is there, and from this user."""
    import os

    from ctrlb_agent import state

    try:
        file = state.path("python")
        try:
            with open(file, "rb") as stream:
                known = stream.readline().rstrip(b"\n")
        except FileNotFoundError:
            known = b""
        usable = known.startswith(b"/") and os.path.isfile(known) and os.access(known, os.X_OK)
        if not usable or os.stat(file).st_uid != os.geteuid():
            state.keep_python()
    except OSError as error:
        _complain(f"hook: the interpreter's path could not be kept: {error}")


def _checked_here(client: str, data: bytes) -> bytes:
    from ctrlb_agent.edit_check import check

    return check.answer_once(client, data, _environ(), STARTED_S + TOTAL_S)


def _beside(work: "Callable[[], bytes]") -> bytes:
    """What the work returns. It runs in a thread, for this one must hear the alarm, which a look-up of a host bars."""
    done = _thread.allocate_lock()
    done.acquire()
    results: list[bytes] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            _complain(f"hook: {type(error).__name__}: {error}")
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    done.acquire()
    return results[0] if results else b""


def _end_in(seconds: float) -> None:
    """Let the alarm end this process, with status 0, when the seconds are over."""

    def end(number: int, frame: object) -> None:
        _complain(f"hook: gave up after {seconds} s")
        posix._exit(0)

    _signal.signal(_signal.SIGALRM, end)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def _read_stdin() -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        chunk = posix.read(0, CHUNK_BYTES)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_INPUT_BYTES:
            raise ValueError(f"the input is over {MAX_INPUT_BYTES:,} bytes")


def _print(printed: bytes) -> None:
    while printed:
        printed = printed[posix.write(1, printed) :]


def _state_folder() -> bytes:
    """Where `state.home` is, without `os`. Empty when only the user database could tell."""
    environ = posix.environ
    home = environ.get(b"HOME", b"")
    return environ.get(b"CTRLB_AGENT_HOME") or (home and home + b"/.ctrlb-agent")


def _settle_state_folder() -> None:
    """Make a relative state folder absolute, here and for all processes from here on: they work in other folders."""
    folder = _state_folder()
    if folder and not folder.startswith(b"/"):
        try:
            folder = posix.environ[b"CTRLB_AGENT_HOME"] = posix.getcwdb() + b"/" + folder
        except OSError:
            return  # the working folder was removed: nothing can be kept
        posix.putenv(b"CTRLB_AGENT_HOME", folder)


def _environ() -> "dict[str, str]":
    import os

    return dict(os.environ)


def _complain(reason: str) -> None:
    try:
        from ctrlb_agent.complaints import complain

        complain(reason)
    except Exception:  # the log is the last resort, and there is nothing to tell it to
        posix._exit(0)
