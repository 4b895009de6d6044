"""The processes of one service: itself, its launcher, its shims and copies; and the end of any of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from jobman.engines.local.records import Started
from jobman.engines.local.trees import Process, facts, send


def kill(process: Process) -> bool:
    """kill -9, of exactly this process; whether it was there."""
    return send(process, signal.SIGKILL)


class Victims:
    """Whoever lives because of one state folder; the copies are known by a variable of their documents."""

    def __init__(self, state: Path, mark: str) -> None:
        self._state = state
        self._mark = mark.encode()

    def services(self) -> list[Process]:
        """The service, also one that is only just starting."""
        return [found for found, command in _all() if "--state" in command and str(self._state) in command]

    def launchers(self) -> list[Process]:
        """The launcher."""
        family = {found.pid: found for found in self._launcher_family()}
        return [found for found in family.values() if _parent(found) not in family and not _is_shim(found)]

    def shims(self) -> list[Process]:
        """The shims, without copies that are about to become their program."""
        # A copy that leads a session has entered itself before; until then it is in the session of its shim.
        leaders = [found for found in self._launcher_family() if _is_shim(found) and _leads(found)]
        copies = self._copies_on_record() if leaders else set()
        return [found for found in leaders if found not in copies]

    def copies(self) -> list[Process]:
        """All processes of copies, whatever they have become."""
        return [found for found, _ in _all() if self._mark in _environment(found.pid)]

    def everybody(self) -> list[Process]:
        """All of them, those first who would start others again."""
        return [*self.services(), *self._launcher_family(), *self.copies()]

    def on_record(self) -> dict[Path, Started]:
        """The starts of copies that are written down, by the file that says so."""
        # Unlike a glob, a walk bears that folders vanish on the way.
        folders = os.walk(self._state / "jobs")
        paths = [
            Path(folder, name) for folder, _, names in folders for name in names if name.endswith(".started")
        ]
        return {path: started for path in paths if (started := _read(path))}

    def _copies_on_record(self) -> set[Process]:
        return {started.process for started in self.on_record().values()}

    def _launcher_family(self) -> list[Process]:
        """The launcher and its forks, before they become another program."""
        path = str(self._state / "launcher.sock")
        return [found for found, command in _all() if path in command]


def _all() -> Iterator[tuple[Process, list[str]]]:
    """Every living process with its command line."""
    for entry in os.listdir("/proc"):  # noqa: PTH208 - many, and often
        if entry.isdigit() and int(entry) != os.getpid():
            command = _bytes(f"/proc/{entry}/cmdline").decode(errors="replace").split("\0")
            known = facts(int(entry))
            if known is not None and not known.is_dead:
                yield Process(int(entry), known.ticks), command


def _parent(process: Process) -> int:
    known = facts(process.pid)
    return known.parent if known is not None else 0


def _leads(process: Process) -> bool:
    known = facts(process.pid)
    return known is not None and known.session == process.pid


def _is_shim(process: Process) -> bool:
    return _bytes(f"/proc/{process.pid}/comm").strip() == b"jobman-shim"


def _environment(pid: int) -> list[bytes]:
    return _bytes(f"/proc/{pid}/environ").split(b"\0")


def _bytes(path: str) -> bytes:
    with suppress(OSError):
        return Path(path).read_bytes()
    return b""


def _read(path: Path) -> Started | None:
    with suppress(OSError, msgspec.MsgspecError, IndexError):
        return msgspec.json.decode(path.read_bytes().splitlines()[0], type=Started)
    return None
