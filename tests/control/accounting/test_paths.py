"""Which paths are closed to whom."""

import os
import subprocess

import pytest

from jobman import loads
from jobman.control.accounting import paths
from jobman.control.accounting.paths import Inspection, inspection_of, unreadable
from jobman.engines.base import Account
from tests.control.store.builders import job

NOBODY = Account(65534, 65534)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as somebody else")
not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@pytest.fixture
def place(tmp_path):
    """A folder that everybody can come to, unless a test closes it."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o011)
    open_to_all = tmp_path / "data"
    open_to_all.mkdir(mode=0o755)
    return open_to_all


def closed(account, *found):
    return unreadable([Inspection("j", account, tuple(map(str, found)))]).get("j", [])


# -- what is looked at --------------------------------------------------------------------------------------


def test_the_folder_of_submission_and_what_is_of_the_host_are_looked_at():
    text = """
version: 1
tasks:
- name: a
  command: x
  resources: {type: slot, count: 1}
  volumes:
  - {name: set, kind: host, path: /data/set, to: /in}
  - {name: tmp, kind: scratch, to: /tmp2}
- name: b
  command: x
  resources: {type: slot, count: 1}
  volumes: [{name: again, kind: host, path: /data/set, to: /in}]
"""
    record = job(cwd="/home/ada", options={"account": {"uid": 7, "gid": 8, "groups": [9]}})
    found = inspection_of(record, loads(text).plan())
    assert found == Inspection(record.id, Account(7, 8, (9,)), ("/home/ada", "/data/set"))


def test_a_job_of_the_service_itself_is_looked_at_as_that():
    plan = loads("version: 1\ntasks: [{command: x, resources: {type: slot, count: 1}}]\n").plan()
    assert inspection_of(job(cwd="/w"), plan) == Inspection(job().id, None, ("/w",))


# -- as the service -----------------------------------------------------------------------------------------


def test_what_is_open_or_gone_is_not_lost(place):
    (place / "file").write_text("x")
    assert closed(None, place, place / "file", place / "gone", place / "file" / "below", "/a\0b") == []


@not_as_root
def test_what_is_closed_to_the_service_is_lost_to_its_own_jobs(place):
    (place / "file").write_text("x")
    (place / "file").chmod(0)
    below = place / "folder"
    below.mkdir()
    (below / "file").write_text("x")
    below.chmod(0)
    assert closed(None, place, place / "file", below, below / "file") == [
        str(one) for one in (place / "file", below, below / "file")
    ]
    below.chmod(0o700)


# -- as somebody else ---------------------------------------------------------------------------------------


@as_root
def test_what_somebody_else_can_read_is_not_lost_to_them(place):
    (place / "file").write_text("x")
    assert closed(NOBODY, place, place / "file", place / "gone") == []


@as_root
def test_what_is_closed_to_somebody_else_is_lost_to_them_and_to_nobody_else(place):
    (place / "file").write_text("x")
    (place / "file").chmod(0o600)
    private = place / "private"
    private.mkdir(mode=0o700)
    inside = private / 'it\'s "here" é'
    inside.write_text("x")
    lost = closed(NOBODY, place, place / "file", private, inside)
    assert lost == [str(one) for one in (place / "file", private, inside)]
    assert closed(None, place / "file", private, inside) == []


@as_root
def test_a_group_of_the_owner_counts(place):
    (place / "file").write_text("x")
    os.chown(place / "file", 0, 4242)
    (place / "file").chmod(0o640)
    assert closed(NOBODY, place / "file") == [str(place / "file")]
    assert closed(Account(65534, 65534, (4242,)), place / "file") == []


@as_root
def test_a_folder_that_may_be_entered_and_not_listed_is_not_lost(place):
    place.chmod(0o711)
    assert closed(NOBODY, place) == []


def test_equal_paths_of_many_jobs_are_looked_at_once(place, monkeypatch):
    looked = []

    def look(found, account):
        looked.append(list(found))
        return []

    monkeypatch.setattr(paths, "_lost", look)
    found = unreadable(Inspection(f"j{number}", None, (str(place),)) for number in range(1000))
    assert (found, looked) == ({}, [[str(place)]])


def test_many_paths_are_looked_at_in_portions(place, monkeypatch):
    sizes = []

    def look(found, account):
        sizes.append(len(found))
        return []

    monkeypatch.setattr(paths, "_lost_to", look)
    files = [place / f"f{number}" for number in range(450)]
    for file in files:
        file.touch()
    closed(Account(os.geteuid() + 1, 1), *files)
    assert sizes == [200, 200, 50]


@pytest.mark.parametrize("error", [OSError("no"), subprocess.TimeoutExpired("sh", 20.0)])
def test_what_cannot_be_found_out_is_not_held_against_anybody(place, monkeypatch, error):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert closed(Account(os.geteuid() + 1, 1), place) == []
