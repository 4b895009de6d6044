"""The store: everything that must not be lost, written in transactions that only one service can commit."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from jobman.control.store.database import Database, open_database
from jobman.control.store.errors import Fenced, StoreError
from jobman.control.store.reader import batched
from jobman.control.store.reads import FINAL, Reads, last_numbers
from jobman.control.store.records import Changes, TokenRecord
from jobman.control.store.revisions import bring_up_to_date, check_current
from jobman.control.store.rows import Batch, Row, batch_of
from jobman.control.store.schema import jobs, meta, submissions, tokens
from jobman.control.store.statements import ORDER, removals, statements
from jobman.engines.failpoints import failpoint


class Store(Reads):
    """A store that is open. Safe to use from several threads; writes wait for each other."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._statements = statements(database.dialect)
        self._removals = removals(database.dialect)
        self._epoch: int | None = None

    @classmethod
    def open(cls, url: str | Path) -> Store:
        """Open a store by its URL (`sqlite:///PATH`, `postgresql://…`) or its path; make it if needed."""
        database = open_database(url)
        try:
            bring_up_to_date(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @classmethod
    def join(cls, url: str | Path) -> Store:
        """Open a store beside the service that uses it: nothing is made, and nothing migrated."""
        database = open_database(url, make=False)
        try:
            check_current(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Give all connections back."""
        self._database.close()

    # fencing

    @property
    def epoch(self) -> int | None:
        """The epoch that was claimed, if it was."""
        return self._epoch

    def claim(self, owner: str) -> int:
        """Take the store over: from now on no service that claimed it before can write to it."""
        with self._database.write() as connection:
            epoch = int(self._stored("epoch", connection) or 0) + 1
            self._keep(connection, {"epoch": str(epoch), "owner": owner})
        self._epoch = epoch
        return epoch

    def identity(self) -> str:
        """What tells the service of this store from others on the same cluster; it is made once."""
        with self._fenced() as connection:
            known = self._stored("service", connection)
            if known is None:
                known = secrets.token_hex(6)
                self._keep(connection, {"service": known})
        return known

    def ground(self) -> str | None:
        """Where the attempts of this store run, in words; None where nobody has said so."""
        with self._database.read() as connection:
            return connection.execute(select(meta.c.value).where(meta.c.name == "ground")).scalar()

    def keep_ground(self, ground: str) -> None:
        with self._fenced() as connection:
            self._keep(connection, {"ground": ground})

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction on jobs or tokens that is committed only if the store is still ours."""
        with self._fenced() as connection:
            yield connection
            failpoint("store.before-commit")
        with self._database.place.explained():
            failpoint("store.after-commit")

    @contextmanager
    def _fenced(self) -> Iterator[Connection]:
        with self._database.write() as connection:
            if self._epoch is not None:
                self._check_fence(connection)
            yield connection

    def _check_fence(self, connection: Connection) -> None:
        # On PostgreSQL the row stays locked until the commit; on SQLite the whole store is.
        epoch = self._stored("epoch", connection)
        if epoch != str(self._epoch):
            owner = self._stored("owner", connection) or "unknown"
            raise Fenced(
                f"The store {self._database.place} was taken over by another service ({owner}).",
                "Stop this one.",
            )

    def _stored(self, name: str, connection: Connection) -> str | None:
        query = select(meta.c.value).where(meta.c.name == name)
        return connection.execute(query if self._database.is_sqlite else query.with_for_update()).scalar()

    def _keep(self, connection: Connection, values: dict[str, str]) -> None:
        insert = self._insert(meta)
        rows = [{"name": name, "value": value} for name, value in values.items()]
        statement = insert.on_conflict_do_update(
            index_elements=["name"], set_={"value": insert.excluded.value}
        )
        connection.execute(statement, rows)

    def _insert(self, table: Any) -> Any:
        return (sqlite.insert if self._database.is_sqlite else postgresql.insert)(table)

    # changes

    def write(self, changes: Changes) -> None:
        """Write changes in one transaction. To write the same again, after a lost answer, is safe."""
        self.write_batch(batch_of(changes))

    def write_batch(self, batch: Batch) -> None:
        """Write rows in one transaction."""
        if self._epoch is None:
            raise Fenced("The store was not claimed by this service.", "Claim it before writing.")
        with self._writing() as connection:
            numbers = self._numbers(connection, batch)
            for kind in ORDER:
                if batch.rows.get(kind):
                    self._write_rows(connection, kind, batch.numbered(kind, numbers))
                if batch.gone.get(kind):
                    self._remove_rows(connection, kind, batch.numbered_gone(kind, numbers))
            if batch.deleted:
                self._delete(connection, [numbers[id] for id in batch.deleted if id in numbers])

    def _numbers(self, connection: Connection, batch: Batch) -> dict[str, int]:
        """The numbers of all jobs that rows belong to, by their ids."""
        numbers = dict(batch.numbers)
        needed = batch.jobs() - numbers.keys()
        for ids in batched(needed | (batch.former_jobs() - numbers.keys())):
            found = connection.execute(select(jobs.c.id, jobs.c.number).where(jobs.c.id.in_(ids)))
            numbers.update((row.id, row.number) for row in found)
        if missing := sorted(needed - numbers.keys()):
            raise StoreError(
                f"Something was to be written that belongs to the job {missing[0]}, which is not there."
            )
        return numbers

    def _write_rows(self, connection: Connection, kind: str, rows: list[Row]) -> None:
        statement = self._statements[kind]
        result = connection.exec_driver_sql(statement.sql, statement.parameters(rows))
        if statement.exact and result.rowcount != len(rows):
            raise StoreError(f"{kind.capitalize()} were to be written whose numbers belong to others.")

    def _remove_rows(self, connection: Connection, kind: str, rows: list[Row]) -> None:
        if rows:
            statement = self._removals[kind]
            connection.exec_driver_sql(statement.sql, statement.parameters(rows))

    def _delete(self, connection: Connection, numbers: Iterable[int]) -> None:
        # Their numbers are never given again.
        last = last_numbers(connection)
        self._keep(connection, {"last job": str(last.job), "last event": str(last.event)})
        for some in batched(numbers):
            connection.execute(delete(jobs).where(jobs.c.number.in_(some)))

    # tokens

    def add_token(self, token: TokenRecord) -> None:
        """Keep a token. Its name may be that of a revoked one, which it replaces."""
        insert = self._insert(tokens).values(msgspec.structs.asdict(token))
        statement = insert.on_conflict_do_update(
            index_elements=["name"],
            set_={column.name: insert.excluded[column.name] for column in tokens.c if column.name != "name"},
            where=tokens.c.revoked_at.is_not(None),
        )
        with self._writing() as connection:
            if connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount == 0:
                raise StoreError(
                    f"There is a token named {token.name} already.", "Revoke it, or choose another name."
                )

    def revoke_token(self, name: str, at: float) -> bool:
        """Let a token count no longer; whether there was one."""
        valid = (tokens.c.name == name, tokens.c.revoked_at.is_(None))
        with self._writing() as connection:
            return connection.execute(update(tokens).where(*valid).values(revoked_at=at)).rowcount > 0

    # keeping house

    def delete_before(self, moment: float, owner: str | None = None, limit: int = 500) -> list[str]:
        """Forget jobs that ended before a moment, the oldest first, and say which; also old submissions."""
        old = [jobs.c.ended_at < moment, self._unindexed(jobs.c.state).in_(FINAL)]
        if owner is not None:
            old.append(self._unindexed(jobs.c.owner) == owner)
        query = select(jobs.c.id, jobs.c.number).where(*old).order_by(jobs.c.number).limit(limit)
        with self._database.read() as connection:  # they are over for good, so nothing can come between
            found = {row.id: row.number for row in connection.execute(query)}
        forgotten = [submissions.c.at < moment]
        if owner is not None:
            forgotten.append(submissions.c.owner == owner)
        with self._writing() as connection:
            self._delete(connection, found.values())
            connection.execute(delete(submissions).where(*forgotten))
        return list(found)

    def vacuum(self) -> None:
        """Give the room of what was deleted back; on SQLite nothing can be written meanwhile."""
        self._database.vacuum()

    def backup(self, path: Path) -> None:
        """Copy the store to a new file while it is in use."""
        self._database.backup(path)
