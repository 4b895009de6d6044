"""Types of tasks on this machine: each with the command of its workers, in a file of the state folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jobman.tasks.mapper import Executor, Table, TypeLine
from jobman.tasks.versions import Range


class LocalType(msgspec.Struct, frozen=True, kw_only=True):
    """A type of task, and how its workers are started."""

    type: str
    versions: str = "*"
    command: tuple[str, ...]
    environment: dict[str, str] = {}
    folder: str | None = None
    on_port: bool = False
    slots: int = 1
    resources: dict[str, str] = {}
    """What a worker needs of this machine, as at a site: one core, where nothing is said."""
    least: int = 0
    """Workers that are there also when nothing is to be done, while the broker is."""
    most: int | None = None
    """Workers that there are at most; as many as there is room for, where nothing is said."""
    name: str = ""
    """Tells workers apart that differ in more than that; by default the type and its versions."""

    @property
    def image(self) -> str:
        return self.name or f"{self.type}@{self.versions}"


class LocalTypes:
    """The file of types. Whoever changes it does so alone; whoever reads it sees a whole one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._types: list[LocalType] = []

    def read(self) -> list[LocalType]:
        """All types; the file is read again when it has changed."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._seen, self._types = None, []
            return []
        seen = (found.st_mtime_ns, found.st_ino, found.st_size)
        if seen != self._seen:
            self._types = msgspec.json.decode(self._path.read_bytes(), type=list[LocalType])
            self._seen = seen
        return self._types

    def add(self, entry: LocalType) -> None:
        """Add a type, in the place of one with the same versions; raises ValueError."""
        Range(entry.versions)
        if not 0 <= entry.least <= (entry.least if entry.most is None else entry.most) or entry.most == 0:
            raise ValueError(f"from {entry.least} to {entry.most} workers there can never be")
        with self._alone():
            rest = [
                each for each in self.read() if (each.type, each.versions) != (entry.type, entry.versions)
            ]
            if entry not in self.read():
                self._write([*rest, entry])

    def remove(self, type_: str, versions: str | None = None) -> list[LocalType]:
        """Remove a type, or one line of it; tells what is gone."""
        with self._alone():
            gone = [each for each in self.read() if each.type == type_ and versions in (None, each.versions)]
            if gone:
                self._write([each for each in self.read() if each not in gone])
        return gone

    def by_image(self) -> dict[str, LocalType]:
        return {each.image: each for each in self.read()}

    def _write(self, types: Sequence[LocalType]) -> None:
        draft = self._path.with_suffix(".new")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(types), indent=2) + b"\n")
        draft.replace(self._path)
        self._seen = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class LocalTable(Table):
    """The table of a broker that follows the file."""

    learns = False

    def __init__(self, types: LocalTypes) -> None:
        super().__init__([])
        self._file = types
        self._last: list[LocalType] | None = None

    @property
    def types(self) -> dict[str, Sequence[TypeLine]]:
        self._follow()
        return super().types

    def map(self, type_: str, wanted: str | None = None) -> Executor:
        self._follow()
        return super().map(type_, wanted)

    def _follow(self) -> None:
        now = self._file.read()
        if now is not self._last:
            self._last = now
            super().__init__(
                TypeLine(type=each.type, versions=each.versions, image=each.image, resources=each.resources)
                for each in now
            )
