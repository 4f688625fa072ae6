"""Which workspace an address serves: names are read alike where they are set and where they are called."""

from pathlib import Path

import pytest

from ctrlb import wiring
from ctrlb.__main__ import main
from ctrlb.domain.errors import Invalid
from ctrlb.domain.host_names import host_name, read_workspace_hosts
from ctrlb.edge.identity import host_of


@pytest.mark.parametrize(
    "called",
    ["bücher.example.com", "BÜCHER.example.com:443", "xn--bcher-kva.example.com.", "XN--BCHER-KVA.Example.com:8321"],
)
def test_an_address_is_the_same_however_it_is_called(called: str) -> None:
    event = {"requestContext": {}, "headers": {"host": called}}
    assert host_of(event) == host_name(called) == "xn--bcher-kva.example.com"


@pytest.mark.parametrize("called", ["", "[", ":443", "a" * 64 + "é.example.com", "é..example.com"])
def test_what_is_no_name_names_nothing(called: str) -> None:
    assert host_name(called) == ""


def test_hosts_are_read_with_their_workspaces() -> None:
    said = "acme.example.com=acme, beta.example.com=beta-2,acme.example.com=acme,"
    assert read_workspace_hosts(said) == {"acme.example.com": "acme", "beta.example.com": "beta-2"}
    assert read_workspace_hosts("") == {}


@pytest.mark.parametrize(
    "said",
    [
        "acme.example.com:443=acme",
        "acme.example.com.=acme",
        "Acme.example.com=acme",
        "bücher.example.com=acme",
        "https://acme.example.com=acme",
        "acme .example.com=acme",
        "acme.example.com = acme",
        "=acme",
        "acme.example.com",
        "acme.example.com=",
        "acme.example.com=Acme",
        "acme.example.com=a_b",
        "acme.example.com=acme=beta",
        "acme.example.com=acme,acme.example.com=beta",
    ],
)
def test_a_name_that_nobody_calls_and_a_workspace_that_is_none_are_refused(said: str) -> None:
    with pytest.raises(Invalid):
        read_workspace_hosts(said)


def test_a_fault_in_the_hosts_is_said_before_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(wiring.WORKSPACE_HOSTS, "ACME.example.com:443=acme")
    assert main(["serve", "--port", "0", "--data", str(tmp_path / "data")]) == 1
    assert capsys.readouterr().err == (
        "ctrlb: WORKSPACE_HOSTS: ACME.example.com:443=acme: ACME.example.com:443 is no host name as it is called; "
        "write it like acme.example.com\n"
    )
    assert not (tmp_path / "data").exists()
