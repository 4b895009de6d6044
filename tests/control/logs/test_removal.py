"""Removing files below a folder: nothing outside of it is ever touched, whatever lies on the way."""

import os
import subprocess
from pathlib import Path

import pytest

from jobman.control.logs.removal import OddPath, entered


@pytest.fixture
def home(tmp_path):
    """A folder with a file two steps below it, and another file outside."""
    (tmp_path / "jobs" / "a" / "1").mkdir(parents=True)
    (tmp_path / "jobs" / "a" / "1" / "0.out").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "0.out").write_text("theirs")
    return tmp_path


def remove(home, path):
    with entered(home / "jobs") as room:
        room.check(path)
        room.remove(path)


def test_a_file_is_removed_and_what_is_beside_it_stays(home):
    (home / "jobs" / "a" / "1" / "0.exit").write_text("{}")
    remove(home, "a/1/0.out")
    assert [each.name for each in (home / "jobs" / "a" / "1").iterdir()] == ["0.exit"]


@pytest.mark.parametrize("path", ["a/1/1.out", "a/2/0.out", "b/1/0.out", "new"])
def test_what_is_not_there_is_gone_already(home, path):
    remove(home, path)


@pytest.mark.parametrize(
    "path",
    [
        "a/../../outside/0.out",
        "../outside/0.out",
        "a/./1/0.out",
        "a//1/0.out",
        "/etc/passwd",
        "a/1/",
        "",
        ".",
    ],
)
def test_a_path_that_is_not_plain_is_refused(home, path):
    with pytest.raises(OddPath):
        remove(home, path)
    assert (home / "outside" / "0.out").exists()


@pytest.mark.parametrize("link", ["a", "a/1"])
def test_a_link_on_the_way_is_not_followed(home, link):
    (home / "outside" / "1").mkdir()
    (home / "outside" / "1" / "0.out").write_text("theirs, too")
    (home / "jobs" / link).rename(home / "moved")
    (home / "jobs" / link).symlink_to(home / "outside")
    with pytest.raises(OddPath, match="link"):
        remove(home, "a/1/0.out")
    assert (home / "outside" / "0.out").read_text() == "theirs"
    assert (home / "outside" / "1" / "0.out").exists()


def test_of_a_link_in_the_place_of_the_file_only_the_link_goes(home):
    place = home / "jobs" / "a" / "1" / "0.out"
    place.unlink()
    place.symlink_to(home / "outside" / "0.out")
    remove(home, "a/1/0.out")
    assert not place.is_symlink()
    assert (home / "outside" / "0.out").read_text() == "theirs"


def test_another_name_of_the_same_file_stays(home):
    os.link(home / "jobs" / "a" / "1" / "0.out", home / "outside" / "kept")
    remove(home, "a/1/0.out")
    assert (home / "outside" / "kept").read_text() == "mine"


def test_a_folder_in_the_place_of_the_file_stays(home):
    with pytest.raises(OddPath, match="folder"):
        remove(home, "a/1")
    assert (home / "jobs" / "a" / "1" / "0.out").exists()


def test_a_file_in_the_place_of_a_folder_is_refused(home):
    with pytest.raises(OddPath):
        remove(home, "a/1/0.out/0.out")


def test_a_folder_that_is_a_link_is_not_entered(home):
    (home / "jobs").rename(home / "moved")
    (home / "jobs").symlink_to(home / "moved")
    with pytest.raises(OSError, match="jobs"):
        remove(home, "a/1/0.out")
    assert (home / "moved" / "a" / "1" / "0.out").exists()


def test_the_way_to_the_folder_may_have_links(home):
    (home / "short").symlink_to(home)
    with entered(home / "short" / "jobs") as room:
        room.remove("a/1/0.out")
    assert not (home / "jobs" / "a" / "1" / "0.out").exists()


def test_another_file_system_is_not_entered(home):
    mounted = home / "jobs" / "a" / "1"
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", mounted], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (mounted / "0.out").write_text("theirs")
        with pytest.raises(OddPath, match="another file system"):
            remove(home, "a/1/0.out")
        assert (mounted / "0.out").exists()
    finally:
        subprocess.run(["umount", "-l", mounted], check=True)


def test_no_descriptor_is_left_open(home):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/1/0.out", "a/1/0.out", "b/0.out"):
        remove(home, path)
    with pytest.raises(OddPath):
        remove(home, "a/1")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
