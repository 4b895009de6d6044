"""Reading the store. May be called from any thread; holds up no writer, and is held up by none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Table, func, select, text, tuple_

from jobman.control.store import schema
from jobman.control.store.cursors import cursor_of, key_of
from jobman.control.store.listing import fitting, matching, starts_with
from jobman.control.store.outlook import OutlookReads
from jobman.control.store.outputs import OutputReads
from jobman.control.store.reader import R, Where, batched, of_job, ordered, records, select_from
from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    EventRecord,
    JobRecord,
    LogRecord,
    ReplicaRecord,
    SubmissionRecord,
    TaskRecord,
    TokenRecord,
)
from jobman.control.store.schema import jobs
from jobman.control.store.usage import UsageReads
from jobman.control.store.views import Holder, JobFilter, Numbers, Page, Unfinished

FINAL = ("succeeded", "failed", "cancelled")
"""The states in which a job is over."""

_AMBIGUOUS = 10
"""So many jobs are named where a prefix fits many."""

_JOB = tuple(column for column in jobs.c if column.name != "search")
_EVERY_JOB = JobFilter()


class Reads(OutlookReads, OutputReads, UsageReads):
    """Everything that can be asked of a store."""

    # jobs

    def job(self, id: str) -> JobRecord | None:
        """A job by its id, without document and plan."""
        found = self._all(JobRecord, select(*_JOB).where(jobs.c.id == id))
        return found[0] if found else None

    def document(self, id: str) -> tuple[str, bytes] | None:
        """The document and the plan of a job."""
        query = select(schema.documents.c.document, schema.documents.c.plan)
        with self._database.read() as connection:
            row = connection.execute(query.where(of_job(schema.documents, id))).one_or_none()
        return None if row is None else (row.document, row.plan)

    def find(self, owner: str | None, reference: str) -> list[JobRecord]:
        """The jobs that a person may mean: by id, else by the start of an id, else the newest of that name.

        Several are ambiguous: many ids start like that, or one does and another job has the name.
        """
        mine = [] if owner is None else [self._unindexed(jobs.c.owner) == owner]
        query = select(*_JOB).where(*mine)
        exact = self._all(JobRecord, query.where(jobs.c.id == reference))
        if exact or not reference:
            return exact
        newest = jobs.c.number.desc()
        started = self._all(
            JobRecord, query.where(starts_with(jobs.c.id, reference)).order_by(newest).limit(_AMBIGUOUS)
        )
        named = self._all(JobRecord, query.where(jobs.c.name == reference).order_by(newest).limit(1))
        if not named or named == started:
            return started
        return [*started, *named] if len(started) == 1 else named

    def jobs(
        self, wanted: JobFilter = _EVERY_JOB, cursor: str | None = None, limit: int = 100
    ) -> Page[JobRecord]:
        """The jobs that fit, newest first."""
        below = None if cursor is None else key_of(cursor, tuple[int])[0]
        with self._database.read() as connection:
            numbers = matching(connection, wanted, below, limit + 1)
            found: list[JobRecord] = []
            for some in batched(numbers[:limit]):
                query = select(*_JOB).where(jobs.c.number.in_(some)).order_by(jobs.c.number.desc())
                found += records(JobRecord, connection, query)
        return Page(found, cursor_of((numbers[limit - 1],)) if len(numbers) > limit else None)

    def jobs_of(
        self, numbers: Sequence[int], wanted: JobFilter = _EVERY_JOB, limit: int = 100
    ) -> list[JobRecord]:
        """The first of some jobs that fit, in the order of the numbers that are given."""
        found: dict[int, JobRecord] = {}
        with self._database.read() as connection:
            for some in batched(numbers):
                fit = fitting(connection, wanted, some)
                query = select(*_JOB).where(jobs.c.number.in_(fit))
                found |= {one.number: one for one in records(JobRecord, connection, query)}
                if len(found) >= limit:
                    break
        return [found[number] for number in numbers if number in found][:limit]

    def counts(self, owner: str | None = None) -> dict[str, int]:
        """How many jobs are in each state."""
        mine = [] if owner is None else [jobs.c.owner == owner]
        query = select(jobs.c.state, func.count().label("jobs")).where(*mine).group_by(jobs.c.state)
        with self._database.read() as connection:
            return {row.state: row.jobs for row in connection.execute(query)}

    # what belongs to a job

    def tasks(self, job: str) -> list[TaskRecord]:
        """The runs of a job's units."""
        table = schema.tasks
        return self._all(TaskRecord, ordered(table).where(of_job(table, job)))

    def replicas(
        self,
        job: str,
        unit: str | None = None,
        states: Collection[str] = (),
        key: str | None = None,
        cursor: str | None = None,
        limit: int = 1_000,
    ) -> Page[ReplicaRecord]:
        """Replicas of a job, by unit and index."""
        wanted = _equal(schema.replicas, unit=unit, key=key)
        if states:
            wanted.append(schema.replicas.c.state.in_(sorted(states)))
        return self._page(ReplicaRecord, schema.replicas, job, wanted, tuple[str, int, str], cursor, limit)

    def attempts(
        self, job: str, key: str | None = None, cursor: str | None = None, limit: int = 1_000
    ) -> Page[AttemptRecord]:
        """Attempts of a job, or of one of its replicas."""
        wanted = _equal(schema.attempts, key=key)
        return self._page(AttemptRecord, schema.attempts, job, wanted, tuple[str, int], cursor, limit)

    def allocations(self, job: str | None = None, *, open_only: bool = False) -> list[AllocationRecord]:
        """What is held, or was, by a job or by all."""
        table = schema.allocations
        query = ordered(table)
        if job is not None:
            query = query.where(of_job(table, job))
        return self._all(AllocationRecord, query.where(table.c.returned_at.is_(None)) if open_only else query)

    def logs(
        self,
        job: str,
        key: str | None = None,
        attempt: int | None = None,
        copy: int | None = None,
        stream: str | None = None,
        cursor: str | None = None,
        limit: int = 1_000,
    ) -> Page[LogRecord]:
        """Where the output of a job's copies is."""
        wanted = _equal(schema.log_positions, key=key, attempt=attempt, copy=copy, stream=stream)
        kind = tuple[str, int, int, str]
        return self._page(LogRecord, schema.log_positions, job, wanted, kind, cursor, limit)

    def events(
        self,
        job: str | None = None,
        owner: str | None = None,
        after: int = 0,
        limit: int = 1_000,
        kinds: Collection[str] = (),
        *,
        last: bool = False,
    ) -> list[EventRecord]:
        """Events after a number, in order: the first `limit` of them, or the last."""
        table = schema.events
        query = select_from(table).where(table.c.number > after)
        if job is not None:
            query = query.where(of_job(table, job))
        if owner is not None:
            # Not a join: it would tempt the database to begin with all jobs of the owner.
            query = query.where(
                select(jobs.c.owner).where(jobs.c.number == table.c.job).scalar_subquery() == owner
            )
        if kinds:
            query = query.where(table.c.kind.in_(sorted(kinds)))
        order = table.c.number.desc() if last else table.c.number
        found = self._all(EventRecord, query.order_by(order).limit(limit))
        return found[::-1] if last else found

    def environments(self) -> set[str]:
        """The environments of submission that jobs refer to."""
        column = jobs.c.environment
        with self._database.read() as connection:
            return set(connection.execute(select(column).where(column.is_not(None)).distinct()).scalars())

    # the store as a whole

    def unfinished(self) -> Unfinished:
        """All that is needed to take up work after a restart."""
        alive = select(jobs.c.number).where(schema.ALIVE)
        chosen = _with_documents().where(jobs.c.number.in_(alive)).order_by(jobs.c.number)
        tasks, replicas, attempts, allocations = map(
            ordered, (schema.tasks, schema.replicas, schema.attempts, schema.allocations)
        )
        under_way, held = schema.attempts.c.ended_at.is_(None), schema.allocations.c.returned_at.is_(None)
        with self._database.snapshot() as connection:
            return Unfinished(
                jobs=records(JobRecord, connection, chosen),
                tasks=records(TaskRecord, connection, tasks.where(schema.tasks.c.job.in_(alive))),
                replicas=records(ReplicaRecord, connection, replicas.where(schema.replicas.c.job.in_(alive))),
                attempts=records(AttemptRecord, connection, attempts.where(under_way)),
                allocations=records(AllocationRecord, connection, allocations.where(held)),
            )

    def submission(self, owner: str, key: str) -> SubmissionRecord | None:
        """What was answered to a request with this idempotency key."""
        table = schema.submissions
        found = self._all(SubmissionRecord, select(table).where(table.c.owner == owner, table.c.key == key))
        return found[0] if found else None

    def last_numbers(self) -> Numbers:
        """The highest numbers that were ever given, also to jobs that are deleted."""
        with self._database.read() as connection:
            return last_numbers(connection)

    def holder(self) -> Holder:
        """Which service has claimed the store; epoch 0 before the first."""
        query = select(schema.meta.c.name, schema.meta.c.value)
        with self._database.read() as connection:
            values = {row.name: row.value for row in connection.execute(query)}
        return Holder(int(values.get("epoch", 0)), values.get("owner", ""))

    def token(self, hash: str) -> TokenRecord | None:
        """A token by its hash, also one that was revoked."""
        found = self._all(TokenRecord, select(schema.tokens).where(schema.tokens.c.hash == hash))
        return found[0] if found else None

    def tokens(self) -> list[TokenRecord]:
        """All tokens, by name."""
        return self._all(TokenRecord, select(schema.tokens).order_by(schema.tokens.c.name))

    def size(self) -> int:
        """How many bytes the store takes."""
        pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        query = pages if self._database.is_sqlite else "SELECT pg_database_size(current_database())"
        with self._database.read() as connection:
            return int(connection.execute(text(query)).scalar_one())

    def _page(
        self,
        record: type[R],
        table: Table,
        job: str,
        wanted: Sequence[Where],
        kind: Any,
        cursor: str | None,
        limit: int,
    ) -> Page[R]:
        """A page in the order of the table's key, whose first column is the job."""
        key = list(table.primary_key.columns)[1:]
        query = ordered(table).where(of_job(table, job), *wanted).limit(limit + 1)
        if cursor is not None:
            query = query.where(tuple_(*key) > tuple_(*key_of(cursor, kind)))
        found = self._all(record, query)
        if len(found) <= limit:
            return Page(found)
        last = found[limit - 1]
        return Page(found[:limit], cursor_of(tuple(getattr(last, column.name) for column in key)))


def last_numbers(connection: Connection) -> Numbers:
    """The highest numbers that were ever given."""
    kept = select(schema.meta.c.name, schema.meta.c.value).where(
        schema.meta.c.name.in_(("last job", "last event"))
    )
    values = {name: int(value) for name, value in connection.execute(kept)}
    job = connection.execute(select(func.max(jobs.c.number))).scalar() or 0
    event = connection.execute(select(func.max(schema.events.c.number))).scalar() or 0
    return Numbers(max(job, values.get("last job", 0)), max(event, values.get("last event", 0)))


def _with_documents() -> Select[Any]:
    kept = schema.documents
    return select(*_JOB, kept.c.document, kept.c.plan).join(kept, kept.c.job == jobs.c.number)


def _equal(table: Table, **values: Any) -> list[Where]:
    return [table.c[name] == value for name, value in values.items() if value is not None]
