"""The files in a copy's folder. They are the truth about it; everything else may die and ask them.

| file | says | written |
| --- | --- | --- |
| `N.started` | the copy has a process: nothing may start it again | once, by that process, first of all |
| `N.exit` | how it ended | once, by its shim |
| `N.out`, `N.err` | what it printed, unless the order names other files | by the copy itself |
| `N.wanted` | that it should stop or stand still | by the launcher, for the shim |
| `N.reaped` | how its process ended | by the launcher, where the shim that should know died before |
| `N.keeper` | which shim looks after it now | by a shim that took over from a dead one |
| `N.TURN` | that a turn of its life (`warned`, `on_stop`, `after`) was taken | once, by a shim |

Nothing is synced: a machine that loses power loses the copies too, and the boot id tells.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from jobman.engines.local.orders import Reason
from jobman.engines.local.trees import Process, process_alive

State = Literal["unknown", "running", "ending", "gone", "ended", "void"]
Turn = Literal["warned", "on_stop", "after"]
RESULT_BYTES = 4096
_AT_ONCE = 1 << 16
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Started(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A copy has a process. `clock` is monotonic, and so the same for all until the next boot."""

    id: str = ""
    copy: int = 0
    pid: int = 0
    ticks: int = 0
    boot: str = ""
    shim: Process = Process(0, 0)
    at: float = 0.0
    clock: float = 0.0
    memory_cgroup: str | None = None
    freezer_cgroup: str | None = None
    notes: tuple[str, ...] = ()
    void: bool = False

    @property
    def process(self) -> Process:
        return Process(self.pid, self.ticks)


class Refusal(msgspec.Struct, frozen=True, tag="refused"):
    """Why the command of a started copy was never reached."""

    reason: Reason
    message: str


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """That the process of a copy ended, noted by its shim before the kernel forgets it."""

    status: int
    at: float
    clock: float


class Start(msgspec.Struct, frozen=True):
    """`N.started`: the start, and in further lines what was added to it."""

    started: Started
    refusal: Refusal | None = None
    finished: Finished | None = None


class Reaped(msgspec.Struct, frozen=True):
    """How the process of a copy ended, as its parent was told; the status is that of wait."""

    status: int
    at: float
    clock: float
    user_seconds: float
    system_seconds: float
    max_rss: int


class Wanted(msgspec.Struct, omit_defaults=True):
    """What a copy was asked for while it runs; the moments are those of the monotonic clock."""

    duration: float | None = None
    stop_at: float | None = None
    grace: float | None = None
    why: str = ""
    frozen_since: float | None = None
    frozen_seconds: float = 0.0

    def stop(self, clock: float, grace: float, why: str) -> None:
        """Ask for the end; a later request may shorten the grace, not lengthen it."""
        if self.stop_at is None or self.grace is None:
            self.stop_at, self.grace, self.why = clock, grace, why
        else:
            self.grace = min(self.grace, clock - self.stop_at + grace)

    def freeze(self, clock: float) -> None:
        if self.frozen_since is None:
            self.frozen_since = clock

    def thaw(self, clock: float) -> None:
        if self.frozen_since is not None:
            self.frozen_seconds += clock - self.frozen_since
            self.frozen_since = None

    def prolong(self, duration: float | None) -> None:
        if duration is not None:
            self.duration = duration


class Exit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a copy ended. One of `exit_code` and `signal` is known, unless it was lost.

    A signal is named as in documents, without SIG. `killed`: peace did not help, it was ended by force.
    """

    id: str
    copy: int
    reason: Reason
    exit_code: int | None = None
    signal: str | None = None
    message: str = ""
    stopped: bool = False
    why: str = ""
    killed: bool = False
    started_at: float | None = None
    ended_at: float
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss: int = 0
    result: str | None = None
    usage_lost: bool = False
    after_lost: bool = False
    notes: tuple[str, ...] = ()


class CopyState(msgspec.Struct, frozen=True):
    """Where a copy stands, from its files and the processes they name.

    `ending`: its process is gone, and a shim still sees to the rest. `gone`: nobody does; launch its order
    again to have the end recorded, as well as can be known.
    """

    state: State
    started: Started | None = None
    exit: Exit | None = None
    keeper: Process | None = None


@cache
def boot_id() -> str:
    """A name for the time since the machine was started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def path_of(folder: str, copy: int, kind: str) -> str:
    """Where a record of a copy is."""
    return f"{folder}/{copy}.{kind}"


def read_copy(folder: str, copy: int) -> CopyState:
    """Where a copy stands."""
    exit_ = read_exit(folder, copy)
    start_ = read_start(folder, copy)
    if exit_ is not None:
        return CopyState("ended", start_.started if start_ else None, exit_)
    if start_ is None:
        return CopyState("unknown")
    started = start_.started
    if started.void:
        return CopyState("void", started)
    keeper = _keeper(folder, copy, started)
    return CopyState(_unfinished(started, keeper), started, None, keeper)


def _unfinished(started: Started, keeper: Process | None) -> State:
    if started.boot == boot_id() and process_alive(*started.process):
        return "running"
    return "gone" if keeper is None else "ending"


def _keeper(folder: str, copy: int, started: Started) -> Process | None:
    if started.boot != boot_id():
        return None
    keeper = _read(folder, copy, "keeper", Process) or started.shim
    return keeper if process_alive(*keeper) else None


