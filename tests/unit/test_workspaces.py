"""The first person of a workspace, whom the command line makes."""

from pathlib import Path

import pytest

from ctrlb.__main__ import main
from ctrlb.domain.errors import Forbidden, Invalid
from ctrlb.domain.rows import Audit, Member
from ctrlb.edge.identity import identify
from ctrlb.laptop import ENV_FILE
from ctrlb.models import SignInRequest
from ctrlb.ports import Ports
from ctrlb.sign_in import sign_in
from ctrlb.wiring import deployed, embedded
from ctrlb.workspaces import admin_of
from tests.aws.stores import made_table, table_name

AUDIT = Audit("acme", 0, "somebody", "invite_member", before="", after="")


def test_the_first_call_adds_the_admin_and_the_second_finds_them(stores: Ports) -> None:
    assert admin_of("acme", "ada@example.com", stores) == admin_of("acme", "ada@example.com", stores)
    assert stores.identity.member("acme", "ada@example.com") == Member("acme", "ada@example.com", "Admin")


@pytest.mark.parametrize("member", [Member("acme", "ada", "Reader"), Member("acme", "ada", "Admin", active=False)])
def test_nobody_who_is_there_becomes_admin_this_way(stores: Ports, member: Member) -> None:
    stores.identity.change_member(None, member, None, AUDIT)
    with pytest.raises(Forbidden, match="ada is in acme already"):
        admin_of("acme", "ada", stores)
    assert stores.identity.member("acme", "ada") == member


@pytest.mark.parametrize("workspace", ["", "Acme", "-acme", "a_b", "a" * 33, "acme\n"])
def test_a_workspace_needs_a_name_that_a_key_can_hold(stores: Ports, workspace: str) -> None:
    with pytest.raises(Invalid, match="a workspace's name"):
        admin_of(workspace, "ada", stores)


@pytest.mark.parametrize("user", ["", "a/b", "a\n", "a" * 201])
def test_a_person_needs_a_name(stores: Ports, user: str) -> None:
    with pytest.raises(Invalid, match="a person's name"):
        admin_of("acme", user, stores)


@pytest.mark.usefixtures("on_moto")
def test_the_command_makes_a_key_that_is_good_in_aws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_table("RelayTable", tmp_path)
    table = table_name("RelayTable", tmp_path)
    assert main(["workspace", "create", "--table", table, "--name", "acme", "--admin", "ada"]) == 0
    caller = identify(f"Bearer {capsys.readouterr().out.strip()}", deployed(table))
    assert (caller.workspace, caller.user) == ("acme", "ada")
    assert caller.may("members.manage")


@pytest.mark.usefixtures("on_moto")
def test_a_table_that_is_not_there_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workspace", "create", "--table", "elsewhere", "--name", "acme", "--admin", "ada"]) == 1
    said = "ctrlb: the table elsewhere cannot be used: get_item: ResourceNotFoundException\n"
    assert capsys.readouterr() == ("", said)


def test_an_environment_without_a_region_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    assert main(["workspace", "create", "--table", "relay", "--name", "acme", "--admin", "ada"]) == 1
    assert capsys.readouterr().err == "ctrlb: the table relay cannot be used: NoRegionError\n"


def test_the_command_makes_further_workspaces_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ENV_FILE).touch()  # as a server has left it
    assert main(["workspace", "create", "--data", str(tmp_path), "--name", "acme", "--admin", "ada"]) == 0
    key = capsys.readouterr().out.strip()
    with embedded(tmp_path) as stores:
        caller = identify(f"Bearer {key}", stores)
    assert (caller.workspace, caller.user, caller.may("members.manage")) == ("acme", "ada", True)


def test_who_comes_to_a_workspace_that_has_people_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ENV_FILE).touch()
    create = ["workspace", "create", "--data", str(tmp_path), "--name", "acme", "--admin"]
    note = "ctrlb: there is a workspace acme already; eve is an Admin of it beside its other people\n"
    for _ in range(2):
        assert main([*create, "ada"]) == 0
        assert "already" not in capsys.readouterr().err
    assert main([*create, "eve"]) == 0
    assert capsys.readouterr().err.startswith(note)


def test_people_of_further_workspaces_sign_in_by_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ENV_FILE).touch()
    main(["workspace", "create", "--data", str(tmp_path), "--name", "acme", "--admin", "ada"])
    capsys.readouterr()
    assert main(["sign-in", "--data", str(tmp_path), "--workspace", "acme", "--person", "ada"]) == 0
    code = capsys.readouterr().out.strip().rpartition("#code=")[2]
    with embedded(tmp_path) as stores:
        token = sign_in(SignInRequest(code=code), None, stores).token
        assert identify(f"Bearer {token}", stores).workspace == "acme"


@pytest.mark.parametrize("arguments", [["--workspace", "acme"], ["--person", "eve"]])
def test_nobody_who_is_no_member_gets_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / ENV_FILE).touch()
    assert main(["sign-in", "--data", str(tmp_path), *arguments]) == 1
    assert "there is no active person" in capsys.readouterr().err
