"""Folders of an attempt that only its user can look into, in memory or on disk, found again by their name."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobman.engines.endings import why
from jobman.engines.local.orders import CannotRun

SHARED_MEMORY = Path("/dev/shm")


class Owner(NamedTuple):
    """Whom the files of an attempt are for.

    In a container that is whoever the image says, so what is inside a room is open to all; the room itself,
    which no container sees, is closed.
    """

    uid: int | None = None
    gid: int | None = None
    is_in_container: bool = False

    @property
    def is_other(self) -> bool:
        """Whether a folder of ours is closed to them."""
        return not self.is_in_container and self.uid not in (None, os.geteuid())

    def take(self, path: Path) -> None:
        """Give them a file or folder; only root can."""
        if os.geteuid() == 0 and not self.is_in_container and (self.uid is not None or self.gid is not None):
            os.chown(path, -1 if self.uid is None else self.uid, -1 if self.gid is None else self.gid)


def in_memory(attempt: Path, memory: Path = SHARED_MEMORY) -> Path:
    """Where an attempt keeps what should never reach a disk; in its folder where there is no such place."""
    return _named_after(attempt, memory) if os.access(memory, os.W_OK | os.X_OK) else attempt / "private"


def on_disk(attempt: Path, owner: Owner) -> Path:
    """Where an attempt keeps files: in its folder, unless they are another user's, who cannot go there."""
    return _named_after(attempt, Path(tempfile.gettempdir())) if owner.is_other else attempt / "work"


def _named_after(attempt: Path, place: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(attempt.absolute())).hexdigest()
    return place / f"jobman-{os.geteuid()}-{digest[:20]}"


def make_room(folder: Path, owner: Owner) -> Path:
    """Make a folder that is closed to others, or take it over where it is ours already; raises CannotRun."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            _check_is_ours(folder, owner)
            folder.chmod(0o700)
        owner.take(folder)
    except OSError as error:
        raise CannotRun(f"the folder {folder} cannot be made: {why(error)}") from None
    return folder


def make_inside(room: Path, path: str, owner: Owner) -> Path:
    """Make a folder inside a room, with those on the way to it; raises CannotRun."""
    folder = room
    for part in Path(path).parts:
        folder = make_room(folder / part, owner)
        if owner.is_in_container:
            folder.chmod(0o777)
    return folder


def _check_is_ours(folder: Path, owner: Owner) -> None:
    """In a place where everybody may write, somebody may have been there before us."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), owner.uid):
        raise CannotRun(f"{folder} is in the way: it belongs to another user or is no folder")


def write(path: Path, content: bytes, owner: Owner, mode: int = 0o400) -> None:
    """Write a file that was never open to those outside; raises CannotRun."""
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        owner.take(path)
        path.chmod(mode | 0o444 if owner.is_in_container else mode)
    except OSError as error:
        raise CannotRun(f"the file {path} cannot be written: {why(error)}") from None


def remove(room: Path) -> None:
    """Remove a room with all that is in it, also what its user made read-only; links are not followed.

    Nothing outside of the room is touched. What cannot be removed stays.
    """
    with suppress(OSError):
        room.rmdir()  # most are empty by now
        return

    def open_up(_function: object, path: str, _error: object) -> None:
        """A folder without the right to write keeps its entries from being removed."""
        target = Path(path)
        # Root needs no rights, and must not be led elsewhere by links that others put there meanwhile.
        if os.geteuid() == 0 or target == room or not target.is_relative_to(room):
            return
        with suppress(OSError):
            target.parent.chmod(0o700)
            if target.is_dir() and not target.is_symlink():
                target.chmod(0o700)
                shutil.rmtree(target, ignore_errors=True)
            else:
                target.unlink(missing_ok=True)

    shutil.rmtree(room, onerror=open_up)
