"""What must not be lost, in SQL: one thread writes all that has come together meanwhile in one transaction.

Whoever hands something over is called back when it is on disk, together with those whose is in the same
transaction. A batch that cannot be written is refused;
what became of tasks is written as soon as that is possible again, in its order. A broker that was replaced by
another cannot write any more: every transaction looks at the epoch first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, delete, insert, select, update

from jobman.control.store.database import Database
from jobman.control.store.revisions import bring_up_to_date
from jobman.tasks.charging import Slice, Used, charged_upto, used, write_slices
from jobman.tasks.entries import Entry, StoredBatch
from jobman.tasks.happenings import Happening
from jobman.tasks.mapper import TypeLine
from jobman.tasks.tables import BATCHES, EPOCH, HAPPENINGS, JOURNAL, METADATA, TYPES

Done = Callable[[Exception | None], None]
"""Called with what went wrong if something did."""
_MANY = 500
_FEW, _MOST, _USUAL_BYTES = 8, 1000, 4 * 2**20
"""Entries that are read together: so many at least and at most, and otherwise those of so many bytes."""
_PAUSE = 0.5
_BITS = 32
"""Room for the numbers of batches and entries of one broker."""
_encode = msgspec.msgpack.encode


class Replaced(Exception):
    """Another broker has taken over."""


class _Item(msgspec.Struct, frozen=True):
    """What somebody handed over."""

    done: Done
    batches: list[StoredBatch]
    entries: list[Entry]
    forgotten: list[int]
    happenings: list[Happening]
    slices: list[Slice]


class Journal:
    """Batches and entries, written together and in order."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # What every transaction does is written down once: to put it together takes as long as doing it.
        self._fenced = str(select(EPOCH.c.epoch).with_for_update(read=True).compile(dialect=database.dialect))
        self._inserts = {
            table.name: insert(table).compile(dialect=database.dialect)
            for table in (BATCHES, JOURNAL, HAPPENINGS)
        }
        self.call: Callable[[Callable[[], None]], object] = lambda told: told()
        """How those are called back who handed something over: in the thread that writes, unless changed."""
        self._waiting: list[_Item] = []
        self._is_urgent = False
        self._changed = threading.Condition()
        self._closed = False
        self.commits = 0
        self.commit_seconds = 0.0
        self.failures = 0
        # The slices of tasks stand beside those of jobs.
        bring_up_to_date(database)
        with database.write() as connection:
            METADATA.create_all(connection)
            self.epoch = _next_epoch(connection)
        self.first = self.epoch << _BITS
        """Numbers of this broker are above: what was deleted before gives no number to something else."""
        self._thread = threading.Thread(target=self._run, name="jobman-tasks-journal", daemon=True)
        self._thread.start()

    # -- writing -----------------------------------------------------------------------------------

    def write(
        self,
        done: Done,
        *,
        batches: Iterable[StoredBatch] = (),
        entries: Iterable[Entry] = (),
        forgotten: Iterable[int] = (),
        happenings: Iterable[Happening] = (),
        slices: Iterable[Slice] = (),
        is_urgent: bool = True,
    ) -> None:
        """Write these with the next transaction; `forgotten` are batches that go with all of theirs.

        Whoever is in no hurry waits for the next who is, and sees to it that `hurry` is called in the end.
        """
        with self._changed:
            if self._closed:
                raise RuntimeError("the journal is closed")
            item = _Item(done, list(batches), list(entries), list(forgotten), list(happenings), list(slices))
            self._waiting.append(item)
            if is_urgent:
                self._hurry()

    def hurry(self) -> None:
        """Whatever waits has waited long enough."""
        with self._changed:
            self._hurry()

    def _hurry(self) -> None:
        self._is_urgent = bool(self._waiting)
        self._changed.notify()

    @property
    def waiting(self) -> int:
        """How many wait for the next transaction."""
        return len(self._waiting)

    def close(self) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while items := self._next():
            if (error := self._try(items)) is not None:
                items = self._without(items, error)
            self._tell(items, None)

    def _next(self) -> list[_Item]:
        with self._changed:
            while not self._is_urgent and not self._closed:
                self._changed.wait()
            return self._taken()

    def _taken(self) -> list[_Item]:
        items, self._waiting, self._is_urgent = self._waiting, [], False
        return items

    def _tell(self, items: list[_Item], error: Exception | None) -> None:
        """All at once: who is told first finds what the others wrote."""

        def told() -> None:
            for item in items:
                item.done(error)

        if items:
            self.call(told)

    def _try(self, items: list[_Item]) -> Exception | None:
        start = time.monotonic()
        try:
            if any(item.slices or item.forgotten for item in items):
                with self._database.write() as connection:
                    self._write(_cursor(connection), items)
                    self._write_rarely(connection, items)
            else:
                with self._database.write_plainly() as cursor:
                    self._write(cursor, items)
        except Exception as error:
            self.failures += 1
            return error
        self.commits += 1
        self.commit_seconds += time.monotonic() - start
        return None

    def _without(self, items: list[_Item], error: Exception) -> list[_Item]:
        """Write again without those that may fail, which are told; tells those that are written then."""
        kept = self._kept(items, error)
        while kept and (again := self._try(kept)) is not None:
            if isinstance(again, Replaced) or self._closed:
                self._tell(kept, again)
                return []
            time.sleep(_PAUSE)
            # Who submits meanwhile is refused at once, and not when there is room again.
            with self._changed:
                items = self._taken()
            kept += self._kept(items, again)
        return kept

    def _kept(self, items: list[_Item], error: Exception) -> list[_Item]:
        """Those that are tried again; the others are told."""
        hopeless = isinstance(error, Replaced)
        self._tell([item for item in items if hopeless or item.batches], error)
        return [item for item in items if not hopeless and not item.batches]

    def _write(self, cursor: Any, items: list[_Item]) -> None:
        self._fence(cursor)
        batches = [msgspec.structs.asdict(batch) for item in items for batch in item.batches]
        entries = [msgspec.structs.asdict(entry) for item in items for entry in item.entries]
        happenings = [_row(line) for item in items for line in item.happenings]
        for table, rows in ((BATCHES, batches), (JOURNAL, entries), (HAPPENINGS, happenings)):
            if rows:
                self._insert(cursor, table, rows)

    @staticmethod
    def _write_rarely(connection: Connection, items: list[_Item]) -> None:
        write_slices(connection, [each for item in items for each in item.slices])
        for some in _chunks([id_ for item in items for id_ in item.forgotten]):
            connection.execute(delete(JOURNAL).where(JOURNAL.c.batch.in_(some)))
            connection.execute(delete(BATCHES).where(BATCHES.c.id.in_(some)))

    def _insert(self, cursor: Any, table: Table, rows: list[dict[str, Any]]) -> None:
        compiled = self._inserts[table.name]
        places = compiled.positiontup
        values = rows if places is None else [tuple(row[name] for name in places) for row in rows]
        cursor.executemany(compiled.string, values)

    def _fence(self, cursor: Any) -> None:
        # The lock on the row keeps a broker that takes over waiting until this is written; SQLite has one
        # for all that is written.
        cursor.execute(self._fenced)
        if cursor.fetchone() != (self.epoch,):
            raise Replaced("another broker has taken over")

    def forget_happenings(self, before: int) -> None:
        """Those up to a place are old."""
        with self._database.write() as connection:
            self._fence(_cursor(connection))
            connection.execute(delete(HAPPENINGS).where(HAPPENINGS.c.seq <= before))

    def add_type(self, line: TypeLine, at: float) -> None:
        """Write down who executes a type, in the place of a line for the same versions."""
        with self._database.write() as connection:
            self._fence(_cursor(connection))
            self._drop_types(connection, line.type, line.versions)
            row = {"type": line.type, "versions": line.versions, "at": at, "body": _encode(line)}
            connection.execute(insert(TYPES), [row])

    def remove_type(self, type_: str, versions: str | None) -> None:
        """Forget a type, or one line of it."""
        with self._database.write() as connection:
            self._fence(_cursor(connection))
            self._drop_types(connection, type_, versions)

    @staticmethod
    def _drop_types(connection: Connection, type_: str, versions: str | None) -> None:
        only = [TYPES.c.type == type_] + ([] if versions is None else [TYPES.c.versions == versions])
        connection.execute(delete(TYPES).where(*only))

    # -- reading -----------------------------------------------------------------------------------

    def types(self) -> list[TypeLine]:
        """What operators said of who executes what, the newest last."""
        with self._database.read() as connection:
            rows = connection.execute(select(TYPES.c.body).order_by(TYPES.c.at)).scalars()
            return [msgspec.msgpack.decode(bytes(body), type=TypeLine) for body in rows]

    def happenings(self) -> Iterator[Happening]:
        """What happened, in order."""
        with self._database.read() as connection:
            for body in connection.execute(select(HAPPENINGS.c.body).order_by(HAPPENINGS.c.seq)).scalars():
                yield msgspec.msgpack.decode(bytes(body), type=Happening)

    def used(self, tenant: str | None, since: float, until: float) -> list[Used]:
        """What was charged to a tenant in a time, or to all."""
        with self._database.read() as connection:
            return used(connection, tenant, since, until)

    def charged_upto(self) -> int:
        """The last entry whose work is in a slice."""
        with self._database.read() as connection:
            return charged_upto(connection)

    def batches(self) -> Iterator[StoredBatch]:
        """All batches without their payloads, in order."""
        columns = [column for column in BATCHES.c if column.name != "payloads"]
        with self._database.read() as connection:
            for row in connection.execute(select(*columns).order_by(BATCHES.c.id)):
                yield StoredBatch(**row._mapping)

    def payloads(self, batch: int) -> bytes:
        with self._database.read() as connection:
            found = connection.execute(select(BATCHES.c.payloads).where(BATCHES.c.id == batch)).scalar_one()
        return bytes(found)

    def entries(self, after: int = 0, most: int | None = None) -> Iterator[Entry]:
        """What was written behind a place, in order.

        An entry may have megabytes of results: no more of them are in memory at once than is usual for some.
        """
        left, size = inf if most is None else most, _FEW
        with self._database.read() as connection:
            while left > 0:
                asked = select(JOURNAL).where(JOURNAL.c.seq > after).order_by(JOURNAL.c.seq)
                rows = connection.execute(asked.limit(int(min(size, left)))).all()
                for row in rows:
                    yield Entry(row.seq, row.batch, row.kind, bytes(row.body))
                if len(rows) < min(size, left):
                    return
                after, left = rows[-1].seq, left - len(rows)
                mean = 1 + sum(len(row.body) for row in rows) // len(rows)
                size = max(_FEW, min(_MOST, _USUAL_BYTES // mean))

    def entries_of(self, batch: int, kind: int) -> Iterator[Entry]:
        """What was written of one batch, in order."""
        own = (JOURNAL.c.batch == batch, JOURNAL.c.kind == kind)
        with self._database.read() as connection:
            for row in connection.execute(select(JOURNAL).where(*own).order_by(JOURNAL.c.seq)):
                yield Entry(row.seq, row.batch, row.kind, bytes(row.body))


def _cursor(connection: Connection) -> Any:
    """One of the driver's own: nothing stands between it and the disk."""
    return connection.connection.cursor()


def _row(line: Happening) -> dict[str, Any]:
    return {"seq": line.seq, "body": _encode(line)}


def _next_epoch(connection: Connection) -> int:
    found = connection.execute(select(EPOCH.c.epoch).with_for_update()).scalar()
    if found is None:
        connection.execute(insert(EPOCH).values(only=0, epoch=1))
        return 1
    connection.execute(update(EPOCH).values(epoch=found + 1))
    return int(found) + 1


def _chunks(ids: list[int]) -> Iterator[list[int]]:
    return (ids[start : start + _MANY] for start in range(0, len(ids), _MANY))
