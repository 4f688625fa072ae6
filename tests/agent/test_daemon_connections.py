"""The connections that the background process keeps: warm for the next edit, never for another server or key."""

import datetime
import ipaddress
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ctrlb_agent import hook
from ctrlb_agent.edit_check import daemon
from tests.agent.hook_process import Machine, recorded
from tests.agent.scripted_server import ScriptedServer, answers
from tests.agent.verdicts import HELD, verdict

WRITE = recorded("claude", "PreToolUse-Write")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of this machine's, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return file


def test_a_warm_edit_is_one_request_on_the_one_connection_that_is_kept(machine: Machine) -> None:
    machine.start_daemon()
    with ScriptedServer(verdict()) as server:
        machine.environ["CTRLB_URL"] = server.url
        for number in range(1, 6):
            assert machine.before_edit(WRITE).is_silent
            assert (len(server.requests), server.connections) == (number, 1)
        machine.close()


def test_over_tls_there_is_one_handshake_for_many_edits(machine: Machine, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def speak(server: ScriptedServer, connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as spoken:
            verdict(HELD)(server, spoken)

    machine.environ["SSL_CERT_FILE"] = str(certificate)
    machine.start_daemon()
    with ScriptedServer(speak) as server:
        machine.environ["CTRLB_URL"] = server.url.replace("http://", "https://")
        for number in range(1, 4):
            assert machine.before_edit(WRITE).output["additionalContext"]
            assert (len(server.requests), server.connections) == (number, 1)
        machine.close()


def test_another_key_or_address_is_used_at_once(machine: Machine) -> None:
    machine.start_daemon()
    with ScriptedServer(verdict()) as one, ScriptedServer(verdict()) as two:
        for server, key in ((one, "key-1"), (one, "key-2"), (two, "key-2"), (one, "key-1")):
            machine.before_edit(WRITE, CTRLB_URL=server.url, CTRLB_KEY=key)
        machine.close()

    assert [key_of(request) for request in one.requests] == ["key-1", "key-2", "key-1"]
    assert [key_of(request) for request in two.requests] == ["key-2"]
    assert one.connections == 2


def test_another_proxy_than_its_own_is_not_passed_over(machine: Machine) -> None:
    machine.start_daemon()
    with ScriptedServer(answers(502, b"{}")) as proxy, ScriptedServer(verdict(HELD)) as server:
        url = "http://ctrlb.example"
        assert machine.before_edit(WRITE, CTRLB_URL=url, http_proxy=proxy.url).is_silent
        assert machine.before_edit(WRITE, CTRLB_URL=server.url).output["additionalContext"]
        machine.close()
    assert proxy.connections == 1


def test_no_more_connections_are_kept_than_are_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = daemon.Connections()
    closed = []
    for number in range(daemon.MAX_KEPT + 3):
        with pool.lend("http://127.0.0.1:1", f"key-{number}") as connection:
            monkeypatch.setattr(connection, "close", lambda number=number: closed.append(number))
    assert closed == [0, 1, 2]

    with pool.lend("http://127.0.0.1:1", "key-5") as kept:
        assert kept.key == "key-5"
        with pool.lend("http://127.0.0.1:1", "key-5") as second:
            assert second is not kept


def test_a_connection_that_was_long_silent_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = daemon.Connections()
    with pool.lend("http://127.0.0.1:1", "key") as first:
        pass
    monkeypatch.setattr(daemon, "KEPT_S", -1.0)
    with pool.lend("http://127.0.0.1:1", "key") as second:
        assert second is not first


def test_a_connection_on_which_something_failed_is_not_kept() -> None:
    pool = daemon.Connections()
    with pytest.raises(ValueError, match="odd"), pool.lend("http://127.0.0.1:1", "key") as first:
        raise ValueError("odd")
    with pool.lend("http://127.0.0.1:1", "key") as second:
        assert second is not first


def test_what_a_hook_sends_along_is_what_is_needed_and_no_more() -> None:
    environ = {
        b"CTRLB_URL": b"http://x",
        b"HOME": b"/home/dev",
        b"CLAUDE_PROJECT_DIR": b"/work/app",
        b"CLAUDE_CODE_MESSAGING_TOKEN": b"secret",
        b"AWS_SECRET_ACCESS_KEY": b"secret",
        b"https_proxy": b"http://proxy",
        b"CLAUDE_PLUGIN_OPTION_KEY": b"",
    }
    sent = hook.message("codex", b"{}\0\0", environ)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        message = daemon.read_message(ours)
    assert message
    assert (message.client, message.data) == ("codex", b"{}\0\0")
    kept = (b"CTRLB_URL", b"CLAUDE_PROJECT_DIR", b"https_proxy", b"CLAUDE_PLUGIN_OPTION_KEY")
    assert message.environ == {name: environ[name] for name in kept}


def key_of(request: bytes) -> str:
    """The key that the request came with."""
    return request.partition(b"Authorization: Bearer ")[2].partition(b"\r\n")[0].decode()
