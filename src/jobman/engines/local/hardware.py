"""What this machine has: cores, sockets, memory and storage, less what its control group may not use.

Everything is read below a root folder, so that another machine's /proc and /sys can be read as well.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")
MEBIBYTE = 2**20
_UNLIMITED = 2**60
"""Version 1 says so much where it sets no limit."""


class Cores(NamedTuple):
    """How many cores may be used, and which: none by number where a quota allows fewer than there are."""

    amount: int
    numbers: tuple[int, ...]


def find_cores(root: Path = ROOT, allowed: Collection[int] | None = None) -> Cores:
    """The cores this process may run on; a CPU quota is rounded down to whole ones, and to one at least.

    Under a quota the machine's cores are shared with others who have one too: nobody should crowd the first.
    """
    numbers = tuple(sorted(os.sched_getaffinity(0) if allowed is None else allowed))
    quota = min(_quotas(root), default=float(len(numbers)))
    if quota < len(numbers):
        return Cores(max(int(quota), 1), ())
    return Cores(len(numbers), numbers)


def find_memory(root: Path = ROOT) -> int | None:
    """Bytes of memory, in whole mebibytes; None where the kernel does not say."""
    limits = [*_memory_limits(root), *_memory_total(root)]
    return min(limits) // MEBIBYTE * MEBIBYTE if limits else None


def find_sockets(root: Path = ROOT, allowed: Collection[int] | None = None) -> int | None:
    """The sockets that the usable cores are in; None where the kernel does not say."""
    usable = os.sched_getaffinity(0) if allowed is None else allowed
    folder = root / "sys/devices/system/cpu"
    texts = (read_text(folder / f"cpu{number}/topology/physical_package_id") for number in usable)
    return len({text for text in texts if text}) or None


def find_storage(folder: Path) -> int | None:
    """The size of the file system a folder is in or will be in, used or not, in whole mebibytes."""
    for place in (folder, *folder.parents):
        try:
            found = os.statvfs(place)
        except OSError:
            continue
        return found.f_blocks * found.f_frsize // MEBIBYTE * MEBIBYTE or None
    return None


def _memory_total(root: Path) -> Iterator[int]:
    for line in read_text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal":
            yield int(rest.split()[0]) * 1024


def _memory_limits(root: Path) -> Iterator[int]:
    for folder in _control_groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = read_text(folder / name)
            if text.isdigit() and int(text) < _UNLIMITED:
                yield int(text)


def _quotas(root: Path) -> Iterator[float]:
    for folder in _control_groups(root, "cpu"):
        modern = read_text(folder / "cpu.max").split()
        quota, period = modern if len(modern) == 2 else _old_quota(folder)
        if quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def _old_quota(folder: Path) -> tuple[str, str]:
    return read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us")


def _control_groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control group and all around it, in either version.

    Inside a container the path may be one of the host's: then what is mounted is the group itself.
    """
    base = root / "sys/fs/cgroup"
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if names and controller not in names.split(","):
            continue
        tops = [base / names, base / controller] if names else [base, base / "unified"]
        for top in tops:
            below = path.strip("/")
            yield from _upwards(top, top / below if below else top)


def _upwards(top: Path, folder: Path) -> Iterator[Path]:
    while folder != top and top in folder.parents:
        yield folder
        folder = folder.parent
    yield top


def read_text(path: Path) -> str:
    """A file of the kernel or the system; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
