"""Processes and their trees: who lives, who descends from whom, and the end of all of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

MARKER = "JOBMAN_COPY"
"""The variable in the environment of every process of a copy; its value is the id of the order."""

PAGE = os.sysconf("SC_PAGE_SIZE")
_PATIENCE = 10.0
_PASSES = 50


class Process(NamedTuple):
    """A process for good: a pid is given away again, a pid with its start is not (within one boot)."""

    pid: int
    ticks: int


class Facts(NamedTuple):
    """What /proc says of a process."""

    state: str
    parent: int
    session: int
    ticks: int

    @property
    def is_dead(self) -> bool:
        return self.state in "ZX"


def facts(pid: int) -> Facts | None:
    """What /proc/PID/stat says, or None where there is no such process."""
    text = _read(f"/proc/{pid}/stat")
    if not text:
        return None
    # The name of the program stands in brackets and may hold anything, also brackets and spaces.
    fields = text[text.rindex(b")") + 2 :].split(None, 20)
    return Facts(fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def own_process() -> Process:
    """This process."""
    pid = os.getpid()
    own = facts(pid)
    return Process(pid, own.ticks if own else 0)


def process_alive(pid: int, ticks: int) -> bool:
    """Whether the very process that had this pid and start still runs; a zombie does not."""
    found = facts(pid) if pid > 0 else None
    return found is not None and found.ticks == ticks and not found.is_dead


def open_process(process: Process) -> int | None:
    """A pidfd of exactly this process, or None where it is gone, or where the system has no such thing."""
    if not _HAS_PIDFD:
        return None
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return None
    found = facts(process.pid)
    if found is not None and found.ticks == process.ticks:
        return descriptor
    os.close(descriptor)
    return None


def send(process: Process, number: int) -> bool:
    """Send a signal to exactly this process; False where it is gone or not ours to signal."""
    if not _HAS_PIDFD:
        return _send_by_number(process, number)
    descriptor = open_process(process)
    if descriptor is None:
        return False
    try:
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _send_by_number(process: Process, number: int) -> bool:
    found = facts(process.pid)
    if found is None or found.ticks != process.ticks:
        return False
    try:
        os.kill(process.pid, number)
    except OSError:
        return False
    return True


def descendants(root: int) -> list[Process]:
    """The living descendants of a process, without itself."""
    found = []
    children = _listed_children if _LISTS_CHILDREN else _searched_children()
    waiting = children(root)
    while waiting:
        pid = waiting.pop()
        known = facts(pid)
        if known is not None and not known.is_dead:
            found.append(Process(pid, known.ticks))
        waiting += children(pid)
    return found


def marked(order_id: str) -> list[Process]:
    """The living processes that carry the marker of an order, as far as we may look."""
    wanted = f"{MARKER}={order_id}".encode()
    return _living(lambda pid, _: wanted in _read(f"/proc/{pid}/environ").split(b"\0"))


def in_session(session: int) -> list[Process]:
    """The living processes of a session."""
    return _living(lambda _, known: known.session == session)


def signal_all(find: Callable[[], Iterable[Process]], number: int, *, passes: int = _PASSES) -> None:
    """Signal what is found, and in further passes what appeared meanwhile, until nothing new does."""
    seen: set[Process] = set()
    for _ in range(passes):
        fresh = set(find()) - seen
        if not fresh:
            return
        for process in fresh:
            send(process, number)
        seen |= fresh


def kill_all(
    find: Callable[[], list[Process]], reap: Callable[[], object] = lambda: None, patience: float = _PATIENCE
) -> list[Process]:
    """Kill what is found until nothing is left; returns what could not be killed in that time."""
    # Stopped first: what stands still cannot fork away from the kill.
    signal_all(find, signal.SIGSTOP)
    until = time.monotonic() + patience
    pause = 0.0005
    while left := find():
        for process in left:
            send(process, signal.SIGKILL)
        reap()
        if time.monotonic() > until:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return []


def clear_children(
    find: Callable[[], list[Process]], reap: Callable[[], bool], patience: float = _PATIENCE
) -> list[Process]:
    """Kill what is found until this process has no children; returns what could not be killed in that time.

    `reap` takes in those that ended, and tells whether there are none left.
    """
    # The list of children in /proc may miss one while others end; wait does not.
    until = time.monotonic() + patience
    while not reap():
        left = kill_all(find, reap, patience)
        if time.monotonic() > until:
            return left
    return []


def resident_memory(processes: Iterable[Process]) -> int:
    """Bytes of memory that the processes have in use, what they share counted for each."""
    return sum(_resident_pages(process.pid) for process in processes) * PAGE


def proportional_memory(processes: Iterable[Process]) -> int:
    """Bytes of memory in use, what is shared counted once; slower. Where it is hidden, as resident."""
    return sum(_proportional(process.pid) for process in processes)


def _resident_pages(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) if fields else 0


def _proportional(pid: int) -> int:
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return _resident_pages(pid) * PAGE


def _searched_children() -> Callable[[int], list[int]]:
    families: dict[int, list[int]] = {}
    for pid, known in _everyone():
        families.setdefault(known.parent, []).append(pid)
    return lambda pid: families.get(pid, [])


def _listed_children(pid: int) -> list[int]:
    try:
        threads = list(os.scandir(f"/proc/{pid}/task"))
    except OSError:
        return []
    return [int(each) for thread in threads for each in _read(f"{thread.path}/children").split()]


def _living(fits: Callable[[int, Facts], bool]) -> list[Process]:
    return [Process(pid, known.ticks) for pid, known in _everyone() if not known.is_dead and fits(pid, known)]


def _everyone() -> Iterator[tuple[int, Facts]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (known := facts(int(entry.name))):
            yield int(entry.name), known


def _read(path: str) -> bytes:
    """The content of a file of /proc; empty where the process is gone or not ours to look at."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return False
    return True


_HAS_PIDFD = _has_pidfd()
# Built into most kernels, not into all.
_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()
