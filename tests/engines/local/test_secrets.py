import stat
from pathlib import Path

import pytest

from jobman.engines.local.orders import CannotRun
from jobman.engines.local.private import Owner, make_room
from jobman.engines.local.secrets import Vault, arrange, lay_out, variables_from
from jobman.spec.access import EnvFrom, Secret


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    for path, content in {
        "secrets/database/password": "s3cret\n",
        "secrets/database/user": "ada",
        "secrets/token/value": "abc",
        "secrets/binary/key": "\udcff",
        "configs/common/LEVEL": "3\n",
        "configs/common/not-a-name": "x",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
    (tmp_path / "secrets").chmod(0o700)
    return Vault(tmp_path)


def test_a_variable_carries_one_entry_without_its_last_line_break(vault):
    secret = Secret(name="database", key="password", variable="DB_PASSWORD")
    assert arrange([secret], vault).variables == {"DB_PASSWORD": "s3cret"}


def test_a_variable_carries_the_only_entry_there_is(vault):
    assert arrange([Secret(name="token", variable="TOKEN")], vault).variables == {"TOKEN": "abc"}


def test_a_variable_cannot_carry_several_entries(vault):
    with pytest.raises(CannotRun, match="`password`, `user`; say which with `key`"):
        arrange([Secret(name="database", variable="DB")], vault)


def test_a_path_is_a_file_with_the_very_bytes_of_its_entry(vault, tmp_path):
    arranged = arrange([Secret(name="database", key="password", path="/run/password")], vault)
    room = make_room(tmp_path / "room", Owner())
    lay_out(arranged, room, Owner())
    file = room / arranged.places["/run/password"]
    assert file.read_bytes() == b"s3cret\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o400


def test_a_path_without_a_key_is_a_folder_where_there_are_several_entries(vault, tmp_path):
    arranged = arrange([Secret(name="database", path="/run/db")], vault)
    room = make_room(tmp_path / "room", Owner())
    lay_out(arranged, room, Owner())
    assert sorted(each.name for each in (room / arranged.places["/run/db"]).iterdir()) == [
        "password",
        "user",
    ]


def test_a_secret_alone_is_a_folder_that_a_variable_names(vault, tmp_path):
    arranged = arrange([Secret(name="database")], vault)
    room = make_room(tmp_path / "room", Owner())
    lay_out(arranged, room, Owner())
    folder = room / arranged.folders["JOBMAN_SECRET_DATABASE"]
    assert (folder / "user").read_text() == "ada"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_missing_secret_is_named_with_the_place_it_is_looked_for(vault, tmp_path):
    with pytest.raises(CannotRun, match=f"no secret `licence`.*{tmp_path}/secrets/licence"):
        arrange([Secret(name="licence")], vault)


@pytest.mark.parametrize("key", ["nothing", "../token/value", "..", ""])
def test_a_missing_entry_is_named(vault, key):
    with pytest.raises(CannotRun, match=f"`database` has no entry `{key}`"):
        arrange([Secret(name="database", key=key, variable="X")], vault)


def test_a_secret_that_others_can_read_is_refused_with_advice(vault, tmp_path):
    for folder in ("secrets", "secrets/token"):
        (tmp_path / folder).chmod(0o755)
    (tmp_path / "secrets/token/value").chmod(0o644)
    with pytest.raises(CannotRun, match=f"chmod 700 {tmp_path}/secrets"):
        arrange([Secret(name="token")], vault)


def test_one_closed_folder_on_the_way_is_enough(vault, tmp_path):
    (tmp_path / "secrets").chmod(0o755)
    (tmp_path / "secrets/token").chmod(0o700)
    assert arrange([Secret(name="token", variable="T")], vault).variables == {"T": "abc"}


def test_what_is_no_text_cannot_be_a_variable(vault):
    with pytest.raises(CannotRun, match="give it a `path`"):
        arrange([Secret(name="binary", variable="KEY")], vault)


def test_variables_come_from_secrets_configurations_and_files(vault, tmp_path):
    (tmp_path / "defaults.env").write_text('# a comment\n\nMODE=fast\nQUOTED="as it is"\nEMPTY=\nLAST=a=b')
    found = variables_from(
        [
            EnvFrom(config="common", prefix="APP_"),
            EnvFrom(secret="database"),
            EnvFrom(file="defaults.env"),
        ],
        vault,
        tmp_path,
    )
    assert found == {
        "APP_LEVEL": "3",
        "password": "s3cret",
        "user": "ada",
        "MODE": "fast",
        "QUOTED": '"as it is"',
        "EMPTY": "",
        "LAST": "a=b",
    }


def test_a_file_of_variables_that_is_none_is_named_with_the_line(vault, tmp_path):
    (tmp_path / "defaults.env").write_text("A=1\nexport B=2\n")
    with pytest.raises(CannotRun, match=r"line 2 of .*defaults.env is not of the form NAME=value"):
        variables_from([EnvFrom(file="defaults.env")], vault, tmp_path)


def test_no_message_holds_a_value(vault, tmp_path):
    (tmp_path / "secrets/token/other").write_text("hidden-value")
    for secret in (Secret(name="token", variable="T"), Secret(name="token", key="no", variable="T")):
        with pytest.raises(CannotRun) as caught:
            arrange([secret], vault)
        assert "hidden-value" not in str(caught.value)
        assert "abc" not in str(caught.value)
