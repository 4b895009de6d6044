"""Where a service keeps its things: the state folder, the socket, and the files beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

LONGEST_SOCKET_PATH = 107
"""What Linux allows in the address of a Unix socket."""


class Places:
    """The files of one service. Nothing is made before it is needed."""

    __slots__ = ("socket", "state")

    def __init__(self, state: Path, socket: Path | None = None) -> None:
        self.state = state
        self.socket = socket or _socket_beside(state)

    @property
    def database(self) -> Path:
        return self.state / "jobman.db"

    @property
    def jobs(self) -> Path:
        return self.state / "jobs"

    @property
    def environments(self) -> Path:
        return self.state / "environments"

    @property
    def log(self) -> Path:
        return self.state / "service.log"

    @property
    def lock(self) -> Path:
        """Held by a command while it starts the service."""
        return self.state / "service.lock"

    @property
    def pid(self) -> Path:
        """Held by the service for its life; says who and of which version it is."""
        return self.state / "service.pid"

    def make(self) -> None:
        """Make the folders, for this user alone; raises Insecure where another could meddle with them."""
        make_private(self.state)
        if self.socket.parent != self.state:
            make_private(self.socket.parent)


class Insecure(OSError):
    """A folder that is meant to be private belongs to another user, or others may write in it."""


def find_places(environ: Mapping[str, str] | None = None) -> Places:
    """The places of this user's own service."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("JOBMAN_STATE"):
        return Places(Path(chosen).expanduser().absolute())
    state = _data_home(environ) / "jobman"
    runtime = environ.get("XDG_RUNTIME_DIR")
    # A runtime folder that is gone (a session that ended, `sudo`) must not keep the service from starting.
    if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
        socket = Path(runtime) / "jobman" / "service.sock"
        if _fits(socket):
            return Places(state, socket)
    return Places(state)


def make_private(folder: Path) -> None:
    """Make a folder that only this user may enter; one that is there is closed to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A link is fine where this very user made it; in /tmp anybody could have put one in the way.
    if any(found.st_uid != os.geteuid() for found in (folder.lstat(), folder.stat())):
        raise Insecure(f"{folder} belongs to another user")
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)


def _data_home(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("XDG_DATA_HOME")
    # The XDG specification has relative paths ignored.
    if chosen and Path(chosen).is_absolute():
        return Path(chosen)
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / ".local" / "share"


def _socket_beside(state: Path) -> Path:
    """In the state folder, or in a folder of this user below /tmp where the path would be too long."""
    socket = state / "service.sock"
    if _fits(socket):
        return socket
    from hashlib import sha256

    name = sha256(os.fsencode(state)).hexdigest()[:16]
    return Path("/tmp") / f"jobman-{os.geteuid()}-{name}" / "service.sock"


def _fits(socket: Path) -> bool:
    return len(os.fsencode(socket)) <= LONGEST_SOCKET_PATH
