import stat

import pytest

from jobman.engines.local.environments import Environments, minimal


def test_what_was_kept_is_found_by_its_digest(tmp_path):
    environments = Environments(tmp_path / "kept")
    digest = environments.keep({"PATH": "/bin", "TITLE": 'a "b" $c\nd', "NAME": "Zoë"})
    assert environments.read(digest) == {"PATH": "/bin", "TITLE": 'a "b" $c\nd', "NAME": "Zoë"}
    assert Environments(tmp_path / "kept").read(digest)["PATH"] == "/bin"


def test_the_same_environment_is_kept_once(tmp_path):
    environments = Environments(tmp_path)
    assert environments.keep({"A": "1", "B": "2"}) == environments.keep({"B": "2", "A": "1"})
    assert len(list(tmp_path.iterdir())) == 1


def test_what_belongs_to_the_shell_or_to_jobman_is_left_behind(tmp_path):
    environments = Environments(tmp_path)
    shell = {"_": "/bin/x", "SHLVL": "2", "PWD": "/here", "OLDPWD": "/there", "JOBMAN_RANK": "3"}
    assert environments.read(environments.keep({**shell, "HOME": "/root"})) == {"HOME": "/root"}


def test_what_is_no_text_is_left_behind(tmp_path):
    environments = Environments(tmp_path)
    assert environments.read(environments.keep({"A": "\udcff", "B": "b"})) == {"B": "b"}


def test_nobody_else_can_read_what_is_kept(tmp_path):
    environments = Environments(tmp_path / "kept")
    digest = environments.keep({"TOKEN": "abc"})
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "kept", tmp_path / "kept" / digest)]
    assert modes == [0o700, 0o600]


def test_what_is_no_longer_kept_is_named(tmp_path):
    with pytest.raises(LookupError, match="no longer kept"):
        Environments(tmp_path).read("0" * 64)


def test_without_an_environment_there_is_the_least_a_program_expects():
    found = minimal("somebody-this-machine-does-not-know")
    assert set(found) == {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"}
