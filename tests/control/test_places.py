"""Where a service keeps its things."""

import os
from pathlib import Path

import pytest

from jobman.control.places import LONGEST_SOCKET_PATH, Insecure, Places, find_places, make_private


def test_the_state_folder_is_that_of_the_environment(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert find_places(home).state == tmp_path / ".local/share/jobman"
    assert find_places({**home, "XDG_DATA_HOME": "/data"}).state == Path("/data/jobman")
    assert find_places({**home, "XDG_DATA_HOME": "data"}).state == tmp_path / ".local/share/jobman"
    assert find_places({**home, "JOBMAN_STATE": "/mine"}).state == Path("/mine")


def test_the_socket_of_the_usual_service_is_in_the_runtime_folder(tmp_path: Path) -> None:
    usual = {"HOME": "/home/ada", "XDG_RUNTIME_DIR": str(tmp_path)}
    assert find_places(usual).socket == tmp_path / "jobman" / "service.sock"
    assert find_places({**usual, "JOBMAN_STATE": "/mine"}).socket == Path("/mine/service.sock")
    assert find_places({**usual, "XDG_RUNTIME_DIR": "/gone"}).socket.parent == find_places(usual).state


def test_a_path_too_long_for_a_socket_is_replaced_by_a_short_one_of_its_own() -> None:
    deep, deeper = (Path("/") / ("x" * length) for length in (120, 121))
    sockets = {str(Places(state).socket) for state in (deep, deeper)}
    assert len(sockets) == 2
    assert all(len(socket) <= LONGEST_SOCKET_PATH for socket in sockets)
    assert all(socket.startswith(f"/tmp/jobman-{os.geteuid()}-") for socket in sockets)


def test_folders_are_made_for_their_user_alone(tmp_path: Path) -> None:
    places = Places(tmp_path / "a" / "b", tmp_path / "run" / "service.sock")
    places.make()
    places.make()
    for folder in (places.state, places.socket.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    places.state.chmod(0o755)
    places.make()
    assert places.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="takes the rights of root to give a folder away")
def test_a_folder_or_link_of_another_user_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    with pytest.raises(Insecure, match="another user"):
        make_private(folder)
    mine, link = tmp_path / "mine", tmp_path / "link"
    mine.mkdir(mode=0o700)
    link.symlink_to(mine)
    make_private(link)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(Insecure, match="another user"):
        make_private(link)
