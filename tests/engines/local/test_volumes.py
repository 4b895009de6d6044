import asyncio
import os
import stat
import subprocess
from pathlib import Path

import pytest

from jobman.engines.local.links import Links
from jobman.engines.local.orders import CannotRun
from jobman.engines.local.private import SHARED_MEMORY, Owner, in_memory, make_room, on_disk, remove
from jobman.engines.local.secrets import Vault
from jobman.engines.local.volumes import Mount, Rooms, outgrown, provide
from jobman.spec.volumes import Volume


@pytest.fixture
def rooms(tmp_path: Path) -> Rooms:
    return Rooms(tmp_path / "disk", tmp_path / "memory")


def given(volume: Volume, rooms: Rooms, copy: int | None = None) -> Mount:
    vault = Vault(rooms.disk.parent / "home")
    (mount,) = asyncio.run(provide([volume], rooms, vault, copy))
    return mount


def test_a_folder_of_the_node_is_the_folder_itself(tmp_path, rooms):
    mount = given(Volume(name="data", kind="host", path=str(tmp_path), to="/data", read_only=True), rooms)
    assert mount == Mount("data", str(tmp_path), "/data", True)


def test_a_folder_of_the_node_is_made_where_that_is_asked_for(tmp_path, rooms):
    path = tmp_path / "a" / "b"
    given(Volume(name="data", kind="host", path=str(path), to="/data", create=True), rooms)
    assert path.is_dir()


def test_a_missing_folder_of_the_node_is_named_with_advice(tmp_path, rooms):
    with pytest.raises(CannotRun, match=r"the volume `data`: .*/no does not exist.*`create: true`"):
        given(Volume(name="data", kind="host", path=str(tmp_path / "no"), to="/data"), rooms)


@pytest.mark.parametrize("kind", ["scratch", "ephemeral", "memory"])
def test_each_copy_in_a_container_has_storage_of_its_own(rooms, kind):
    volume = Volume(name="tmp", kind=kind, to="/scratch", size=1024)
    first, second = given(volume, rooms, 0), given(volume, rooms, 1)
    assert first.source != second.source
    assert Path(first.source).is_dir()
    assert first.size == 1024


def test_memory_is_shared_memory_where_that_is_what_is_meant(rooms):
    mount = given(Volume(name="shm", kind="memory", size=1, to="/dev/shm"), rooms)
    assert mount.source == "/dev/shm"
    assert mount.size is None


def test_entries_are_files_with_the_mode_that_is_asked_for(tmp_path, rooms):
    entry = tmp_path / "home/secrets/keys/id"
    entry.parent.mkdir(parents=True)
    entry.write_text("secret")
    (tmp_path / "home/secrets").chmod(0o700)
    mount = given(Volume(name="keys", kind="secret", secret="keys", mode="0440", to="/keys"), rooms)
    file = Path(mount.source) / "id"
    assert file.read_text() == "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o440
    assert stat.S_IMODE(rooms.memory.stat().st_mode) == 0o700


def test_in_a_container_files_are_open_and_the_room_around_them_closed(tmp_path):
    rooms = Rooms(tmp_path / "disk", tmp_path / "memory", Owner(is_in_container=True))
    (tmp_path / "home/configs/model").mkdir(parents=True)
    (tmp_path / "home/configs/model/level").write_text("3")
    mount = given(Volume(name="conf", kind="config", config="model", to="/etc/model"), rooms)
    assert stat.S_IMODE((Path(mount.source) / "level").stat().st_mode) & 0o444 == 0o444
    assert stat.S_IMODE(rooms.memory.stat().st_mode) == 0o700


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=path,
            check=True,
            capture_output=True,
        )

    path.mkdir()
    git("init", "--quiet", "--initial-branch=main")
    for tag in ("v1", "v2"):
        (path / "file").write_text(tag)
        git("add", "file")
        git("commit", "--quiet", "--message", tag)
        git("tag", tag)
    git("checkout", "--quiet", "-b", "side", "v1")
    git("checkout", "--quiet", "main")
    return path


@pytest.mark.parametrize(
    ("revision", "content"), [(None, "v2"), ("v1", "v1"), ("main", "v2"), ("side", "v1")]
)
def test_a_repository_is_checked_out_at_its_revision(rooms, repository, revision, content):
    volume = Volume(name="source", kind="git", repository=str(repository), revision=revision, to="/source")
    assert (Path(given(volume, rooms).source) / "file").read_text() == content


def test_a_missing_revision_is_named(rooms, repository):
    volume = Volume(name="source", kind="git", repository=str(repository), revision="v9", to="/source")
    with pytest.raises(CannotRun, match=r"the volume `source`: .* has no revision `v9`"):
        given(volume, rooms)


def test_a_missing_repository_is_told_in_the_words_of_git(rooms, tmp_path):
    volume = Volume(name="source", kind="git", repository=str(tmp_path / "no"), to="/source")
    with pytest.raises(CannotRun, match=r"the volume `source`: git: .*no"):
        given(volume, rooms)


