"""Which jobs there are, for one user: a small database that can be made again from the jobs' own folders."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from jobman.engines.scripts.folder import Folder

_TABLE = """
create table if not exists jobs (
    id text primary key, engine text not null, name text not null, folder text not null,
    submitted_at real not null, ended integer not null default 0, glance text
)
"""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is known here."""

    id: str
    engine: str
    name: str
    folder: str
    submitted_at: float
    glance: str | None = None
    """The last word on a job that is over; it need not be looked at again."""


class Registry:
    """The jobs of one user on one engine."""

    def __init__(self, path: Path, engine: str, folders: Path) -> None:
        self._path = path
        self._engine = engine
        self._folders = folders

    def add(self, entry: Entry) -> None:
        with self._open() as database:
            database.execute(
                "insert or replace into jobs (id, engine, name, folder, submitted_at, ended, glance) "
                "values (?, ?, ?, ?, ?, ?, ?)",
                (entry.id, entry.engine, entry.name, entry.folder, entry.submitted_at, 0, None),
            )

    def close(self, ended: Iterable[tuple[str, str]]) -> None:
        """Keep the last word on jobs that are over."""
        with self._open() as database:
            database.executemany(
                "update jobs set ended = 1, glance = ? where id = ?", [(text, id_) for id_, text in ended]
            )

    def remove(self, ids: Iterable[str]) -> None:
        with self._open() as database:
            database.executemany("delete from jobs where id = ?", [(id_,) for id_ in ids])

    def all(self) -> list[Entry]:
        """The newest first, with those that somebody submitted by hand."""
        newest_first = "order by submitted_at desc, id"
        found = self._read(newest_first, ())
        return self._read(newest_first, ()) if self._add_unknown(found) else found

    def find(self, ref: str) -> list[Entry]:
        """By id, the start of one, or a name; the newest of that name."""
        if exact := self._read("and id = ?", (ref,)):
            return exact
        if named := self._read("and name = ? order by submitted_at desc", (ref,)):
            return named[:1]
        if not ref.isalnum():
            return []
        return self._read("and id like ? order by submitted_at desc", (f"{ref}%",))

    def rebuild(self) -> int:
        """Add the jobs whose folders are there and which are not known; returns how many."""
        return self._add_unknown(self._read("", ()))

    def adopt(self, folder: Path) -> bool:
        """Add the job of a folder, wherever that is; False where it is none."""
        entry = self._entry(folder)
        if entry is not None:
            self.add(entry)
        return entry is not None

    def _add_unknown(self, known: Iterable[Entry]) -> int:
        try:
            there = {place.name for place in self._folders.iterdir() if not place.name.startswith(".")}
        except OSError:
            return 0
        found = [self._entry(self._folders / name) for name in sorted(there - {entry.id for entry in known})]
        new = [entry for entry in found if entry is not None]
        for entry in new:
            self.add(entry)
        return len(new)

    def _entry(self, folder: Path) -> Entry | None:
        """The job of a folder; None where it is no job, or not one of this engine."""
        try:
            about = Folder(folder).about()
        except (OSError, msgspec.DecodeError):
            return None
        if about.engine != self._engine or about.id != folder.name:
            return None
        return Entry(
            id=about.id,
            engine=about.engine,
            name=about.name,
            folder=str(folder),
            submitted_at=about.submitted_at,
        )

    def _read(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        with self._open() as database:
            wanted = "select id, engine, name, folder, submitted_at, glance from jobs where engine = ?"
            rows = database.execute(f"{wanted} {condition}", (self._engine, *values)).fetchall()
        return [
            Entry(id=row[0], engine=row[1], name=row[2], folder=row[3], submitted_at=row[4], glance=row[5])
            for row in rows
        ]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A database that cannot be read is put aside and made again from what is there."""
        is_new = not self._path.exists()
        try:
            database = self._connect()
        except sqlite3.DatabaseError:
            self._path.replace(self._path.with_suffix(".broken"))
            database, is_new = self._connect(), True
        with closing(database):
            if is_new:
                database.commit()
                self.rebuild()
            with database:
                yield database

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self._path, timeout=30.0)
        try:
            database.execute(_TABLE)
        except sqlite3.DatabaseError:
            database.close()
            raise
        return database
