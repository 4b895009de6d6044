"""The database below the store: how SQLite and PostgreSQL are opened, read and written."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from jobman.control.store.errors import Place, StoreError

_SQLITE_PRAGMAS = (
    "PRAGMA busy_timeout = 10000",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # a deleted document is gone, not only out of sight
    "PRAGMA temp_store = MEMORY",
    # What the log grew to in a rush is given back.
    "PRAGMA journal_size_limit = 67108864",
)
_SQLITE_WRITER = (
    "PRAGMA wal_autocheckpoint = 4000",  # pages: a rush of commits is not held up too often
    "PRAGMA cache_size = -16000",
    "PRAGMA journal_mode = WAL",
)

_BEGIN = "BEGIN IMMEDIATE"
"""Taking the lock at once is what makes the check of the fence hold until the commit."""

_POSTGRES_SETTINGS = (
    "SET statement_timeout = '60s'",
    "SET lock_timeout = '20s'",
    # A service whose machine is gone must not hold the lock of the fence.
    "SET idle_in_transaction_session_timeout = '30s'",
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 4",
    # What is acknowledged is on disk, whatever the server is used to.
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'",
)

_URLS = "Write sqlite:///PATH or postgresql://USER@HOST/DATABASE."


class Database:
    """Two pools of connections: one that writes, one transaction at a time, and some that only read."""

    def __init__(self, place: Place, writer: Engine, readers: Engine) -> None:
        self.place = place
        self._writer = writer
        self._readers = readers
        self._writing = threading.Lock()

    @property
    def dialect(self) -> Dialect:
        """The dialect of SQL it speaks."""
        return self._writer.dialect

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite, not a server."""
        return self.dialect.name == "sqlite"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write, alone in this process and, on SQLite, on this machine."""
        with self._writing, self.place.explained(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def write_plainly(self) -> Iterator[Any]:
        """The same with a cursor of the driver's own, for who writes the same few rows all the time.

        What SQLAlchemy does around a transaction takes longer than the transaction.
        """
        with self._writing, self.place.explained(), closing(self._writer.raw_connection()) as connection:
            # Given back without a commit, a connection is rolled back.
            cursor = connection.cursor()
            if self.is_sqlite:
                cursor.execute(_BEGIN)
            yield cursor
            connection.commit()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to read with, where every statement sees what is committed; it holds up no writer."""
        with self.place.explained(), self._readers.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection to read with, where all statements see the same moment."""
        with self.read() as connection:
            if not self.is_sqlite:
                yield connection.execution_options(isolation_level="REPEATABLE READ")
                return
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")

    def vacuum(self) -> None:
        """Give the room of what was deleted back; PostgreSQL does so by itself."""
        if self.is_sqlite:
            with self._writing, self.place.explained(), closing(self._writer.raw_connection()) as connection:
                connection.cursor().execute("VACUUM")

    def backup(self, path: Path) -> None:
        """Copy a file of SQLite while it is in use. The copy is there as a whole or not at all."""
        if not self.is_sqlite:
            raise StoreError("PostgreSQL makes its own backups.", f"pg_dump {self.place}")
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with self.read() as connection, _place_of(path).explained():
            try:
                os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                with closing(sqlite3.connect(draft)) as copy:
                    source: Any = connection.connection.driver_connection
                    source.backup(copy)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Give all connections back."""
        self._readers.dispose()
        self._writer.dispose()


def open_database(url: str | Path, *, make: bool = True) -> Database:
    """Open a database by its URL, or a file of SQLite by its path; without `make` it has to be there."""
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed, make)
    if parsed.get_backend_name() == "postgresql":
        return _open_postgres(parsed)
    raise StoreError(f"jobman does not know databases of the kind {parsed.get_backend_name()!r}.", _URLS)


def _parsed(url: str | Path) -> URL:
    if isinstance(url, Path):
        return _url_of(url)
    try:
        return make_url(url.replace("postgres://", "postgresql://", 1))
    except (ArgumentError, ValueError):
        raise StoreError("The URL of the database cannot be read.", _URLS) from None


def _url_of(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def _place_of(path: Path) -> Place:
    return Place(_url_of(path))


def _open_sqlite(url: URL, make: bool) -> Database:
    if not url.database or url.database == ":memory:":
        raise StoreError("A store in memory would not outlive its service.", "Name a file: sqlite:///PATH.")
    place = Place(url)
    path = Path(url.database)
    if not make and not path.exists():
        raise StoreError(f"There is no store {place}.", "Name the one that the service uses.")
    with place.explained():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the files beside it the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    url = _url_of(path)
    writer = create_engine(url, pool_size=1, max_overflow=0, connect_args={"isolation_level": None})
    readers = create_engine(url, pool_size=4, max_overflow=12, isolation_level="AUTOCOMMIT")
    event.listen(writer, "connect", _sqlite_for_writing)
    event.listen(writer, "begin", _begin_immediate)
    event.listen(readers, "connect", _sqlite_for_reading)
    database = Database(place, writer, readers)
    with place.explained(), writer.connect() as connection:
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
    if mode != "wal":
        database.close()
        raise StoreError(
            f"The file system of the store {place} cannot share memory between programs.",
            "Put the store on a local disk.",
        )
    return database


def _sqlite_for_writing(connection: Any, _record: object) -> None:
    for statement in (*_SQLITE_PRAGMAS, *_SQLITE_WRITER):
        connection.execute(statement)


def _sqlite_for_reading(connection: Any, _record: object) -> None:
    for statement in (*_SQLITE_PRAGMAS, "PRAGMA query_only = ON"):
        connection.execute(statement)


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql(_BEGIN)


def _open_postgres(url: URL) -> Database:
    if find_spec("psycopg") is None:
        raise StoreError("The driver for PostgreSQL is not installed.", "pip install 'jobman[postgres]'")
    place = Place(url)
    url = url.set(drivername="postgresql+psycopg")
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
    writer = create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True, connect_args=arguments)
    readers = create_engine(
        url,
        pool_size=4,
        max_overflow=8,
        pool_pre_ping=True,
        isolation_level="AUTOCOMMIT",
        connect_args=arguments,
    )
    for engine in (writer, readers):
        event.listen(engine, "connect", _postgres_session)
    return Database(place, writer, readers)


def _postgres_session(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(";".join(_POSTGRES_SETTINGS))
    connection.commit()