def read_start(folder: str, copy: int) -> Start | None:
    """The start of a copy, where there was one."""
    content = _content(path_of(folder, copy, "started"))
    return None if content is None else _parse_start(content, copy)


def note_end(folder: str, copy: int, pid: int, status: int) -> Start | None:
    """Add to the start of a copy that its process ended, if that is the process; returns the start."""
    try:
        descriptor = os.open(path_of(folder, copy, "started"), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return None
    found = _parse_start(os.read(descriptor, _AT_ONCE), copy)
    if found.started.pid == pid:
        with suppress(OSError):  # a full disk must not keep a shim from its work
            os.write(descriptor, encode(Finished(status, *now())) + b"\n")
    os.close(descriptor)
    return found


def _parse_start(content: bytes, copy: int) -> Start:
    first, *more = content.splitlines() or [b""]
    refusal = finished = None
    for each in more:
        refusal = refusal or _decode(each, Refusal)
        finished = finished or _decode(each, Finished)
    # A file that lost its content with the power still says that there was a start, and of another boot.
    return Start(_decode(first, Started) or Started(copy=copy), refusal, finished)


def read_exit(folder: str, copy: int) -> Exit | None:
    """The end of a copy, where it is recorded."""
    content = _content(path_of(folder, copy, "exit"))
    if content is None:
        return None
    damaged = Exit(id="", copy=copy, reason="lost", message="the record of its end is damaged", ended_at=0.0)
    return _decode(content, Exit) or damaged


def read_wanted(folder: str, copy: int) -> Wanted:
    return _read(folder, copy, "wanted", Wanted) or Wanted()


def read_reaped(folder: str, copy: int) -> Reaped | None:
    return _read(folder, copy, "reaped", Reaped)


def start(folder: str, started: Started) -> int | None:
    """Claim the start of a copy for this process: a descriptor for `refuse`, or None where it is taken."""
    return _create(path_of(folder, started.copy, "started"), encode(started) + b"\n")


def refuse(descriptor: int, refusal: Refusal) -> None:
    """Add to a start why it goes no further; works also after rights were given up."""
    _write_all(descriptor, encode(refusal) + b"\n")


def void(folder: str, copy: int) -> bool:
    """Make sure that a copy never starts; False where it has."""
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - quicker
    descriptor = _create(path_of(folder, copy, "started"), encode(Started(copy=copy, void=True)) + b"\n")
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def claim(folder: str, copy: int, turn: Turn) -> bool:
    """Take a turn of a copy's life; False where it was taken before."""
    try:
        os.close(os.open(path_of(folder, copy, turn), os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True  # a full disk must not keep a copy from its hooks
    return True


def write_exit(folder: str, exit_: Exit) -> bool:
    """Record the end of a copy; False where it was recorded before, and that record stands."""
    descriptor = _create(path_of(folder, exit_.copy, "exit"), encode(exit_))
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def write_wanted(folder: str, copy: int, wanted: Wanted) -> None:
    _replace(path_of(folder, copy, "wanted"), encode(wanted))


def write_reaped(folder: str, copy: int, reaped: Reaped) -> None:
    _replace(path_of(folder, copy, "reaped"), encode(reaped))


def write_keeper(folder: str, copy: int, keeper: Process) -> None:
    _replace(path_of(folder, copy, "keeper"), encode(keeper))


def now() -> tuple[float, float]:
    """The time, and the monotonic clock."""
    return time.time(), time.monotonic()


encode = msgspec.json.Encoder().encode
Record = TypeVar("Record")


def _read(folder: str, copy: int, kind: str, record: type[Record]) -> Record | None:
    content = _content(path_of(folder, copy, kind))
    return _decode(content, record) if content else None


def _decode(content: bytes, record: type[Record]) -> Record | None:
    try:
        return msgspec.json.decode(content, type=record) if content else None
    except msgspec.MsgspecError:
        return None


def _content(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        parts = []
        while part := os.read(descriptor, _AT_ONCE):
            parts.append(part)
            if len(part) < _AT_ONCE:
                break
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _create(path: str, content: bytes) -> int | None:
    """Create a file with its content in one step; None where it is there already."""
    draft, descriptor = _draft(path, content)
    try:
        os.link(draft, path)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, FileExistsError):
            return None
        raise
    finally:
        os.unlink(draft)  # noqa: PTH108 - on the way of every copy
    return descriptor


def _replace(path: str, content: bytes) -> None:
    draft, descriptor = _draft(path, content)
    os.close(descriptor)
    os.rename(draft, path)  # noqa: PTH104 - likewise


def _draft(path: str, content: bytes) -> tuple[str, int]:
    draft = f"{path}.{os.getpid()}"
    try:
        descriptor = os.open(draft, _NEW, 0o600)
    except FileExistsError:
        # Left by one that was killed and had our pid; it may be linked, so it must not be written to.
        os.unlink(draft)  # noqa: PTH108 - likewise
        descriptor = os.open(draft, _NEW, 0o600)
    try:
        _write_all(descriptor, content)
    except OSError:
        os.close(descriptor)
        os.unlink(draft)  # noqa: PTH108 - likewise
        raise
    return draft, descriptor


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
