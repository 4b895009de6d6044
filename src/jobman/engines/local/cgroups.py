"""Control groups, version 1 or 2, where this user may make them: a memory limit, and a freezer."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import NamedTuple

from jobman.engines.local.trees import Process, facts, send

_PATIENCE = 2.0
_MODERN = frozenset(("memory", "freezer"))


class Mount(NamedTuple):
    """A hierarchy of control groups, and the group of this process in it."""

    kind: str
    controllers: frozenset[str]
    point: Path
    own: Path

    def places(self) -> list[Path]:
        """Where a group can be made; version 2 wants processes in leaves, so that may be beside our own."""
        beside = self.kind == "cgroup2" and self.own != self.point
        return [self.own, self.own.parent] if beside else [self.own]


class Cage:
    """The control groups of one copy; they may be one and the same folder."""

    def __init__(self, memory: str | None, freezer: str | None) -> None:
        self.memory = Path(memory) if memory else None
        self.freezer = Path(freezer) if freezer else None

    def processes(self) -> list[Process]:
        """The living processes in it."""
        pids = {int(pid) for folder in self._folders() for pid in _text(folder / "cgroup.procs").split()}
        known = ((pid, facts(pid)) for pid in pids)
        return [Process(pid, found.ticks) for pid, found in known if found and not found.is_dead]

    def out_of_memory(self) -> int:
        """How often the kernel killed a process in it for want of memory."""
        if self.memory is None:
            return 0
        text = _text(self.memory / "memory.events") or _text(self.memory / "memory.oom_control")
        found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def freeze(self, *, frozen: bool) -> bool:
        """Let all in it stand still or go on; False where it cannot."""
        if self.freezer is None:
            return False
        modern = self.freezer / "cgroup.freeze"
        if modern.exists():
            return _write(modern, "1" if frozen else "0")
        return _write(self.freezer / "freezer.state", "FROZEN" if frozen else "THAWED")

    def kill(self) -> None:
        """Kill all in it at once."""
        self.freeze(frozen=False)
        for folder in self._folders():
            _write(folder / "cgroup.kill", "1")
        for process in self.processes():
            send(process, signal.SIGKILL)

    def remove(self) -> bool:
        """Remove it, once it is empty; the kernel may take a moment to notice that it is."""
        until = time.monotonic() + _PATIENCE
        while not all(_remove(folder) for folder in self._folders()):
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True

    def _folders(self) -> set[Path]:
        return {folder for folder in (self.memory, self.freezer) if folder is not None}


def enter(name: str, memory: int | None) -> Cage:
    """Move this process into control groups of its own; each part is missing where it cannot be had."""
    name = _folder_name(name)
    mounts = _mounts()
    limited = None if memory is None else _first(mounts, "memory", name, memory)
    if limited is not None and (limited / "cgroup.freeze").exists():
        return Cage(str(limited), str(limited))
    freezer = _first(mounts, "freezer", name, None)
    return Cage(*(str(folder) if folder else None for folder in (limited, freezer)))


def find(name: str) -> Cage:
    """The control groups of a name, where they are there: left by a process that could not tell of them."""
    name = _folder_name(name)
    places = {
        controller: place / name
        for mount in _mounts()
        for place in mount.places()
        for controller in mount.controllers & _MODERN
        if _is_there(place / name)
    }
    return Cage(*(str(places[each]) if each in places else None for each in ("memory", "freezer")))


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:
        return False  # a name that no group can have


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", name)


def _first(mounts: list[Mount], controller: str, name: str, memory: int | None) -> Path | None:
    for mount in mounts:
        if controller not in mount.controllers:
            continue
        for place in mount.places():
            if _enter(place / name, memory):
                return place / name
    return None


def _enter(folder: Path, memory: int | None) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    if (memory is None or _limit(folder, memory)) and _write(folder / "cgroup.procs", "0"):
        return True
    _remove(folder)
    return False


def _limit(folder: Path, memory: int) -> bool:
    if (folder / "memory.max").exists():
        _write(folder / "memory.swap.max", "0")
        _write(folder / "memory.oom.group", "1")
        return _write(folder / "memory.max", str(memory))
    if not _write(folder / "memory.limit_in_bytes", str(memory)):
        return False
    swap = folder / "memory.memsw.limit_in_bytes"
    if swap.exists():
        _write(swap, str(memory))
    return True


def _mounts() -> list[Mount]:
    """The hierarchies that are mounted, version 2 first."""
    own = {}
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    found = []
    for line in _text(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2" and "" in own:
            found.append(Mount(kind, _MODERN, Path(point), _below(point, root, own[""])))
        elif kind == "cgroup":
            for names, path in own.items():
                held = frozenset(names.split(","))
                if names and held <= frozenset(options.split(",")):
                    found.append(Mount(kind, held, Path(point), _below(point, root, path)))
    return sorted(found, key=lambda mount: mount.kind, reverse=True)


def _below(point: str, root: str, path: str) -> Path:
    return Path(point) / os.path.relpath(path, root)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _write(path: Path, text: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
