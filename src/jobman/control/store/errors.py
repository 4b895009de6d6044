"""What can go wrong with the store, in plain sentences. A password is never part of one."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout


class StoreError(Exception):
    """The store cannot do what it was asked. `passing` says that the same may succeed later, as it is."""

    def __init__(self, message: str, advice: str = "", *, passing: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.passing = passing


class Fenced(StoreError):
    """Another service has taken over this store: nothing of this one may be written any more."""


class BadCursor(ValueError):
    """A cursor that none of the pages gave out."""


_FULL = ("The disk of the store {place} is full.", "Make room; jobman goes on by itself.", True)
_BUSY = ("The store {place} is locked by another program.", "See whether another jobman is using it.", True)
_READ_ONLY = ("The store {place} cannot be written.", "Check its permissions and those of its folder.", True)
_SICK = ("The disk of the store {place} does not work: {reason}.", "Check the file system.", True)
_DAMAGED = ("The store {place} is damaged: {reason}.", "Restore it from a backup.", False)
_UNREACHABLE = (
    "The database {place} cannot be reached: {reason}.",
    "Check that it runs and that its address is right.",
    True,
)
_PASSWORD = ("The database {place} does not accept the user or the password.", "Check the URL.", False)
_CROWDED = ("The database {place} has too many connections.", "Raise its max_connections.", True)
_SLOW = ("The database {place} took too long to answer.", "See what keeps it busy.", True)
_OTHER = ("The store {place} refuses: {reason}.", "", False)

_Words = tuple[str, str, bool]

_SQLITE: dict[int, _Words] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: (
        "The store {place} cannot be opened: {reason}.",
        "Check that its folder exists and may be written.",
        True,
    ),
    sqlite3.SQLITE_IOERR: _SICK,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: ("{place} is not a store of jobman.", "Name another file.", False),
}

_IN_THE_WAY = (
    "The store {place} cannot be opened: a part of its path is not a folder.",
    "Name another path, or move the file that is in the way.",
    True,
)

_OS: dict[int | None, _Words] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EISDIR: ("{place} is a folder, not a store of jobman.", "Name a file.", False),
    errno.EIO: _SICK,
}

# By SQLSTATE, or by the class that its first two characters name.
_POSTGRES: dict[str, _Words] = {
    "53100": _FULL,
    "53300": _CROWDED,
    "25006": _READ_ONLY,
    "42501": ("The user of {place} may not do that: {reason}.", "Let it create tables there.", False),
    "28": _PASSWORD,
    "3D000": ("There is no database {place}.", "Create it, or correct the URL.", False),
    "55P03": _BUSY,
    "57014": _SLOW,
    "25P03": _SLOW,
    "40": _BUSY,
    "08": _UNREACHABLE,
    "57": _UNREACHABLE,
    "58": _SICK,
    "XX": _DAMAGED,
}

# A connection that never came about has no SQLSTATE.
_REFUSED: dict[str, _Words] = {
    "password authentication failed": _PASSWORD,
    "no password supplied": _PASSWORD,
    "no pg_hba.conf entry": _PASSWORD,
    "too many clients": _CROWDED,
    "does not exist": _POSTGRES["3D000"],
}


class Place:
    """Where the store is, as it may be shown."""

    def __init__(self, url: URL) -> None:
        self._secrets = [text for text in (url.password, *_passwords(url)) if text]
        if url.get_backend_name() == "sqlite":
            self.words = url.database or ""
        else:
            shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
            self.words = shown.render_as_string()

    def __str__(self) -> str:
        return self.words

    def hide(self, text: str) -> str:
        """A text without the password, should it be in there."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the database says into a StoreError."""
        try:
            yield
        except Exception as error:
            if not _is_of_database(error):
                raise
            # Not chained: the driver's own words may hold the password.
            raise self.explain(error) from None

    def explain(self, error: BaseException) -> StoreError:
        """What an error means, in words."""
        cause: BaseException = error.orig or error if isinstance(error, DBAPIError) else error
        message, advice, passing = _words(
            cause, isinstance(error, DBAPIError) and error.connection_invalidated
        )
        reason = self.hide(_first_line(cause))
        return StoreError(message.format(place=self, reason=reason), advice, passing=passing)


def _is_of_database(error: Exception) -> bool:
    # The driver of PostgreSQL is known by its name only: it may not be installed.
    return isinstance(error, SQLAlchemyError | sqlite3.Error | OSError) or type(error).__module__.startswith(
        "psycopg"
    )


def _words(cause: BaseException, disconnected: bool) -> _Words:
    if isinstance(cause, sqlite3.Error):
        return _SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, _OTHER)
    if isinstance(cause, PoolTimeout):
        return _SLOW
    if isinstance(cause, OSError):
        return _OS.get(cause.errno, _SICK)
    state = getattr(cause, "sqlstate", None)
    if state:
        return _POSTGRES.get(state) or _POSTGRES.get(state[:2], _OTHER)
    text = str(cause)
    found = next((words for sign, words in _REFUSED.items() if sign in text), None)
    return found or (_UNREACHABLE if disconnected or type(cause).__name__ == "OperationalError" else _OTHER)


def _first_line(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return next(iter(text.strip().splitlines()), type(error).__name__).rstrip(".")


def _passwords(url: URL) -> list[str]:
    values = (url.query.get(name, ()) for name in ("password", "sslpassword"))
    return [text for value in values for text in ([value] if isinstance(value, str) else value)]
