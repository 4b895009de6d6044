"""One broker at a time for a database of PostgreSQL: the others stand by, and one of them takes over.

The lock is a session's: it is free as soon as the broker that had it is gone, or its connection is. What that
one still tries to write is refused by the epoch of the journal.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from jobman.control.store.database import Database
from jobman.control.store.errors import StoreError

_LOCK = 7_562_627
_LOOK = 1.0


class Lead:
    """The right to be the broker of a database."""

    def __init__(self, database: Database, look: float = _LOOK) -> None:
        self._database = database
        self._look = look
        self._session = ExitStack()
        self._connection: Connection | None = None

    @property
    def is_taken(self) -> bool:
        """Whether this is the broker."""
        return self._connection is not None or self._database.is_sqlite

    async def take(self) -> None:
        """Wait until there is no other broker; a file of SQLite is nobody else's."""
        while not self.is_taken and not await asyncio.to_thread(self._try):
            await asyncio.sleep(self._look)

    async def lost(self) -> None:
        """Return when the lock is not held for certain any more."""
        while self._connection is None or await asyncio.to_thread(self._is_there, self._connection):
            await asyncio.sleep(self._look)

    def release(self) -> None:
        """Let another take over."""
        self._connection = None
        self._session.close()

    def _try(self) -> bool:
        try:
            connection = self._session.enter_context(self._database.read())
            # A connection that is given back to others would take the lock with it.
            connection.detach()
            if connection.execute(text(f"SELECT pg_try_advisory_lock({_LOCK})")).scalar_one():
                self._connection = connection
                return True
        except (SQLAlchemyError, StoreError):
            # A server that restarts is waited for, as its broker would be.
            pass
        self._session.close()
        return False

    @staticmethod
    def _is_there(connection: Connection) -> bool:
        try:
            return bool(connection.execute(text("SELECT 1")).scalar())
        except (SQLAlchemyError, StoreError):
            return False