def test_a_kind_that_needs_a_cluster_is_refused(rooms):
    with pytest.raises(CannotRun, match="kind claim, which this machine does not offer"):
        given(Volume(name="results", kind="claim", claim="x", to="/results"), rooms)


def test_a_volume_that_holds_more_than_its_size_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    large, small = (Mount("tmp", str(tmp_path), "/tmp", size=size) for size in (10_000_000, 1024))
    assert outgrown([large, small]) is small
    assert outgrown([large]) is None
    assert small.is_full == "the volume `tmp` holds more than its 1Ki"


# -- links -------------------------------------------------------------------------------------------


@pytest.fixture
def links(tmp_path: Path) -> Links:
    (tmp_path / "source").mkdir()
    return Links(tmp_path / "links")


def test_a_link_is_made_with_its_folders_and_removed_with_them(links, tmp_path):
    to = tmp_path / "a" / "b" / "data"
    links.make(str(to), str(tmp_path / "source"), "one", "the volume `data`")
    assert to.resolve() == tmp_path / "source"
    links.release("one")
    assert not (tmp_path / "a").exists()


def test_a_link_stays_until_the_last_user_is_gone(links, tmp_path):
    to = tmp_path / "data"
    for user in ("one", "two"):
        links.make(str(to), str(tmp_path / "source"), user, "the volume `data`")
    Links(tmp_path / "links").release("one")
    assert to.is_symlink()
    Links(tmp_path / "links").release("two")
    assert not to.is_symlink()


def test_what_is_there_already_is_in_the_way_and_stays(links, tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(
        CannotRun, match=r"the volume `data` cannot be put at .*/data: something else is there"
    ):
        links.make(str(tmp_path / "data"), str(tmp_path / "source"), "one", "the volume `data`")
    links.release("one")
    assert (tmp_path / "data").is_dir()


def test_a_place_that_leads_there_already_is_left_as_it_is(links, tmp_path):
    (tmp_path / "data").symlink_to(tmp_path / "source")
    links.make(str(tmp_path / "data"), str(tmp_path / "source"), "one", "the volume `data`")
    links.make(str(tmp_path / "source"), str(tmp_path / "source"), "one", "the volume `data`")
    links.release("one")
    assert (tmp_path / "data").is_symlink()


def test_a_place_that_another_attempt_uses_for_its_own_is_taken(links, tmp_path):
    (tmp_path / "other").mkdir()
    links.make(str(tmp_path / "data"), str(tmp_path / "source"), "one", "the volume `data`")
    with pytest.raises(CannotRun, match=r"another attempt.*`parallelism: 1`"):
        links.make(str(tmp_path / "data"), str(tmp_path / "other"), "two", "the volume `data`")


def test_a_place_where_nothing_can_be_made_is_told(links, tmp_path):
    with pytest.raises(CannotRun, match=r"cannot be put at /proc/no/data: .* give the task an image"):
        links.make("/proc/no/data", str(tmp_path / "source"), "one", "the volume `data`")
    assert not list((tmp_path / "links").iterdir())


# -- rooms -------------------------------------------------------------------------------------------


def test_a_room_has_the_same_name_after_a_restart_and_another_for_each_attempt(tmp_path):
    assert in_memory(tmp_path / "1") == in_memory(tmp_path / "1")
    assert in_memory(tmp_path / "1") != in_memory(tmp_path / "2")
    assert in_memory(tmp_path / "1").parent == SHARED_MEMORY


def test_without_shared_memory_the_room_is_in_the_folder_of_the_attempt(tmp_path):
    assert in_memory(tmp_path / "1", memory=tmp_path / "no") == tmp_path / "1" / "private"


def test_another_user_gets_a_room_outside_of_our_folders(tmp_path):
    assert on_disk(tmp_path, Owner()) == tmp_path / "work"
    assert not on_disk(tmp_path, Owner(uid=os.geteuid() + 1)).is_relative_to(tmp_path)


def test_a_room_is_not_taken_over_from_a_link(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "room").symlink_to(tmp_path / "target")
    with pytest.raises(CannotRun, match="is in the way"):
        make_room(tmp_path / "room", Owner())


def test_a_room_is_removed_with_what_was_made_read_only_and_links_are_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    room = make_room(tmp_path / "room", Owner())
    (room / "deep").mkdir()
    (room / "deep/file").write_text("x")
    (room / "link").symlink_to(tmp_path / "precious")
    (room / "deep").chmod(0o500)
    remove(room)
    assert not room.exists()
    assert (tmp_path / "precious/file").exists()


def test_removing_what_is_not_there_changes_nothing_around_it(tmp_path):
    (tmp_path / "around").mkdir(mode=0o755)
    remove(tmp_path / "around" / "room")
    assert stat.S_IMODE((tmp_path / "around").stat().st_mode) == 0o755
